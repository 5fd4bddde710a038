"""The console's memory: which value each of its 128 bytes holds."""

from typing import Protocol

import numpy as np

from vaeiw_jax.features.config import FeaturesConfig, Setting

NUM_BYTES, NUM_VALUES = 128, 256


class Remembered(Protocol):
    """What the features look at."""

    @property
    def ram(self) -> np.ndarray: ...


class RAM:
    """Atom `256 * b + v`: byte b holds v."""

    num_features = NUM_BYTES * NUM_VALUES

    def __init__(self, config: FeaturesConfig, setting: Setting):
        self._first = np.arange(NUM_BYTES, dtype=np.int32) * NUM_VALUES

    def atoms(self, seen: Remembered, previous: Remembered | None) -> np.ndarray:
        return self._first + seen.ram
