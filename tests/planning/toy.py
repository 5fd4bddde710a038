"""Worlds small enough to know all about."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from vaeiw_jax.planning import PlainWorld, Planner, PlannerConfig, Transition


@dataclass(frozen=True)
class State:
    place: int
    lives: int


class RandomWorld:
    """Places joined at random; some pay, some cost a life, some end the game. Alike for equal seeds."""

    def __init__(self, seed: int, num_places: int, num_actions: int, num_features: int):
        rng = np.random.default_rng(seed)
        self.num_actions = num_actions
        self.num_features = num_features
        self._leads_to = rng.integers(num_places, size=(num_places, num_actions))
        self._pays = rng.choice([-1.0, 0.0, 0.0, 0.0, 1.0, 2.5], size=(num_places, num_actions))
        self._costs_life = rng.random((num_places, num_actions)) < 0.1
        self._ends = rng.random(num_places) < 0.1
        self._true = rng.random((num_places, num_features)) < 2 / num_features
        self.start = State(place=0, lives=3)

    def step(self, state: State, action: int) -> Transition:
        place = int(self._leads_to[state.place, action])
        lives = state.lives - int(self._costs_life[state.place, action])
        reward = float(self._pays[state.place, action])
        return Transition(State(place, lives), reward, lives, bool(self._ends[place] or lives <= 0))

    def atoms(self, state: State, previous: State | None) -> np.ndarray:
        """The place's own, and one that tells whether the place changed: so parents matter too."""
        own = np.flatnonzero(self._true[state.place, :-1])
        moved = previous is not None and previous.place != state.place
        return np.append(own, [self.num_features - 1] * moved).astype(np.int32)


random_worlds = st.builds(
    RandomWorld,
    seed=st.integers(0, 2**32 - 1),
    num_places=st.integers(2, 40),
    num_actions=st.integers(1, 5),
    num_features=st.integers(2, 12),
)


class Corridor:
    """A line of rooms, each with an atom of its own. Action 1 goes on, action 0 stays; the last room pays."""

    num_actions = 2

    def __init__(self, length: int):
        self.length = length
        self.num_features = length

    def step(self, room: int, action: int) -> Transition:
        there = min(room + action, self.length - 1)
        arrived = there == self.length - 1 and room != there
        return Transition(there, float(arrived), 0, False)

    def atoms(self, room: int, previous: int | None) -> np.ndarray:
        return np.array([room], np.int32)


class Script:
    """A world written down: {(state, action): (state, reward, lives, terminal)}, {state: atoms}."""

    def __init__(self, steps: dict, atoms: dict, num_actions: int, num_features: int):
        self._steps, self._atoms = steps, atoms
        self.num_actions, self.num_features = num_actions, num_features
        self.asked: list[tuple[str, int]] = []

    def step(self, state: str, action: int) -> Transition:
        self.asked.append((state, action))
        return Transition(*self._steps[state, action])

    def atoms(self, state: str, previous: str | None) -> np.ndarray:
        return np.array(self._atoms[state], np.int32)


def planner(
    world, config: PlannerConfig, start, seed: int = 0, lives: int = 0, **others
) -> Planner:
    return Planner(
        config,
        PlainWorld(world.step, world.atoms),
        num_actions=world.num_actions,
        num_features=world.num_features,
        snapshot=start,
        lives=lives,
        rng=np.random.default_rng(seed),
        **others,
    )


class PavedWay:
    """Action 0 pays a little at every step, and a prize after `length` of them. Any other leads astray, for ever.

    A state is the actions that led there, and everything looks new.
    """

    num_actions = 3
    num_features = 100_003
    start = ()

    def __init__(self, length: int):
        self.length = length

    def step(self, state: tuple, action: int) -> Transition:
        state = (*state, action)
        reward = float(not any(state)) * (100.0 if len(state) == self.length else 1.0)
        return Transition(state, reward, 0, len(state) == self.length)

    def atoms(self, state: tuple, previous: tuple | None) -> np.ndarray:
        number = 1
        for action in state:
            number = 3 * number + action
        return np.array([number % self.num_features], np.int32)


class CuedWay:
    """Every state shows a cue, the action that leads on; any other leads astray. Each step on the way pays a little,
    and the last one of `length` a prize.

    A state is the actions that led there. Its atoms are its cue, and one that makes everything look new.
    """

    num_actions = 3
    num_features = 100_003
    start = ()

    def __init__(self, length: int):
        self.length = length

    def cue(self, state: tuple) -> int:
        return (5 * len(state) + 7 * sum(state) + sum(state[::2]) + 1) % 3

    def step(self, state: tuple, action: int) -> Transition:
        after = (*state, action)
        on_the_way = all(self.cue(after[:i]) == after[i] for i in range(len(after)))
        over = len(after) == self.length
        return Transition(after, on_the_way * (100.0 if over else 1.0), 0, over)

    def atoms(self, state: tuple, previous: tuple | None) -> np.ndarray:
        number = 1
        for action in state:
            number = 3 * number + action
        return np.array([self.cue(state), 3 + number % (self.num_features - 3)], np.int32)
