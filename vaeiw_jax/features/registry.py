"""The feature sets by name, each with all that the rest of the program asks about it."""

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.features import numba_compilation
from vaeiw_jax.features.config import BACKGROUNDS, UNUSUAL, FeaturesConfig, Setting
from vaeiw_jax.object_names import is_object_name, load_object, object_name


class FeatureSet(Protocol):
    """What makes atoms of what is seen. Any object with these two members will do."""

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


Factory = Callable[[FeaturesConfig, Setting], FeatureSet] | Callable[[], FeatureSet]
Check = Callable[[FeaturesConfig], None]
Identify = Callable[[FeaturesConfig, str], FeaturesConfig]
Origin = Callable[[FeaturesConfig, str], str]


@dataclass(frozen=True)
class FeatureSetEntry:
    """A feature set in the registry.

    Functions may be given by name, `package.module:function`: the module is imported when it is first needed.
    """

    name: str
    title: str
    """In tables and videos."""
    create: Factory | str
    """(config, setting) -> feature set; or () -> feature set."""
    node_seconds: float = 0.01
    """Seconds a new node takes on one core, emulator, features and novelty together, estimated generously."""
    maskable: bool = False
    """Whether the settings of a background change anything; if so, `Setting.background` has it."""
    takes_directory: bool = False
    """Whether it is made of a trained model: `NAME` of one that is shipped, `NAME:DIRECTORY` of another."""
    needs_directory: bool = False
    """Whether it is made of something learned that must be named: `NAME:DIRECTORY`."""
    check: Check | str | None = None
    """Refuses, with a UserError, settings that make no sense."""
    identified: Identify | str | None = None
    """(config, game) -> the config as records tell it, a model by its digest; None: as it is."""
    origin: Origin | str | None = None
    """(config, game) -> where a trained model comes from, in words; None: nothing is loaded."""
    benchmarked: bool = True
    """Whether the benchmark of feature sets measures it."""


FEATURE_SETS: dict[str, FeatureSetEntry] = {
    entry.name: entry
    for entry in (
        FeatureSetEntry("basic", "Basic", "vaeiw_jax.features.bprost:BPROST", 0.002, maskable=True),
        FeatureSetEntry(
            "bpros", "B-PROS", "vaeiw_jax.features.bprost:BPROST", 0.0025, maskable=True
        ),
        FeatureSetEntry(
            "bprost", "B-PROST", "vaeiw_jax.features.bprost:BPROST", 0.003, maskable=True
        ),
        FeatureSetEntry("ram", "RAM", "vaeiw_jax.features.ram:RAM", 0.002),
        FeatureSetEntry(
            "vae",
            "VAE",
            "vaeiw_jax.features.vae:VAEFeatures",
            0.0025,
            takes_directory=True,
            identified="vaeiw_jax.features.vae:identified",
            origin="vaeiw_jax.features.vae:origin",
        ),
        FeatureSetEntry(
            "policy",
            "hidden layer of a policy",
            "vaeiw_jax.features.hidden_layer:HiddenLayer",
            0.003,
            needs_directory=True,
            check="vaeiw_jax.features.hidden_layer:check",
            identified="vaeiw_jax.features.hidden_layer:identified",
            origin="vaeiw_jax.features.hidden_layer:origin",
            benchmarked=False,
        ),
    )
}
"""To add one, write a class like `ram.RAM` in a file of its own and a line here, or call `register`."""

_OWN = frozenset(FEATURE_SETS)


def register(entry: FeatureSetEntry) -> None:
    """Makes a feature set known by name to the whole program, for as long as this process lives."""
    if entry.name in _OWN:
        raise UserError(f"there is a feature set {entry.name!r} already; choose another name")
    if not entry.name.isidentifier():
        raise UserError(f"the name of a feature set is like a variable's, not {entry.name!r}")
    FEATURE_SETS[entry.name] = entry


