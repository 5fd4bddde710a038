"""The least depth at which each atom, or pair of atoms, was seen in this decision."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vaeiw_jax.errors import UserError

MAX_DEPTH = 2**15 - 1
"""The deepest node a table can note."""

MAX_FEATURES_OF_PAIRS = 10_000
"""More features than these make a table of pairs too large for memory."""

NO_KEY = -1
"""Returned where no key will do."""

_UNNUMBERED = -1
_DEPTHS = MAX_DEPTH + 1
_LAST_DECISION = 2**31 // _DEPTHS - 1


class Notion(NamedTuple):
    """What novelty means: which atoms count, one by one (width 1) or in pairs (width 2)."""

    limit: int
    """Atoms below this count."""
    width: int = 1


class NoveltyTable:
    """A table from keys to depths that is emptied without being touched.

    A key is an atom (width 1) or an unordered pair of atoms (width 2). An entry holds the number of the decision that
    wrote it and the depth it wrote, joined so that a later decision, and within one decision a lesser depth, is a
    larger number: `decision * 2^15 + (2^15 - 1 - depth)`. What an earlier decision wrote is therefore smaller than
    all this decision can write, which is to say that it counts as never seen.

    For pairs, atoms are numbered in the order in which they are first met: those that ever occur are few, and their
    pairs then lie close together in memory.
    """

    def __init__(self, num_features: int, width: int = 1):
        if width == 2 and num_features > MAX_FEATURES_OF_PAIRS:
            raise UserError(
                f"width 2 needs a feature set of at most {MAX_FEATURES_OF_PAIRS:,} features, and this one has "
                f"{num_features:,}; use width 1, or the features of a VAE"
            )
        self.width = width
        num_keys = num_features if width == 1 else num_features * (num_features + 1) // 2
        self._entries = np.zeros(num_keys, np.int32)  # pages of zeros cost nothing until written
        self._numbers = np.full(num_features if width == 2 else 0, _UNNUMBERED, np.int32)
        self._numbered = 0
        self._triangle = np.tri(0, dtype=np.bool_)
        self._decision = 0
        self.start_decision()

    def start_decision(self) -> None:
        """Forgets all that was seen."""
        if self._decision == _LAST_DECISION:
            self._entries.fill(0)
            self._decision = 0
        self._decision += 1

    def keys(self, atoms: np.ndarray) -> np.ndarray:
        """The keys a node with these atoms makes true.

        Args:
          atoms: int32[n], in any order, without duplicates.
        """
        if self.width == 1:
            return atoms
        numbers = np.sort(self._numbers_of(atoms))
        row_starts = numbers * (numbers + 1) // 2  # of a lower triangle, stored row by row
        return (row_starts[:, None] + numbers)[self._lower_triangle(len(numbers))]

    def _numbers_of(self, atoms: np.ndarray) -> np.ndarray:
        """int32[n]: the numbers of atoms, which those that were never met are given now."""
        numbers = self._numbers[atoms]
        new = atoms[numbers == _UNNUMBERED]
        if len(new):
            self._numbers[new] = np.arange(self._numbered, self._numbered + len(new))
            self._numbered += len(new)
            numbers = self._numbers[atoms]
        return numbers

    def _lower_triangle(self, size: int) -> np.ndarray:
        """bool[size, size], true on the diagonal and below."""
        if size > len(self._triangle):
            self._triangle = np.tri(size, dtype=np.bool_)
        return self._triangle[:size, :size]

    def admit(self, keys: np.ndarray, depth: int) -> int:
        """Notes a new node at `depth`; returns a key never seen at that depth or above, or NO_KEY."""
        entry = self._entry(depth)
        new = keys.take(np.flatnonzero(self._entries.take(keys) < entry))
        self._entries[new] = entry
        return int(new[0]) if len(new) else NO_KEY

    def find(self, keys: np.ndarray, depth: int) -> int:
        """A key never seen above `depth`, or NO_KEY."""
        held = self._entries[keys] <= self._entry(depth)
        first = int(held.argmax()) if len(held) else 0
        return int(keys[first]) if len(held) and held[first] else NO_KEY

    def holds(self, key: int, depth: int) -> bool:
        """Whether `key` was never seen above `depth`."""
        return bool(self._entries[key] <= self._entry(depth))

    def _entry(self, depth: int) -> int:
        return self._decision * _DEPTHS + MAX_DEPTH - depth


NO_REWARD_GROUP = 0
"""Of states whose path pays nothing, and of all where paths make no difference."""


def reward_group(path_reward: float) -> int:
    """A number for each power of two of what the path to a state pays, and one for all that pay nothing."""
    if path_reward <= 0:
        return NO_REWARD_GROUP
    exponent = math.frexp(path_reward)[1]  # 1 for rewards from 1 to 2, 2 for those from 2 to 4, ...
    return exponent if exponent > 0 else exponent - 1


class Novelty:
    """Novelty by one notion after another: a table for each, of which one is in use.

    Args:
      notions: from the narrowest to the widest.
    """

    def __init__(self, notions: Sequence[Notion]):
        self.notions = notions
        self.level = 0
        self._tables = {
            (level, NO_REWARD_GROUP): NoveltyTable(*notion) for level, notion in enumerate(notions)
        }

    def start_decision(self) -> None:
        """Forgets all that was seen, and begins with the first notion."""
        self.level = 0
        for table in self._tables.values():
            table.start_decision()

    @property
    def can_widen(self) -> bool:
        return self.level + 1 < len(self.notions)

    @property
    def keys_persist(self) -> bool:
        """Whether a key means the same in later decisions, and in a process that goes on with a saved tree.

        Another notion has other keys, and the numbers of atoms in pairs depend on what was met before.
        """
        return len(self.notions) == 1 and self.notions[0].width == 1

    def table(self, group: int = NO_REWARD_GROUP) -> NoveltyTable:
        """Of the notion in use, for one of the groups that states are compared within."""
        key = self.level, group
        if key not in self._tables:
            self._tables[key] = NoveltyTable(*self.notions[self.level])
        return self._tables[key]

    def keys(self, atoms: np.ndarray) -> np.ndarray:
        """The keys, in the table, that a node with these atoms makes true."""
        if len(self.notions) > 1:
            atoms = atoms[atoms < self.notions[self.level].limit]
        return self.table().keys(atoms)
