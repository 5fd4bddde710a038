import numpy as np
import pytest

from vaeiw_jax.atari import Atari, AtariConfig
from vaeiw_jax.playing.emulators import EmulatorPool, PooledWorld
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.step_memory import StepMemory, remembering

GAME = AtariConfig("Breakout")


class Counted:
    """The step function of a game, which counts its calls."""

    def __init__(self):
        self.simulator = Atari(GAME)
        self.calls = 0

    def __call__(self, snapshot, action):
        self.calls += 1
        return self.simulator.step(snapshot, action)


@pytest.fixture(scope="module")
def start():
    return Atari(GAME).start(np.random.default_rng(0))


def test_a_step_that_is_remembered_is_not_made_again(start):
    counted = Counted()
    step = remembering(counted, StepMemory())
    first = step(start, 1)
    assert step(start, 1) is first
    assert step(start, 0) is not first
    assert counted.calls == 2


def test_steps_are_remembered_by_state_and_not_by_snapshot(start):
    counted = Counted()
    step = remembering(counted, StepMemory())
    reached = step(start, 0).snapshot
    reached_again = Atari(GAME).step(start, 0).snapshot
    assert step(reached, 1) is step(reached_again, 1)
    assert counted.calls == 2


def test_the_step_not_needed_for_longest_is_forgotten_first(start):
    counted = Counted()
    step = remembering(counted, StepMemory(size=2))
    step(start, 0), step(start, 1), step(start, 0), step(start, 2)
    assert counted.calls == 3
    step(start, 0)
    assert counted.calls == 3
    step(start, 1)
    assert counted.calls == 4


def test_a_pool_is_asked_only_what_is_not_remembered_and_answers_stay_in_order(start):
    pool = EmulatorPool(GAME, 1)
    asked = []
    ask = pool.ask
    pool.ask = lambda snapshot, action: (asked.append(action), ask(snapshot, action))
    world = PooledWorld(pool, lambda snapshot, previous: np.zeros(0, np.int32))
    world.ask(start, 1)
    known = world.answer().transition
    for action in (0, 1, 2, 1):
        world.ask(start, action)
    answers = [world.answer().transition for _ in range(4)]
    assert asked == [1, 0, 2]
    assert answers[1] is known
    assert answers[3] is known
    simulator = Atari(GAME)
    for action, answer in zip((0, 1, 2, 1), answers, strict=True):
        assert answer.snapshot.state == simulator.step(start, action).snapshot.state
    pool.close()


def test_a_game_is_the_same_with_and_without_memory(monkeypatch):
    config = EpisodeConfig.of("Pong", features="ram", budget_nodes=30, max_actions=8)

    def record():
        episode = Episode(config, seed=0)
        while not episode.stop:
            episode.advance()
        return episode.record()

    remembered = record()
    monkeypatch.setattr(StepMemory, "recall", lambda *_: None)
    assert record() == remembered
