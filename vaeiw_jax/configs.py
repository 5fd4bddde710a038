"""Configs on disk and in messages: the settings of a dataclass, and of those inside it, by flag name.

Nothing else in the program writes or reads configs.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from vaeiw_jax.errors import UserError

Config = TypeVar("Config")


def settings(config: Any) -> dict[str, Any]:
    """A config dataclass by flag name, those of the configs inside it included."""
    flat: dict[str, Any] = {}
    for name in (entry.name for entry in dataclasses.fields(config)):
        value = getattr(config, name)
        flat |= settings(value) if dataclasses.is_dataclass(value) else {name: value}
    return flat


def from_settings(
    config_class: type[Config],
    settings: Mapping[str, Any],
    source: Path | None = None,
    partial: bool = False,
) -> Config:
    """A config, and the configs inside it, from settings by flag name: the inverse of `settings`.

    Args:
      config_class: what to make.
      settings: all of its settings, and no others.
      source: the file they come from, which an error names.
      partial: settings may be left out, and then have their defaults.
    """
    try:
        if not isinstance(settings, Mapping):
            raise UserError(f"settings are an object, not {settings!r}")
        _check_names(config_class, settings, partial)
        return _build(config_class, settings)
    except UserError as error:
        if source is None:
            raise
        raise UserError(f"{source} does not hold a {config_class.__name__}: {error}") from error


def names(config_class: type) -> set[str]:
    """The flags made from a config dataclass."""
    found: set[str] = set()
    for entry, kind in fields(config_class):
        found |= names(kind) if dataclasses.is_dataclass(kind) else {entry.name}
    return found


def fields(config_class: type) -> list[tuple[dataclasses.Field[Any], type]]:
    """The fields of a config dataclass, each with its type, None aside."""
    hints = typing.get_type_hints(config_class)
    return [(entry, _without_none(hints[entry.name])) for entry in dataclasses.fields(config_class)]


def default(config_class: type, name: str) -> Any:
    """The default of a setting of a config or of one inside it; MISSING if it has none."""
    for entry, kind in fields(config_class):
        if dataclasses.is_dataclass(kind):
            if name in names(kind):
                return defaults_inside(entry).get(name, default(kind, name))
        elif entry.name == name:
            return entry.default
    raise KeyError(name)


def defaults(config_class: type) -> dict[str, Any]:
    """The defaults of all settings that have one."""
    found = {name: default(config_class, name) for name in names(config_class)}
    return {name: value for name, value in found.items() if value is not dataclasses.MISSING}


def defaults_inside(entry: dataclasses.Field[Any]) -> dict[str, Any]:
    """The defaults that a field gives settings of the config inside it, in place of that config's own.

    They are in its metadata: `field(metadata={"defaults": {"features": "bprost"}})`.
    """
    return dict(entry.metadata.get("defaults", {}))


def same_as(config_class: type, name: str) -> Any:
    """A dataclass field with the default and the help of another config's field."""
    (entry,) = (entry for entry, _ in fields(config_class) if entry.name == name)
    return dataclasses.field(default=entry.default, metadata=entry.metadata)


def _build(config_class: type[Config], settings: Mapping[str, Any]) -> Config:
    values: dict[str, Any] = {}
    for entry, kind in fields(config_class):
        if dataclasses.is_dataclass(kind):
            values[entry.name] = _build(kind, {**defaults_inside(entry), **settings})
        elif entry.name in settings:
            _check_type(config_class, entry.name, kind, settings[entry.name])
            values[entry.name] = settings[entry.name]
    return config_class(**values)


def _check_names(config_class: type, settings: Mapping[str, Any], partial: bool) -> None:
    known = names(config_class)
    for name in settings:
        if name not in known:
            raise UserError(f"it has no setting {name!r}")
    for name in sorted(_required(config_class) if partial else known):
        if name not in settings:
            raise UserError(f"{name} is missing")


def _required(config_class: type) -> set[str]:
    """The settings that have no default."""
    found: set[str] = set()
    for entry, kind in fields(config_class):
        if dataclasses.is_dataclass(kind):
            found |= _required(kind)
        elif entry.default is dataclasses.MISSING:
            found.add(entry.name)
    return found


def _check_type(config_class: type, name: str, kind: type, value: Any) -> None:
    hint = typing.get_type_hints(config_class)[name]
    if value is None and types.NoneType in typing.get_args(hint):
        return
    accepted = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise UserError(f"{name} must be of type {kind.__name__}, not {value!r}")


def _without_none(hint: Any) -> Any:
    """X of `X | None`."""
    if isinstance(hint, types.UnionType):
        (kind,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
        return kind
    return hint
