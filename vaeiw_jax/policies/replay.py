"""The last decisions, to learn from."""

from typing import NamedTuple

import numpy as np


class Decisions(NamedTuple):
    """Decisions, or batches of them: arrays with the same leading axes."""

    bits: np.ndarray
    """uint8[..., ceil(rows / 8)], which rows of the first layer were true at the root, packed."""
    target: np.ndarray
    """float32[..., num_actions], how probable the actions should have been."""
    tried: np.ndarray
    """bool[..., num_actions]"""
    value: np.ndarray
    """float32[...], the return of the best action, by `symlog`."""


class Replay:
    """A ring of decisions: the newest takes the place of the oldest.

    Attributes:
      added: how many decisions were added so far.
    """

    def __init__(self, capacity: int, num_rows: int, num_actions: int):
        self._num_rows = num_rows
        self._kept = Decisions(
            np.zeros((capacity, -(-num_rows // 8)), np.uint8),
            np.zeros((capacity, num_actions), np.float32),
            np.zeros((capacity, num_actions), np.bool_),
            np.zeros(capacity, np.float32),
        )
        self.added = 0

    def __len__(self) -> int:
        return min(self.added, len(self._kept.value))

    def add(self, rows: np.ndarray, target: np.ndarray, tried: np.ndarray, value: float) -> None:
        true = np.zeros(self._num_rows, np.bool_)
        true[rows] = True
        entry = self.added % len(self._kept.value)
        for array, added in zip(self._kept, (np.packbits(true), target, tried, value), strict=True):
            array[entry] = added
        self.added += 1

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Decisions:
        """Decisions drawn uniformly, with replacement, for each entry of an array of that shape."""
        drawn = rng.integers(len(self), size=shape)
        return Decisions(*(array[drawn] for array in self._kept))

    def to_arrays(self) -> dict[str, np.ndarray]:
        kept = {name: array[: len(self)] for name, array in self._kept._asdict().items()}
        return kept | {"added": np.array(self.added)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.added = int(arrays["added"])
        for name, array in self._kept._asdict().items():
            array[: len(self)] = arrays[name]
