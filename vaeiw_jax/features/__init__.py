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

__all__ = [
    "FEATURE_SETS",
    "FeatureSet",
    "FeaturesConfig",
    "Setting",
    "check",
    "create",
    "identified",
]


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


def _vae(config: FeaturesConfig, setting: Setting) -> FeatureSet:
    from vaeiw_jax.features.vae import (
        VAEFeatures,
    )  # JAX takes seconds to load: only who needs it waits

    return VAEFeatures(config, setting)


FEATURE_SETS: dict[str, Callable[[FeaturesConfig, Setting], FeatureSet]] = {
    "basic": BPROST,
    "bpros": BPROST,
    "bprost": BPROST,
    "ram": RAM,
    "vae": _vae,
}


def create(config: FeaturesConfig, setting: Setting) -> FeatureSet:
    check(config)
    return FEATURE_SETS[config.kind](config, setting)


def identified(config: FeaturesConfig, game: str) -> FeaturesConfig:
    """The config with a model named by its digest, so that it says the same on every machine."""
    if config.kind != "vae":
        return config
    from vaeiw_jax.features import vae

    return vae.identified(config, game)


def check(config: FeaturesConfig) -> None:
    """Refuses a feature set there is not, and settings that would change nothing for it."""
    if config.kind not in FEATURE_SETS or (config.kind != "vae" and ":" in config.features):
        raise unknown("feature set", config.features, FEATURE_SETS)
    if config.background_mask and config.kind not in bprost.SETS:
        raise UserError(
            f"a background mask changes nothing for --features={config.features}; "
            "leave it out, or use basic, bpros or bprost"
        )
