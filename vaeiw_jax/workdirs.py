"""Whose a work directory is: one set of settings may use it, and one process at a time."""

import contextlib
import fcntl
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError

CONFIG = "config.json"
"""In a work directory: whose it is."""


class BusyError(UserError):
    """Another process is doing the same."""


def claim(
    workdir: Path,
    mine: dict[str, Any],
    defaults: Mapping[str, Any] | None = None,
    may_differ: Collection[str] = (),
) -> None:
    """Marks a work directory as that of these settings, or refuses one that is another's.

    Of several processes at once, the first decides whose it is.

    Args:
      workdir: the directory.
      mine: the settings.
      defaults: what settings were that the directory does not name because they are younger.
      may_differ: settings that make it nobody else's; the directory of an older version may name them.
    """
    if not (workdir / CONFIG).exists():
        with in_turn(workdir / ".claim"):
            if not (workdir / CONFIG).exists():
                durable.write_json(workdir / CONFIG, mine)
                return
    require_same(workdir, mine, defaults, may_differ)


def require_same(
    workdir: Path,
    mine: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
    may_differ: Collection[str] = (),
) -> None:
    """Refuses a work directory that is of other settings, if it is of any; the arguments are those of `claim`."""
    path = workdir / CONFIG
    if not path.exists():
        return
    saved = durable.read_json(path)
    if saved.keys().isdisjoint(mine):
        raise UserError(
            f"{workdir} holds something else, as its {path.name} says; choose another --workdir"
        )
    theirs = {name: value for name, value in (defaults or {}).items() if name in mine} | saved
    for name in {**mine, **theirs}:
        if name not in may_differ and mine.get(name) != theirs.get(name):
            raise UserError(
                f"{workdir} holds results with {name}={theirs.get(name)}, as its {path.name} says, and this run has "
                f"{name}={mine.get(name)}; choose another --workdir"
            )


@contextlib.contextmanager
def in_turn(lock: Path) -> Iterator[None]:
    """Waits until no other process holds the lock file, and holds it."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def alone(lock: Path, what: Path) -> Iterator[None]:
    """Refuses to work on what another process works on; however this one ends, the lock is free again.

    Args:
      lock: a file that whoever works on it holds.
      what: a directory or file, for the message.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                f"another process is working on {what}; wait for it, or choose another --workdir"
            ) from None
        yield


def alone_in(workdir: Path) -> contextlib.AbstractContextManager[None]:
    """Refuses a work directory that another process works in."""
    return alone(workdir / ".working", workdir)
