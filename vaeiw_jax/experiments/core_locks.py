"""Cores for a process alone, so that others do not spend its seconds.

Each core of a machine has a lock file that whoever runs on it holds. The kernel lets go of the locks of a process that
dies, so that no crash can leave a core taken; and as the files are the machine's, engines need not know of one another.
"""

import contextlib
import fcntl
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from vaeiw_jax.errors import UserError


def _directory() -> Path:
    """Of the lock files."""
    return Path(tempfile.gettempdir()) / f"vaeiw_jax-cores-{os.getuid()}"


@contextlib.contextmanager
def pinned(
    number: int, alone: bool, interrupted: Callable[[], bool] = lambda: False
) -> Iterator[list[int]]:
    """Runs what is inside on `number` cores, and gives their numbers.

    Args:
      number: how many.
      alone: wait for cores nobody else holds; otherwise, where there are too few of these, share.
      interrupted: asked while waiting; once it returns True, share rather than wait on.
    """
    usable = sorted(os.sched_getaffinity(0))
    if number > len(usable):
        raise UserError(f"a job is to have {number} cores, and this machine has {len(usable)}")
    held = _lock(usable, number)
    while len(held) < number and alone and not interrupted():
        time.sleep(0.2)
        held = _lock(usable, number)
    others = [core for core in usable if core not in held]
    random.shuffle(others)  # so that those who share do not all share one
    cores = [*held, *others][:number]
    os.sched_setaffinity(0, cores)
    try:
        yield cores
    finally:
        os.sched_setaffinity(0, usable)
        for file in held.values():
            file.close()


def _lock(cores: list[int], number: int) -> dict[int, TextIO]:
    """The locks of `number` cores, or of none where fewer are free, so as to hold none while waiting."""
    directory = _directory()
    directory.mkdir(parents=True, exist_ok=True)
    held: dict[int, TextIO] = {}
    for core in cores:
        file = (directory / f"{core}.lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held[core] = file
        except BlockingIOError:
            file.close()
        if len(held) == number:
            return held
    for taken in held.values():
        taken.close()
    return {}
