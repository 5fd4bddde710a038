"""Feature sets: what is seen -> atoms. `FEATURE_SETS` has them by name; `register` adds one."""

from vaeiw_jax.features.config import FeaturesConfig, Setting
from vaeiw_jax.features.registry import (
    FEATURE_SETS,
    FeatureSet,
    FeatureSetEntry,
    check,
    create,
    identified,
    lookup,
    named_after,
    register,
)

__all__ = [
    "FEATURE_SETS",
    "FeatureSet",
    "FeatureSetEntry",
    "FeaturesConfig",
    "Setting",
    "check",
    "create",
    "identified",
    "lookup",
    "named_after",
    "register",
]
