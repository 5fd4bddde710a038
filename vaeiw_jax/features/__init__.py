"""Feature sets: what is seen -> atoms.

To add one, write a class like `ram.RAM` in a file of its own and name it in `FEATURE_SETS`.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from vaeiw_jax.errors import unknown
from vaeiw_jax.features.bprost import BPROST
from vaeiw_jax.features.ram import RAM
from vaeiw_jax.features.setting import Setting

__all__ = ["FEATURE_SETS", "FeatureSet", "Setting", "check", "create"]


class FeatureSet(Protocol):
    num_features: int

    def atoms(self, seen: Any, previous: Any | None) -> np.ndarray:
        """The true features.

        Args:
          seen: a snapshot, with `screen` uint8[210, 160] and `ram` uint8[128].
          previous: the snapshot of the decision before, if there is one.

        Returns:
          int32[n] below `num_features`, in any order, without duplicates.
        """
        ...


FEATURE_SETS: dict[str, Callable[[str, Setting], FeatureSet]] = {
    "basic": BPROST,
    "bpros": BPROST,
    "bprost": BPROST,
    "ram": RAM,
}


def create(name: str, setting: Setting) -> FeatureSet:
    check(name)
    return FEATURE_SETS[name](name, setting)


def check(name: str) -> None:
    """Refuses the name of a feature set there is not."""
    if name not in FEATURE_SETS:
        raise unknown("feature set", name, FEATURE_SETS)
