"""Rollouts that follow a policy over the atoms of a node (pi-IW: Junyent et al., ICAPS 2019)."""

import copy
from collections.abc import Callable
from typing import Protocol

import numpy as np

from vaeiw_jax.planning.action_choice import ActionChoice
from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree

AtomsOf = Callable[[int], np.ndarray]
"""node -> int32[n], its true features."""


class Policy(Protocol):
    """What a planner asks of a policy. It must not change while a decision is made."""

    share: float
    """Of the choices that the policy makes, above 0 and at most 1; the others are made as without it."""
    values_leaves: bool
    """Whether `value` is to stand in where the search had no budget left to go on."""

    def logits(self, atoms: np.ndarray) -> np.ndarray:
        """float32[num_actions]: of the actions' probabilities where these atoms, int32[n], are true."""
        ...

    def value(self, atoms: np.ndarray) -> float:
        """The return that can be expected from where these atoms are true."""
        ...


class PolicyChoice:
    """Actions drawn from a policy, restricted to open ones, for a share of the choices.

    Args:
      policy: what it says of a node is asked once a decision.
      otherwise: makes the other choices.
      atoms_of: the atoms of a node.
      rng: draws who makes a choice, and the policy's actions.
    """

    def __init__(
        self,
        policy: Policy,
        otherwise: ActionChoice,
        atoms_of: AtomsOf,
        rng: np.random.Generator,
    ):
        self._policy = policy
        self._otherwise = otherwise
        self._atoms_of = atoms_of
        self._rng = rng
        self._logits: dict[int, np.ndarray] = {}

    def choose(self, node: int, actions: list[int]) -> int:
        if self._rng.random() >= self._policy.share:
            return self._otherwise.choose(node, actions)
        logits = self._logits.get(node)
        if logits is None:
            logits = self._logits[node] = self._policy.logits(self._atoms_of(node))
        # By the Gumbel-max trick this is a draw from the softmax of the open actions' logits.
        return actions[int((logits[actions] + self._rng.gumbel(size=len(actions))).argmax())]

    def learn(self, end: int) -> None:
        self._otherwise.learn(end)


def with_leaf_values(tree: Tree, policy: Policy, atoms_of: AtomsOf, discount: float) -> Tree:
    """The tree with the policy's discounted value added where the budget ended, for backing up alone.

    That is at every leaf that is neither terminal nor solved, nor below a node that is: nothing is known of what lies
    beyond it, not even that nothing is new there.
    """
    size = tree.size
    leaf = (tree.children[:size] == NO_NODE).all(axis=1)
    settled = tree.solved[:size] | tree.terminal[:size]
    for node in range(1, size):  # parents stand before their children
        settled[node] |= settled[tree.parent[node]]
    open_leaves = np.flatnonzero(leaf & ~settled)
    valued = copy.copy(tree)
    valued.utility = tree.utility.copy()
    for node in open_leaves.tolist():
        if node != ROOT:
            valued.utility[node] += discount * policy.value(atoms_of(node))
    return valued