def lookup(features: str) -> FeatureSetEntry:
    """The entry that a setting of `features` means.

    Args:
      features: `NAME`, `NAME:DIRECTORY`, or `package.module:object` for a factory or a feature set that is not
        registered.
    """
    name, colon, _ = features.partition(":")
    entry = FEATURE_SETS.get(name)
    if entry is not None and entry.needs_directory and not colon:
        raise UserError(
            f"--features={name} needs to know of which: {name}:DIRECTORY, of a run that learned a policy with "
            "--policy_hidden"
        )
    if entry is not None and (entry.takes_directory or entry.needs_directory or not colon):
        return entry
    if entry is None and is_object_name(features):
        return FeatureSetEntry(features, features.rpartition(":")[2], features, benchmarked=False)
    raise unknown("feature set", features, FEATURE_SETS)


def check(config: FeaturesConfig) -> None:
    """Refuses a feature set there is not, and settings that would change nothing for it."""
    entry = lookup(config.features)
    if any(getattr(config, name) for name in BACKGROUNDS) and not entry.maskable:
        maskable = [known.name for known in FEATURE_SETS.values() if known.maskable]
        raise UserError(
            f"a background changes nothing for --features={config.features}; "
            f"leave it out, or use {', '.join(maskable[:-1])} or {maskable[-1]}"
        )
    if config.encoder != "auto" and not entry.takes_directory:
        raise UserError(
            f"an encoder changes nothing for --features={config.features}; "
            "leave --encoder out, or use --features=vae"
        )
    learned = config.literals != FeaturesConfig.literals or config.changes or config.noise
    if (learned or config.sample_features) and not entry.takes_directory:
        raise UserError(
            "literals, changes, noise and sample_features are for learned features, not for "
            f"--features={config.features}; leave them out, or use --features=vae"
        )
    if config.usual != FeaturesConfig.usual and config.literals != UNUSUAL:
        raise UserError(
            f"usual={config.usual} changes nothing for literals={config.literals}; leave it out, or use "
            f"--literals={UNUSUAL}"
        )
    if entry.check is not None:
        _function(entry.check)(config)


def create(config: FeaturesConfig, setting: Setting) -> FeatureSet:
    """The feature set that the config names."""
    check(config)
    factory: Any = _function(lookup(config.features).create)
    if hasattr(factory, "atoms") and not isinstance(factory, type):  # the name of a feature set
        return require_feature_set(factory)
    if not callable(factory):
        raise UserError(f"{config.features} is neither a feature set nor a function that makes one")
    numba_compilation.announce()
    required = [
        parameter
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty and parameter.kind not in _VARIADIC
    ]
    if len(required) not in (0, 2):
        raise UserError(
            f"{config.features} is called without arguments or with (config, setting), and it requires "
            f"{len(required)}"
        )
    return require_feature_set(factory(config, setting) if required else factory())


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def require_feature_set(given: Any) -> FeatureSet:
    """Refuses an object that lacks one of the two members."""
    for member in ("num_features", "atoms"):
        if not hasattr(given, member):
            raise UserError(
                f"{object_name(given)} has no {member}; a feature set has num_features and atoms(seen, previous)"
            )
    feature_set: FeatureSet = given
    return feature_set


def identified(config: FeaturesConfig, game: str) -> FeaturesConfig:
    """The config with a model named by its digest, so that it says the same on every machine."""
    identify = lookup(config.features).identified
    return config if identify is None else _function(identify)(config, game)


def origin(config: FeaturesConfig, game: str) -> str:
    """Where the trained model that the config names comes from, in words; "" if it names none."""
    described = lookup(config.features).origin
    return "" if described is None else _function(described)(config, game)


def named_after(config: FeaturesConfig, features: FeatureSet) -> FeaturesConfig:
    """The config with the name of a feature set that is given as an object."""
    return dataclasses.replace(config, features=object_name(features))


def _function(given: Callable[..., Any] | str) -> Callable[..., Any]:
    return load_object(given) if isinstance(given, str) else given
