"""What a planner needs of a world: steps from snapshots, and the atoms of what is seen."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np


class Transition(NamedTuple):
    """Where one action leads."""

    snapshot: Any
    """All that is needed to step from here, and to tell the atoms. The planners never look inside."""
    reward: float
    lives: int
    terminal: bool


Step = Callable[[Any, int], Transition]
"""(snapshot, action) -> transition. The same arguments always give the same transition."""

Atoms = Callable[[Any, Any | None], np.ndarray]
"""(snapshot, its parent's snapshot or None) -> int32[n], the true features, without duplicates."""


class Answer(NamedTuple):
    """Where an action led, what is true there, and what it cost to find out."""

    transition: Transition
    atoms: np.ndarray
    emulator_seconds: float
    features_seconds: float


class World(Protocol):
    """Where actions lead. Several requests may be open at once; they are answered in their order.

    `PlainWorld` makes one of two functions.
    """

    def ask(self, snapshot: Any, action: int) -> None:
        """Requests the transition that an action leads to."""
        ...

    def answer(self) -> Answer:
        """Waits for the oldest open request, and returns its result."""
        ...

    def atoms(self, snapshot: Any, previous: Any | None) -> np.ndarray:
        """int32[n]: the true features of a snapshot, given its parent's."""
        ...


class PlainWorld:
    """A world of two functions, which are called when `answer` is.

    Args:
      step: (snapshot, action) -> transition; the same arguments must give the same transition.
      atoms: (snapshot, its parent's snapshot or None) -> int32[n], the true features, without duplicates.
      clock: seconds, from any zero.
    """

    def __init__(self, step: Step, atoms: Atoms, clock: Callable[[], float] = time.perf_counter):
        self._step = step
        self._atoms = atoms
        self._clock = clock
        self._questions: deque[tuple[Any, int]] = deque()

    def ask(self, snapshot: Any, action: int) -> None:
        self._questions.append((snapshot, action))

    def answer(self) -> Answer:
        snapshot, action = self._questions.popleft()
        start = self._clock()
        transition = self._step(snapshot, action)
        stepped = self._clock()
        atoms = self._atoms(transition.snapshot, snapshot)
        return Answer(transition, atoms, stepped - start, self._clock() - stepped)

    def atoms(self, snapshot: Any, previous: Any | None) -> np.ndarray:
        return self._atoms(snapshot, previous)
