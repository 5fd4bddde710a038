"""Configs on disk and in messages: the settings of a dataclass, and of those inside it, by flag name."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

Config = TypeVar("Config")


def settings(config: Any) -> dict[str, Any]:
    """A config dataclass by flag name, those of the configs inside it included."""
    flat: dict[str, Any] = {}
    for name in (entry.name for entry in dataclasses.fields(config)):
        value = getattr(config, name)
        flat |= settings(value) if dataclasses.is_dataclass(value) else {name: value}
    return flat


def from_settings(config_class: type[Config], settings: Mapping[str, Any]) -> Config:
    """A config, and the configs inside it, from settings by flag name: the inverse of `settings`."""
    hints = typing.get_type_hints(config_class)
    values: dict[str, Any] = {}
    for entry in dataclasses.fields(config_class):  # type: ignore[arg-type]
        kind = hints[entry.name]
        if dataclasses.is_dataclass(kind):
            values[entry.name] = from_settings(typing.cast(type, kind), settings)
        elif entry.name in settings:
            values[entry.name] = settings[entry.name]
    return config_class(**values)


def names(config_class: type) -> set[str]:
    """The flags made from a config dataclass."""
    hints = typing.get_type_hints(config_class)
    found: set[str] = set()
    for entry in dataclasses.fields(config_class):
        kind = hints[entry.name]
        found |= names(kind) if dataclasses.is_dataclass(kind) else {entry.name}  # type: ignore[arg-type]
    return found
