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
    """A table from atoms to depths that is emptied without being touched.

    An entry holds the number of the decision that wrote it and the depth it wrote, joined so that a later decision, and
    within one decision a lesser depth, is a larger number: `decision * 2^15 + (2^15 - 1 - depth)`. What an earlier
    decision wrote is therefore smaller than all this decision can write, which is to say that it counts as never seen.
    """

    def __init__(self, num_keys: int):
        self._entries = np.zeros(num_keys, np.int32)  # pages of zeros cost nothing until written
        self._decision = 0
        self.start_decision()

    def start_decision(self) -> None:
        """Forgets all that was seen."""
        if self._decision == _LAST_DECISION:
            self._entries.fill(0)
            self._decision = 0
        self._decision += 1

    def admit(self, atoms: np.ndarray, depth: int) -> int:
        """Notes a new node at `depth`; returns a key never seen at that depth or above, or NO_KEY.

        Args:
          atoms: int32[n], in any order, without duplicates.
          depth: of the node.
        """
        return self._admit_keys(atoms, depth)

    def find(self, atoms: np.ndarray, depth: int) -> int:
        """A key that a node with these atoms makes true, never seen above `depth`; or NO_KEY."""
        return self._find_key(atoms, depth)

    def holds(self, key: int, depth: int) -> bool:
        """Whether `key` was never seen above `depth`."""
        return bool(self._entries[key] <= self._entry(depth))

    def _admit_keys(self, keys: np.ndarray, depth: int) -> int:
        entry = self._entry(depth)
        new = keys.take(np.flatnonzero(self._entries.take(keys) < entry))
        self._entries[new] = entry
        return int(new[0]) if len(new) else NO_KEY

    def _find_key(self, keys: np.ndarray, depth: int) -> int:
        held = self._entries[keys] <= self._entry(depth)
        first = int(held.argmax()) if len(held) else 0
        return int(keys[first]) if len(held) and held[first] else NO_KEY

    def _entry(self, depth: int) -> int:
        return self._decision * _DEPTHS + MAX_DEPTH - depth


class PairTable(NoveltyTable):
    """The same for unordered pairs of atoms, an atom with itself among them.

    Atoms are numbered in the order in which they are first met: those that ever occur are few, and their pairs then lie
    close together in memory, in a lower triangle that is stored row by row.

    Of a node's pairs, few need be looked at: those whose atoms are both in a node noted above, such as the parent, were
    seen there.
    """

    def __init__(self, num_features: int):
        if num_features > MAX_FEATURES_OF_PAIRS:
            raise UserError(
                f"width 2 needs a feature set of at most {MAX_FEATURES_OF_PAIRS:,} features, and this one has "
                f"{num_features:,}; use width 1, or the features of a VAE"
            )
        self._numbers = np.full(num_features, _UNNUMBERED, np.int32)
        self._numbered = 0
        self._row_starts = np.cumsum(np.arange(num_features, dtype=np.int32), dtype=np.int32)
        self._marked = np.zeros(num_features, np.bool_)
        self._noted: dict[int, np.ndarray] = {}
        super().__init__(num_features * (num_features + 1) // 2)

    def start_decision(self) -> None:
        super().start_decision()
        self._noted.clear()

    def admit(self, atoms: np.ndarray, depth: int) -> int:
        numbers = self._numbers_of(atoms)
        witness = self._admit_keys(self._pairs_not_in(numbers, (depth - 1, depth)), depth)
        self._noted[depth] = numbers
        return witness

    def find(self, atoms: np.ndarray, depth: int) -> int:
        return self._find_key(self._pairs_not_in(self._numbers_of(atoms), (depth - 1,)), depth)

    def _numbers_of(self, atoms: np.ndarray) -> np.ndarray:
        """int32[n]: the numbers of atoms, which those that were never met are given now."""
        numbers = self._numbers[atoms]
        new = atoms[numbers == _UNNUMBERED]
        if len(new):
            self._numbers[new] = np.arange(self._numbered, self._numbered + len(new))
            self._numbered += len(new)
            numbers = self._numbers[atoms]
        return numbers

    def _pairs_not_in(self, numbers: np.ndarray, depths: Sequence[int]) -> np.ndarray:
        """The keys of all pairs but those of the last node noted at the first of these depths that has one."""
        noted = [self._noted[depth] for depth in depths if depth in self._noted]
        if not noted:
            return self._pairs(numbers, numbers)
        self._marked[noted[0]] = True
        seen = self._marked[numbers]
        self._marked[noted[0]] = False
        return self._pairs(numbers[~seen], numbers)

    def _pairs(self, numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The keys of the pairs of one of `numbers` and one of `others`; some of them twice."""
        rows = self._row_starts[numbers][:, None] + others
        columns = numbers[:, None] + self._row_starts[others]
        return np.maximum(rows, columns, out=rows).ravel()  # the key has the larger number's row


def novelty_table(num_features: int, width: int) -> NoveltyTable:
    """A table of atoms (width 1), or of pairs of atoms (width 2)."""
    return NoveltyTable(num_features) if width == 1 else PairTable(num_features)


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
            (level, NO_REWARD_GROUP): novelty_table(*notion) for level, notion in enumerate(notions)
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
            self._tables[key] = novelty_table(*self.notions[self.level])
        return self._tables[key]

    def counting(self, atoms: np.ndarray) -> np.ndarray:
        """Those of the atoms that count by the notion in use. What cannot be atoms is refused."""
        self._check(atoms)
        return atoms[atoms < self.notions[self.level].limit] if len(self.notions) > 1 else atoms

    def _check(self, atoms: np.ndarray) -> None:
        if not isinstance(atoms, np.ndarray) or atoms.ndim != 1 or atoms.dtype.kind not in "iu":
            found = (
                f"an array of {atoms.dtype}"
                if isinstance(atoms, np.ndarray)
                else type(atoms).__name__
            )
            raise UserError(
                f"atoms are a flat NumPy array of whole numbers, int32[n] as np.flatnonzero(mask) gives, not {found}"
            )
        # Of several notions each leaves out what it does not count.
        limit = self.notions[0].limit if len(self.notions) == 1 else math.inf
        if len(atoms) and not (atoms.min() >= 0 and atoms.max() < limit):
            raise UserError(
                f"atoms are numbered from 0 and below num_features={limit:,}, and these go from {atoms.min():,} to "
                f"{atoms.max():,}"
            )
