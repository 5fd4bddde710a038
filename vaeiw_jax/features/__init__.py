"""Feature sets: what is seen -> atoms.

To add one, write a class like `ram.RAM` in a file of its own and name it in `FEATURE_SETS`.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.features import bprost
from vaeiw_jax.features.bprost import BPROST
from vaeiw_jax.features.config import FeaturesConfig, Setting
from vaeiw_jax.features.ram import RAM

__all__ = ["FEATURE_SETS", "FeatureSet", "FeaturesConfig", "Setting", "check", "create"]


class FeatureSet(Protocol):
    num_features: int

    def atoms(self, seen: Any, previous: Any | None) -> np.ndarray:
        """The true features.

        Args:
          seen: a snapshot, with `screen` uint8[height, width] and `ram` uint8[128].
          previous: the snapshot of the decision before, if there is one.

        Returns:
          int32[n] below `num_features`, in any order, without duplicates.
        """
        ...


FEATURE_SETS: dict[str, Callable[[FeaturesConfig, Setting], FeatureSet]] = {
    "basic": BPROST,
    "bpros": BPROST,
    "bprost": BPROST,
    "ram": RAM,
}


def create(config: FeaturesConfig, setting: Setting) -> FeatureSet:
    check(config)
    return FEATURE_SETS[config.features](config, setting)


def check(config: FeaturesConfig) -> None:
    """Refuses a feature set there is not, and settings that would change nothing for it."""
    if config.features not in FEATURE_SETS:
        raise unknown("feature set", config.features, FEATURE_SETS)
    if config.background_mask and config.features not in bprost.SETS:
        raise UserError(
            f"a background mask changes nothing for --features={config.features}; "
            "leave it out, or use basic, bpros or bprost"
        )
