"""What all commands share: flags made from config dataclasses, progress bars, interrupts, errors in a sentence."""

import contextlib
import dataclasses
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any, TypeVar

from absl import app, flags, logging
from tqdm import tqdm

from vaeiw_jax import configs
from vaeiw_jax.errors import UserError, describe
from vaeiw_jax.progress import Progress

Config = TypeVar("Config")

INTERRUPTED = 130
"""The code to exit with after Ctrl-C, as shells have it."""

_DEFINERS: dict[type, Callable[..., Any]] = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}


def define_flags(
    *config_classes: type,
    exclude: tuple[str, ...] = (),
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Defines one flag per field of config dataclasses, those of the configs inside them included, each once.

    `defaults` come before those of the dataclasses.
    """
    defaults = defaults or {}
    for config_class in config_classes:
        for field, kind in configs.fields(config_class):
            if dataclasses.is_dataclass(kind):
                inside = {**configs.defaults_inside(field), **defaults}
                define_flags(kind, exclude=exclude, defaults=inside)
            elif field.name not in exclude and field.name not in flags.FLAGS:
                own = None if field.default is dataclasses.MISSING else field.default
                default = defaults.get(field.name, own)
                define = _DEFINERS[kind]
                define(field.name, default, field.metadata["help"], module_name=sys.argv[0])


def read_flags(config_class: type[Config], defaults: Mapping[str, Any] | None = None) -> Config:
    """Builds the config the flags describe.

    A flag the user gave comes first, then `defaults`, then the dataclass's own default.
    """
    defaults = defaults or {}
    values: dict[str, Any] = {}
    for field, kind in configs.fields(config_class):
        if dataclasses.is_dataclass(kind):
            values[field.name] = read_flags(kind, {**configs.defaults_inside(field), **defaults})
        elif given(field.name):
            values[field.name] = flags.FLAGS[field.name].value
        elif field.name in defaults:
            values[field.name] = defaults[field.name]
        elif field.default is dataclasses.MISSING:
            raise UserError(f"--{field.name} is missing: {field.metadata['help']}")
    return config_class(**values)


def required(flag: flags.FlagHolder[str | None]) -> str:
    """The value of a flag that must be given."""
    if not flag.value:
        raise UserError(f"--{flag.name} is missing: {flags.FLAGS[flag.name].help}")
    return flag.value


def require_with(flag: flags.FlagHolder[bool], other: flags.FlagHolder[bool]) -> None:
    """Refuses a flag that changes nothing without another."""
    if flag.value and not other.value:
        raise UserError(f"--{flag.name} changes nothing without --{other.name}; give both")


def given(name: str) -> bool:
    """Whether the user gave the flag on the command line."""
    return name in flags.FLAGS and bool(flags.FLAGS[name].present)


def given_flags(names: set[str]) -> dict[str, Any]:
    """Those of the flags that the user gave on the command line."""
    return {name: flags.FLAGS[name].value for name in sorted(names) if given(name)}


class Interrupt:
    """True after the first Ctrl-C or SIGTERM, so that a job saves and ends; the second ends the process at once."""

    def __init__(self) -> None:
        self._requested = False
        signal.signal(signal.SIGINT, self._request)
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, number: int, frame: FrameType | None) -> None:
        self._requested = True
        signal.signal(number, signal.SIG_DFL)

    def __call__(self) -> bool:
        return self._requested


def stopped() -> int:
    """Says how to go on after an interruption; returns the code to exit with."""
    print(f"stopped and saved; to go on: {shlex.join(sys.orig_argv)}")
    return INTERRUPTED


class ProgressBar:
    """The progress of a job as a line on the terminal; where there is none, a line now and then."""

    def __init__(self, title: str, unit: str, **options: Any):
        self._options = {"desc": title, "unit": f" {unit}", "dynamic_ncols": True, **options}
        self._bar: Any = None

    def tell(self, progress: Progress) -> None:
        on_terminal = sys.stderr.isatty()
        if self._bar is None:
            self._bar = tqdm(
                total=progress.total,
                initial=progress.done,
                mininterval=0.2 if on_terminal else 30,
                **self._options,
            )
        only_text = progress.done == self._bar.n  # which tqdm does not draw of itself
        self._bar.set_postfix_str(progress.text, refresh=on_terminal and only_text)
        self._bar.update(progress.done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


@contextlib.contextmanager
def progress_bar(title: str, unit: str, **options: Any) -> Iterator[ProgressBar]:
    """A bar for what is inside; options are those of tqdm."""
    bar = ProgressBar(title, unit, **options)
    try:
        yield bar
    finally:
        bar.close()


def run(main: Callable[[], int | None]) -> None:
    """Runs a command: parses the flags, and ends with one sentence where the user made a mistake."""

    def guarded(argv: list[str]) -> int | None:
        logging.set_verbosity(logging.WARNING)  # JAX logs which accelerators there are not
        try:
            if len(argv) > 1:
                raise UserError(f"unexpected argument {argv[1]!r}; flags look like --name=value")
            return main()
        except UserError as error:
            return sys.exit(f"error: {error}")
        except OSError as error:
            return sys.exit(f"error: {describe(error)}")
        except KeyboardInterrupt:  # of a command that has nothing to save
            return sys.exit(INTERRUPTED)

    app.run(guarded)
