"""What every front door shares: flags made from config dataclasses, and errors said in a sentence."""

import dataclasses
import errno
import signal
import sys
import types
import typing
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, TypeVar

from absl import app, flags, logging

from vaeiw_jax.errors import UserError

Config = TypeVar("Config")

_DEFINERS: dict[type, Callable[..., Any]] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


def define_flags(config_class: type, exclude: tuple[str, ...] = ()) -> None:
    """Defines one flag per field of a config dataclass, those of the configs inside it included."""
    hints = typing.get_type_hints(config_class)
    for field in dataclasses.fields(config_class):
        kind = _without_none(hints[field.name])
        if dataclasses.is_dataclass(kind):
            define_flags(typing.cast(type, kind), exclude)
        elif field.name not in exclude:
            default = None if field.default is dataclasses.MISSING else field.default
            _DEFINERS[kind](field.name, default, field.metadata["help"], module_name=sys.argv[0])


def read_flags(
    config_class: type[Config], defaults: Mapping[str, Any] | None = None, **values: Any
) -> Config:
    """Builds the config the flags describe.

    `values` are taken as they are; a flag the user gave comes next, then `defaults`, then the dataclass's own default.
    """
    defaults = defaults or {}
    hints = typing.get_type_hints(config_class)
    for field in dataclasses.fields(config_class):  # type: ignore[arg-type]
        kind = _without_none(hints[field.name])
        if field.name in values:
            continue
        if dataclasses.is_dataclass(kind):
            values[field.name] = read_flags(typing.cast(type, kind), defaults)
        elif given(field.name):
            values[field.name] = flags.FLAGS[field.name].value
        elif field.name in defaults:
            values[field.name] = defaults[field.name]
        elif field.default is dataclasses.MISSING:
            raise UserError(f"--{field.name} is missing: {field.metadata['help']}")
    return config_class(**values)


def given(name: str) -> bool:
    """Whether the user gave the flag on the command line."""
    return name in flags.FLAGS and bool(flags.FLAGS[name].present)


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType):
        (kind,) = (part for part in typing.get_args(hint) if part is not types.NoneType)
        return kind
    return hint


class Interrupt:
    """Turns the first Ctrl-C, or SIGTERM, into a wish to stop after this decision; the second stops at once."""

    def __init__(self) -> None:
        self.wished = False
        signal.signal(signal.SIGINT, self._wish)
        signal.signal(signal.SIGTERM, self._wish)

    def _wish(self, number: int, frame: FrameType | None) -> None:
        self.wished = True
        signal.signal(number, signal.SIG_DFL)

    def __call__(self) -> bool:
        return self.wished


def run(main: Callable[[], int | None]) -> None:
    """Runs a front door: parses the flags, and ends with one clear sentence where the user can mend it."""

    def guarded(argv: list[str]) -> int | None:
        logging.set_verbosity(
            logging.WARNING
        )  # JAX tells at length which accelerators there are not
        try:
            if len(argv) > 1:
                raise UserError(f"unexpected argument {argv[1]!r}; flags look like --name=value")
            return main()
        except UserError as error:
            return sys.exit(f"error: {error}")
        except OSError as error:
            return sys.exit(f"error: {_describe(error)}")

    app.run(guarded)


def _describe(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return (
                f"no space left to write {error.filename}; make some and run the same command again: "
                "what was recorded before is safe"
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"no permission to write {error.filename}; choose another --workdir"
        case _:
            return f"{error.filename}: {error.strerror or error}"
