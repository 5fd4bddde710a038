"""How a rollout chooses among the open actions of a node."""

from typing import Protocol

import numpy as np

from vaeiw_jax.planning import bandits
from vaeiw_jax.planning.tree import Tree

UNIFORM = "uniform"
ACTION_CHOICES = (UNIFORM, *bandits.RULES)


class ActionChoice(Protocol):
    """Of one decision."""

    def choose(self, node: int, actions: list[int]) -> int:
        """One of some actions of a node, of which there is at least one."""
        ...

    def learn(self, end: int) -> None:
        """Takes note that a rollout from the root ended at this node."""
        ...


class Uniform:
    """Any action, whatever rollouts found."""

    def __init__(self, rng: np.random.Generator):
        self._rng = rng

    def choose(self, node: int, actions: list[int]) -> int:
        return actions[self._rng.integers(len(actions))]

    def learn(self, end: int) -> None:
        pass


def action_choice(
    name: str, tree: Tree, discount: float, rng: np.random.Generator, returns: str
) -> ActionChoice:
    """The choice of that name, for a decision that begins."""
    if name == UNIFORM:
        return Uniform(rng)
    return bandits.Bandits(bandits.RULES[name], tree, discount, rng, returns)
