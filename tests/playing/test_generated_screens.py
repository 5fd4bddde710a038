"""An episode that remembers the screens its planner generates plays as one that does not."""

import functools

import numpy as np
import pytest

from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.generated_screens import GeneratedScreens, RememberingEpisode
from vaeiw_jax.playing.runs import PlayConfig, Run, play

CONFIG = EpisodeConfig.of("MsPacman", features="ram", budget_nodes=12, max_actions=6)
ENDLESS = 10**9


def played(episode: Episode) -> Episode:
    while not episode.stop:
        episode.advance()
    return episode


@pytest.fixture(scope="module")
def remembering() -> RememberingEpisode:
    return played(RememberingEpisode(CONFIG, 3, calls_limit=ENDLESS))


def test_the_game_is_the_same_and_every_distinct_screen_of_a_new_node_is_there_once(remembering):
    episode = Episode(CONFIG, 3)
    seen = []
    while not episode.stop:
        kept = episode.planner.tree.size
        decision = episode.planner.decide()
        seen += [snapshot.screen for snapshot in episode.planner.tree.snapshots[kept:]]
        episode.act(decision)
    record = remembering.record()
    assert episode.record().items() <= record.items()
    assert record["simulator_calls"] == len(seen) == sum(s.new_nodes for s in episode.statistics)
    distinct = {screen.tobytes(): screen for screen in seen}  # in the order they were first seen
    assert 1 < len(distinct) < len(seen)
    assert record["generated_screens"] == len(distinct)
    generated = remembering.generated
    np.testing.assert_array_equal(
        generated.screens(generated.digests), np.stack(list(distinct.values()))
    )


def test_the_calls_end_a_game_with_the_decision_that_spends_them():
    episode = played(RememberingEpisode(CONFIG, 3, calls_limit=30))
    assert episode.stop == "simulator_calls"
    *before, last = [entry.new_nodes for entry in episode.statistics]
    assert sum(before) < 30 <= sum(before) + last == episode.calls


def test_a_step_that_was_played_untried_is_a_call_too(monkeypatch):
    config = EpisodeConfig.of(
        "Breakout", features="ram", budget_nodes=2, max_actions=8, untried_as_zero=True
    )
    episode = RememberingEpisode(config, 3, calls_limit=ENDLESS)
    steps = []
    ask = type(episode.planner.world).ask
    monkeypatch.setattr(
        type(episode.planner.world), "ask", lambda *given: steps.append(given) or ask(*given)
    )
    played(episode)
    new_nodes = sum(entry.new_nodes for entry in episode.statistics)
    blind = sum(entry.random_action for entry in episode.statistics)
    assert len(steps) == episode.calls > new_nodes + blind


def test_a_game_stopped_and_resumed_remembers_what_it_would_have(remembering, tmp_path):
    make = functools.partial(RememberingEpisode, calls_limit=ENDLESS)
    told = []
    config = PlayConfig(CONFIG, 3)
    stopped = play(config, tmp_path, lambda: len(told) > 3, told.append, make_episode=make)
    assert stopped is None
    assert told[-1][:2] == (sum(s.new_nodes for s in remembering.statistics[:3]), ENDLESS)
    assert play(config, tmp_path, make_episode=make) == remembering.record()
    with np.load(Run(tmp_path, "MsPacman", 3).decisions) as decisions:
        generated = GeneratedScreens.from_arrays(decisions)
    assert generated.digests == remembering.generated.digests


def test_those_that_are_known_elsewhere_can_be_left_out(remembering):
    generated = remembering.generated
    first, *others = generated.digests
    assert generated.unlike(generated.screens([first, first])) == others
    assert generated.unlike([]) == generated.digests


def test_nothing_remembered_is_kept_as_nothing():
    assert len(GeneratedScreens.from_arrays(GeneratedScreens().to_arrays())) == 0
