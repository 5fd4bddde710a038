"""The protocols: which settings they come to, and games played by them."""

from pathlib import Path

import numpy as np
import pytest

from tests.playing.test_episodes import comparable, finish
from vaeiw_jax import configs, durable
from vaeiw_jax.atari import Atari, AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.playing import protocols
from vaeiw_jax.playing.episodes import PROTOCOLS, Episode, EpisodeConfig
from vaeiw_jax.playing.random_screens import background_to_subtract
from vaeiw_jax.playing.runs import PlayConfig

RESULTS = Path(__file__).parents[2] / "docs/results/configs"


def episode_config(protocol, **given):
    given = {"game": "Breakout", "budget_nodes": 10, "max_actions": 5} | given
    completed = protocols.complete(PlayConfig, given, protocol)
    return configs.from_settings(PlayConfig, completed, partial=True).episode


def test_the_protocols_differ_from_the_defaults_in_what_they_say_and_in_nothing_else():
    plain = configs.settings(episode_config("vae_iw"))
    assert plain == configs.settings(EpisodeConfig.of("Breakout", budget_nodes=10, max_actions=5))
    for name, settings in PROTOCOLS.items():
        assert configs.settings(episode_config(name)) == plain | settings


@pytest.mark.parametrize(
    ("given", "left_out"),
    [
        ({}, set()),
        ({"planner": "iw"}, {"follow_repeats", "rule_out_known"}),
        ({"features": "ram"}, {"background_subtract"}),
        ({"background_mask": True}, {"background_subtract"}),
        ({"noop_max": 9}, {"noop_actions"}),
        (
            {"planner": "random"},
            {"follow_repeats", "rule_out_known", "background_subtract", "untried_as_zero"}
            | {"zero_ties", "terminals_write"},
        ),
    ],
)
def test_a_protocol_leaves_out_what_would_change_nothing_or_is_replaced(given, left_out):
    mine = configs.settings(episode_config("rollout_iw", **given))
    plain = configs.settings(episode_config("vae_iw", **{"features": "bprost"} | given))
    expected = {n: v for n, v in PROTOCOLS["rollout_iw"].items() if n not in left_out}
    assert mine == plain | expected | given


def test_what_is_recommended_of_a_search_is_left_out_where_it_changes_nothing():
    random = {"planner": "random"}
    assert episode_config("recommended", **random) == episode_config("vae_iw", **random)
    breadth_first = episode_config("recommended", planner="iw", features="ram").planner
    assert (breadth_first.action_choice, breadth_first.rules.zero_ties) == ("uniform", "longest")
    assert episode_config("recommended", action_choice="ucb1").planner.action_choice == "ucb1"


@pytest.mark.parametrize(("frameskip", "repeats"), [(15, 2), (5, 6), (45, 0)])
def test_repeated_screens_are_followed_for_thirty_frames(frameskip, repeats):
    config = episode_config("rollout_iw", frameskip=frameskip)
    assert config.planner.rules.follow_repeats == repeats


@pytest.mark.parametrize(
    ("protocol", "given"),
    [
        ("rollout_iw", {}),
        ("rollout_iw", {"game": "Pong", "rollouts_in_flight": 4, "branch_actions": 2}),
        ("recommended", {"features": "vae:universal"}),
        ("published", {"features": "ram"}),
        ("published", {"game": "Freeway", "features": "vae", "risk_averse": False}),
        ("vae_iw", {"features": "ram", "branch_actions": 3, "novelty_subtables": True}),
        ("vae_iw", {"features": "basic", "planner": "iw_by_reward", "penalise_game_over": True}),
    ],
)
def test_an_interrupted_game_is_the_same_as_an_uninterrupted_one(protocol, given):
    config = episode_config(protocol, **given)
    whole = finish(Episode(config, seed=3))
    cut = Episode(config, seed=3)
    for decisions in (1, 2):
        for _ in range(decisions):
            cut.advance()
        saved, cut = cut.save(), Episode(config, seed=3)
        cut.resume(saved)
    assert comparable(finish(cut)) == comparable(whole)
    assert len(whole.actions) == 5
    assert ("background" in whole.decisions()) == (protocol == "rollout_iw")
    told = whole.record()["config"]
    told["features"] = config.features.features  # records name a model by its digest
    expected = protocols.settings(protocol, given) | given
    assert {name: told[name] for name in expected} == expected


def test_several_actions_are_played_by_one_decision_and_none_after_the_limit():
    config = episode_config("vae_iw", features="ram", branch_actions=4, budget_nodes=40)
    episode = finish(Episode(config, seed=0))
    endings = episode.columns()["ended"].tolist()
    assert len(episode.actions) == len(endings) == 5
    assert endings.count("branch") >= 3
    assert [entry.new_nodes for entry in episode.statistics].count(0) == endings.count("branch")
    assert episode.record()["decisions"]["ended"]["branch"] == endings.count("branch")


def test_a_life_lost_is_counted_as_the_published_planner_counts_it():
    """Breakout loses a life where the ball falls: the trees are alike, but not what their nodes are worth."""
    trees = {}
    for protocol in ("vae_iw", "published"):
        config = episode_config(protocol, features="ram", budget_nodes=150)
        episode = Episode(config, seed=0)
        episode.planner.act(1)  # serve
        episode.planner.decide()
        trees[protocol] = episode.planner.tree
    usual, published = trees["vae_iw"], trees["published"]
    assert usual.size == published.size
    lives = usual.lives[: usual.size]
    fewer = lives < lives[0]
    assert fewer.any()
    assert (published.utility[: published.size][fewer] == -500_000).all()
    steps = lives < lives[usual.parent[: usual.size]]
    steps[0] = False
    assert (usual.utility[: usual.size] == -500_000).tolist() == steps.tolist()


def test_the_subtracted_background_is_what_stands_still_after_some_random_play():
    config = AtariConfig("MsPacman", full_action_set=True, noop_actions=30)
    simulator = Atari(config)
    background = background_to_subtract(simulator, np.random.default_rng(5))
    bare, rng = Atari(AtariConfig("MsPacman")), np.random.default_rng(5)
    snapshot = bare.start(rng)
    screens = []
    for step in range(1, 107):
        if snapshot.terminal:
            snapshot = bare.start(rng)
        snapshot = bare.step(snapshot, int(rng.integers(bare.num_actions))).snapshot
        if step >= 100:
            screens.append(snapshot.screen)
    assert len(screens) == 7
    for row, column in rng.integers([210, 160], size=(300, 2)):
        colours = {int(screen[row, column]) for screen in screens}
        assert background[row, column] == (colours.pop() if len(colours) == 1 else -1)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_configs_of_published_results_are_read_with_the_defaults_of_younger_settings(path):
    saved = durable.read_json(path)
    config = configs.from_settings(EpisodeConfig, saved | {"game": "Pong"}, path, partial=True)
    settings = configs.settings(config)
    assert settings | saved == settings
    younger = settings.keys() - saved.keys() - {"game"}
    assert {n: settings[n] for n in younger} == {
        n: configs.default(EpisodeConfig, n) for n in younger
    }


def test_what_makes_no_sense_is_refused_in_a_sentence():
    with pytest.raises(UserError, match="follow_repeats and widen cannot be combined"):
        episode_config("rollout_iw", features="vae", literals="either", widen=True)
    with pytest.raises(UserError, match="changes nothing for --features=vae"):
        EpisodeConfig(AtariConfig("Pong"), features=FeaturesConfig("vae", background_subtract=True))
    with pytest.raises(UserError, match="unknown protocol 'rollout'"):
        episode_config("rollout")
