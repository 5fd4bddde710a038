"""The lookahead tree as a struct of arrays."""

from typing import Any

import numpy as np

from vaeiw_jax.planning.novelty import NO_KEY
from vaeiw_jax.planning.world import Transition

ROOT = 0
"""The root's index, in every tree."""

NO_NODE = -1
"""The parent of the root, and the child of an action not yet tried."""

NO_ACTION = -1
"""What leads to the root of a new tree."""

_INITIAL_CAPACITY = 256


class Tree:
    """States reached from the root, one row each. A parent always stands before its children.

    Attributes:
      size: how many nodes there are; the arrays below are longer.
      parent: int32[capacity], `NO_NODE` for the root.
      action: int32[capacity], the action that leads here from the parent; `NO_ACTION` for the first root.
      depth: int32[capacity], steps from the root.
      reward: float64[capacity], what the step from the parent paid.
      utility: float64[capacity], that reward as the planner values it.
      lives: int32[capacity], lives left.
      terminal: bool[capacity], whether the game is over.
      children: int32[capacity, num_actions], `NO_NODE` where an action was not tried.
      open: bool[capacity, num_actions], whether an action may still be picked: its child is missing or not solved.
      solved: bool[capacity], whether nothing new can be found below.
      ruled_out: bool[capacity], whether it counts as minus infinity, whatever it is worth.
      repeated: bool[capacity], whether it is continued with the action that led here only (`repeat`).
      witness: int64[capacity], the key that last showed the node to be novel, or `NO_KEY`.
      snapshots: list of the simulator's states.
    """

    ARRAYS = (
        "parent",
        "action",
        "depth",
        "reward",
        "utility",
        "lives",
        "terminal",
        "children",
        "open",
        "solved",
        "ruled_out",
        "repeated",
        "witness",
    )

    def __init__(self, num_actions: int, snapshot: Any, lives: int):
        capacity = _INITIAL_CAPACITY
        self.num_actions = num_actions
        self.size = 0
        self.parent = np.empty(capacity, np.int32)
        self.action = np.empty(capacity, np.int32)
        self.depth = np.empty(capacity, np.int32)
        self.reward = np.empty(capacity, np.float64)
        self.utility = np.empty(capacity, np.float64)
        self.lives = np.empty(capacity, np.int32)
        self.terminal = np.empty(capacity, np.bool_)
        self.children = np.empty((capacity, num_actions), np.int32)
        self.open = np.empty((capacity, num_actions), np.bool_)
        self.solved = np.empty(capacity, np.bool_)
        self.ruled_out = np.empty(capacity, np.bool_)
        self.repeated = np.empty(capacity, np.bool_)
        self.witness = np.empty(capacity, np.int64)
        self.snapshots: list[Any] = []
        self._append(NO_NODE, NO_ACTION, 0, Transition(snapshot, 0.0, lives, False), 0.0)

    def add(self, parent: int, action: int, transition: Transition, utility: float) -> int:
        """Adds the node an untried action leads to; returns its index."""
        node = self._append(parent, action, self.depth[parent] + 1, transition, utility)
        self.children[parent, action] = node
        return node

    def _append(
        self, parent: int, action: int, depth: int, transition: Transition, utility: float
    ) -> int:
        node = self.size
        if node == len(self.parent):
            self._grow()
        self.parent[node] = parent
        self.action[node] = action
        self.depth[node] = depth
        self.reward[node] = transition.reward
        self.utility[node] = utility
        self.lives[node] = transition.lives
        self.terminal[node] = transition.terminal
        self.children[node] = NO_NODE
        self.open[node] = True
        self.solved[node] = False
        self.ruled_out[node] = False
        self.repeated[node] = False
        self.witness[node] = NO_KEY
        self.snapshots.append(transition.snapshot)
        self.size += 1
        return node

    def _grow(self) -> None:
        for name in self.ARRAYS:
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.empty_like(array)]))

    def solve(self, node: int) -> None:
        """Labels the node solved, and with it every ancestor left without an open action."""
        while not self.solved[node]:
            self.solved[node] = True
            if node == ROOT:
                return
            parent = self.parent[node]
            self.open[parent, self.action[node]] = False
            if self.open[parent].any():
                return
            node = parent

    def repeat(self, node: int) -> None:
        """Leaves open only the action that led here: what is seen is what was seen before it."""
        self.repeated[node] = True
        self.open[node] = False
        self.open[node, self.action[node]] = True

    def clear_labels(self) -> None:
        """Forgets what was solved or ruled out, but for terminal nodes, solved for ever. A root repeats nothing."""
        self.solved[: self.size] = False
        self.ruled_out[: self.size] = False
        self.open[: self.size] = True
        for node in np.flatnonzero(self.repeated[1 : self.size]) + 1:
            self.repeat(int(node))
        for node in np.flatnonzero(self.terminal[: self.size]):
            self.solve(int(node))

    def breadth_first(self, top: int = ROOT) -> np.ndarray:
        """The nodes of the branch below and including `top`, level by level, actions in order."""
        levels = [np.array([top])]
        while len(levels[-1]):
            below = self.children[levels[-1]].ravel()
            levels.append(below[below != NO_NODE])
        return np.concatenate(levels)

    def reroot(self, node: int) -> None:
        """Keeps the branch below `node`, a child of the root, and makes `node` the root. The rest is gone."""
        kept = np.sort(self.breadth_first(node))
        moved = np.full(self.size + 1, NO_NODE, np.int32)  # the last entry is where NO_NODE looks
        moved[kept] = np.arange(len(kept))
        self.size = len(kept)
        for name in self.ARRAYS:
            array = getattr(self, name)
            array[: self.size] = array[kept]
        self.parent[: self.size] = moved[self.parent[: self.size]]
        self.children[: self.size] = moved[self.children[: self.size]]
        self.depth[: self.size] -= 1
        self.snapshots = [self.snapshots[i] for i in kept]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The tree without its snapshots."""
        return {name: getattr(self, name)[: self.size] for name in self.ARRAYS}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], snapshots: list[Any]) -> "Tree":
        tree = cls(arrays["children"].shape[1], None, lives=0)
        tree.size, tree.snapshots = len(snapshots), list(snapshots)
        younger = ("repeated", "ruled_out")  # than some saved trees
        none = dict.fromkeys(younger, np.zeros(tree.size, np.bool_))
        for name in cls.ARRAYS:
            setattr(tree, name, (none | arrays)[name].copy())
        return tree
