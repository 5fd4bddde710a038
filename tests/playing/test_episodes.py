import json

import numpy as np
import pytest

from vaeiw_jax import configs
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig, replay


def config(game="Breakout", *, max_actions=8, features="basic", atari=None, **others):
    mask, max_emulator_frames = (
        others.pop("background_mask", False),
        others.pop("max_emulator_frames", None),
    )
    return EpisodeConfig(
        AtariConfig(game, **atari or {}),
        PlannerConfig(**{"budget_seconds": None, "budget_nodes": 12} | others),
        FeaturesConfig(features, mask),
        max_actions,
        max_emulator_frames,
    )


def finish(episode):
    while not episode.stop:
        episode.advance()
    return episode


def comparable(episode):
    """All that must not depend on the machine."""
    arrays = {
        name: array.tolist()
        for name, array in episode.decisions().items()
        if not name.endswith("seconds")
    }
    return json.dumps([episode.record(), arrays])


@pytest.mark.parametrize("features", ["basic", "bpros", "bprost", "ram"])
@pytest.mark.parametrize("planner", ["rollout_iw", "iw"])
def test_equal_seeds_and_node_budgets_give_equal_records(features, planner):
    settings = config("Seaquest", features=features, planner=planner)
    first, second = (finish(Episode(settings, seed=3)) for _ in range(2))
    assert comparable(first) == comparable(second)
    assert comparable(first) != comparable(finish(Episode(settings, seed=4)))


@pytest.mark.parametrize(
    "others",
    [
        {"features": "bprost"},
        {"features": "bprost", "planner": "iw"},
        {"features": "ram", "caching": "none"},
        {"features": "bpros", "background_mask": True, "atari": {"noop_max": 30}},
        {"planner": "random"},
    ],
)
def test_a_saved_episode_goes_on_as_if_never_interrupted(others):
    settings = config("MsPacman", max_actions=10, **others)
    uninterrupted = finish(Episode(settings, seed=1))
    episode = Episode(settings, seed=1)
    for _ in range(4):
        episode.advance()
    saved = episode.save()
    later = Episode(settings, seed=1)
    later.resume(saved)
    assert comparable(finish(later)) == comparable(uninterrupted)


def test_replaying_the_actions_gives_the_score_again():
    settings = config("Asterix", max_actions=25, features="bprost", atari={"noop_max": 9})
    episode = finish(Episode(settings, seed=2))
    assert episode.score > 0
    transitions, shown = zip(*replay(settings, 2, episode.actions), strict=True)
    assert [t.reward for t in transitions] == episode.rewards
    assert (transitions[-1].snapshot.screen == episode.snapshot.screen).all()
    assert all(len(frames) == 1 for frames in shown)
    assert sum(len(f) for _, f in replay(settings, 2, episode.actions, every_frame=True)) == 25 * 15


def test_a_game_ends_when_it_is_over():
    settings = config("Breakout", max_actions=2000, planner="random")
    episode = finish(Episode(settings, seed=0))
    assert episode.stop == episode.record()["stop"] == "game_over"
    assert episode.snapshot.lives == 0
    assert len(episode.actions) < 2000


def test_a_game_ends_at_the_action_limit():
    record = finish(Episode(config(max_actions=3), seed=0)).record()
    assert (record["stop"], record["actions"], record["emulator_frames"]) == ("action_limit", 3, 45)


def test_a_game_ends_at_the_frame_limit_idle_frames_aside():
    settings = config(max_actions=100, max_emulator_frames=40, atari={"noop_max": 30})
    record = finish(Episode(settings, seed=5)).record()
    assert (record["stop"], record["actions"], record["emulator_frames"]) == ("frame_limit", 3, 45)
    assert settings.most_actions == 3


def test_random_play_says_that_its_actions_are_random():
    record = finish(Episode(config(planner="random"), seed=0)).record()
    assert record["decisions"]["random_actions"] == record["actions"] == 8
    assert record["decisions"]["ended"] == {"no_search": 8}
    assert record["decisions"]["mean_new_nodes"] == 0


def test_the_record_tells_the_means_of_the_statistics():
    episode = finish(Episode(config(max_actions=4), seed=0))
    decisions = episode.record()["decisions"]
    for name in (
        "new_nodes",
        "kept_nodes",
        "expanded_nodes",
        "rollouts",
        "depth",
        "atoms_per_node",
    ):
        mean = np.mean([getattr(entry, name) for entry in episode.statistics])
        assert decisions[f"mean_{name}"] == pytest.approx(mean)
    assert not any("seconds" in name for name in decisions)
    assert set(episode.seconds()) == {
        "seconds",
        "emulator_seconds",
        "features_seconds",
        "novelty_seconds",
    }


def test_a_config_survives_being_written_down():
    settings = config("Qbert", width=1, background_mask=True, max_emulator_frames=99)
    assert (
        configs.from_settings(EpisodeConfig, json.loads(json.dumps(configs.settings(settings))))
        == settings
    )


def test_the_background_is_frozen_and_recorded():
    settings = config("MsPacman", background_mask=True, max_actions=2)
    first, second = (finish(Episode(settings, seed)) for seed in (0, 0))
    background = first.decisions()["background"]
    assert (background == second.decisions()["background"]).all()
    assert 0.5 < (background >= 0).mean() < 1


def test_a_mask_without_a_screen_is_refused():
    with pytest.raises(UserError, match="changes nothing for --features=ram"):
        config(features="ram", background_mask=True)


@pytest.mark.parametrize("features", ["basic", "bprost"])
def test_width_two_is_refused_for_features_beyond_ten_thousand(features):
    with pytest.raises(UserError, match="at most 10,000"):
        Episode(config(features=features, width=2), seed=0)


def test_a_game_of_another_screen_size_can_be_planned_with_ram():
    assert Episode(config("KingKong", features="ram"), seed=0).advance().statistics.new_nodes > 0
    with pytest.raises(UserError, match="210 x 160"):
        Episode(config("KingKong", features="basic"), seed=0)
