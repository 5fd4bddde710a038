"""The features of pi-IW (Junyent et al., ICAPS 2019): the hidden units of a policy's network, true where positive."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import durable, models
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import registry
from vaeiw_jax.features.config import BACKGROUNDS, FeaturesConfig, Setting
from vaeiw_jax.policies import files
from vaeiw_jax.policies.network import Network

_MADE_BY_THE_EPISODE = (*BACKGROUNDS, "noise")
"""Settings for which an episode gives its features something that this feature set does not get."""


class HiddenLayer:
    """The hidden units of a policy that was learned before, as a function of the features it was learned on.

    Args:
      config: `features` names the directory of the policy, or of the run it was learned in.
      setting: where the features are used.
    """

    def __init__(self, config: FeaturesConfig, setting: Setting):
        directory = files.find(_given(config), setting.game)
        about, parameters = files.read(directory)
        if "hidden_weights" not in parameters:
            raise UserError(
                f"the policy in {directory} is linear; give one that was learned with --policy_hidden=512, or so"
            )
        base = _base_config(about, directory)
        self._base: Any = registry.create(base, setting)
        if self._base.num_features != about["num_features"]:
            raise durable.DamagedFileError(directory, "it is for another number of features")
        self._network = Network(parameters, self._base.num_features, len(about["actions"]))
        self.num_features = len(parameters["hidden_bias"])

    def atoms(self, seen: Any, previous: Any | None) -> np.ndarray:
        units = self._network.hidden(self._base.atoms(seen, previous))
        return np.flatnonzero(units > 0).astype(np.int32)

    @property
    def prefetch(self) -> Callable[..., None] | None:
        return getattr(self._base, "prefetch", None)

    @property
    def usual(self) -> np.ndarray | None:
        return getattr(self._base, "usual", None)

    @usual.setter
    def usual(self, code: np.ndarray) -> None:
        self._base.usual = code


def check(config: FeaturesConfig) -> None:
    """Refuses settings of the features below the policy: its directory has them."""
    for entry in dataclasses.fields(FeaturesConfig):
        value = getattr(config, entry.name)
        if entry.name != "features" and value != entry.default:
            raise UserError(
                f"{entry.name}={value} changes nothing for --features={config.features}, whose policy knows the "
                "features that it was learned on; leave it out"
            )


def identified(config: FeaturesConfig, game: str) -> FeaturesConfig:
    """The config with the policy by its digest."""
    named = f"{config.kind}:{files.identity(_given(config), game)}"
    return dataclasses.replace(config, features=named)


def origin(config: FeaturesConfig, game: str) -> str:
    """Where the policy comes from, in words."""
    return f"the hidden layer of the policy in {files.find(_given(config), game)}"


def _given(config: FeaturesConfig) -> str:
    return config.features.partition(":")[2]


def _base_config(about: dict[str, Any], directory: Path) -> FeaturesConfig:
    """The features that a policy was learned on; `about` names their model by its digest."""
    known = {entry.name for entry in dataclasses.fields(FeaturesConfig)} - {"encoder"}
    settings = {name: about[name] for name in known if name in about}
    for name in _MADE_BY_THE_EPISODE:
        if settings.get(name):
            raise UserError(
                f"the policy in {directory} was learned with {name}, which its hidden layer cannot do without; give "
                "one that was not"
            )
    kind, _, digest = settings["features"].partition(":")
    entry = registry.lookup(settings["features"])
    # Behind the colon of `package.module:object` there is no digest.
    if digest and (entry.takes_directory or entry.needs_directory):
        shipped = models.shipped_by_digest()
        if digest not in shipped:
            raise UserError(
                f"the policy in {directory} was learned on a model that is not shipped, {digest[:12]}; give one that "
                "was learned on a shipped one"
            )
        settings["features"] = f"{kind}:{shipped[digest]}"
    return FeaturesConfig(**settings)
