"""Environments of Gymnasium as worlds: its own, which are copied, and those of ALE."""

import ale_py
import gymnasium
import numpy as np
import pytest

from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.planning.iw import iw
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.gymnasium_world import GymnasiumEpisode, GymnasiumWorld

gymnasium.register_envs(ale_py)


def ale(game, **settings):
    fixed = {"frameskip": 15, "repeat_action_probability": 0.0}
    return gymnasium.make(f"ALE/{game}-v5", **fixed | settings)


def finish(episode):
    while not episode.stop:
        episode.advance()
    return episode


class Bins:
    """Which of 20 bins each number of an observation falls into."""

    num_features = 80

    def atoms(self, seen, previous):
        bins = np.digitize(seen.observation, np.linspace(-2.4, 2.4, 19))
        return (20 * np.arange(4) + bins).astype(np.int32)


class Square:
    num_features = 16

    def atoms(self, seen, previous):
        return np.array([seen.observation], np.int32)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize(
    ("game", "features"),
    [("Pong", "ram"), ("Freeway", "bprost"), ("MsPacman", "vae"), ("Qbert", "basic")],
)
def test_ale_plays_as_an_episode_does_with_the_same_seed_and_settings(game, features, seed):
    """Freeway starts elsewhere after a reset; Qbert goes astray in an emulator that never ran."""
    planner = {"budget_seconds": None, "budget_nodes": 15}
    config = EpisodeConfig.of(game, features=features, max_actions=6, **planner)
    episode = finish(Episode(config, seed))
    world = GymnasiumWorld(ale(game), features)
    mine = finish(GymnasiumEpisode(world, PlannerConfig(**planner), seed, max_actions=6))
    assert mine.actions == episode.actions
    assert mine.rewards == episode.rewards
    theirs = {name: episode.record()[name] for name in mine.record() if name != "config"}
    assert mine.record() | {"game": game, "config": {}} == theirs | {"config": {}}
    for name, column in mine.columns().items():
        if not name.endswith("seconds"):
            assert column.tolist() == episode.columns()[name].tolist()


def test_an_environment_of_gymnasium_is_copied_and_left_alone():
    env = gymnasium.make("CartPole-v1")
    config = PlannerConfig(budget_seconds=None, budget_nodes=60)
    episode = GymnasiumEpisode(GymnasiumWorld(env, Bins()), config, seed=0, max_actions=30)
    state = env.unwrapped.state.copy()
    finish(episode)
    assert episode.score == 30  # it balances
    assert (env.unwrapped.state == state).all()
    assert episode.record()["game"] == "CartPole-v1"
    assert episode.record()["config"]["features"] == f"{__name__}:Bins"
    again = GymnasiumEpisode(GymnasiumWorld(env, Bins()), config, seed=0, max_actions=30)
    assert finish(again).record() == episode.record()


def test_an_episode_ends_where_a_wrapper_cuts_it_off():
    env = gymnasium.make("CartPole-v1", max_episode_steps=4)
    config = PlannerConfig(budget_seconds=None, budget_nodes=20)
    episode = finish(GymnasiumEpisode(GymnasiumWorld(env, Bins()), config, seed=0))
    assert (episode.stop, len(episode.actions)) == ("game_over", 4)


def test_the_way_over_the_lake_is_found_with_a_search_of_ones_own():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    config = PlannerConfig(budget_seconds=None, budget_nodes=60)
    world = GymnasiumWorld(env, Square())
    episode = finish(GymnasiumEpisode(world, config, seed=0, max_actions=12, search=iw))
    assert episode.score == 1
    assert episode.record()["config"]["planner"] == "vaeiw_jax.planning.iw:iw"


def test_what_cannot_be_planned_is_refused_in_a_sentence():
    with pytest.raises(UserError, match="needs discrete actions"):
        GymnasiumWorld(gymnasium.make("Pendulum-v1"), Bins())
    with pytest.raises(UserError, match="'ram' looks at the screen or the memory of an Atari"):
        GymnasiumWorld(gymnasium.make("CartPole-v1"), "ram")


def test_features_with_several_notions_of_novelty_can_be_widened():
    class Wide(Bins):
        notions = ((20, 1), (80, 1))

    config = PlannerConfig(budget_seconds=None, budget_nodes=60, widen=True)
    world = GymnasiumWorld(gymnasium.make("CartPole-v1"), Wide())
    episode = GymnasiumEpisode(world, config, seed=0)
    assert episode.advance().statistics.widened == 1
