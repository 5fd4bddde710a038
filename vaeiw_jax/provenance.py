"""Where, when, how and with what a result was made: what depends on the machine, recorded apart from the result."""

import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from vaeiw_jax import cores, durable


def host(started: float) -> dict[str, Any]:
    """Where, when, how and with what something was made.

    Args:
      started: when this process began with it, in seconds since the epoch.
    """
    return {
        "command": sys.orig_argv,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.node(),
        "platform": platform.platform(),
        "processor": processor(),
        "threads": cores.usable_cores(),
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("vaeiw_jax", "ale-py", "numpy", "numba")},
    }


RESULTS_SINCE = "0.2.0"
"""The first version of this program that gives the same results as this one for the same config and seed, as far as
budgets are in nodes. Whoever changes a result raises it, and plays published results again."""


def gives_the_same_results(version: str) -> bool:
    """Whether that version of this program gives the results of this one."""
    return _parts(RESULTS_SINCE) <= _parts(version) <= _parts(metadata.version("vaeiw_jax"))


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdecimal()] or [-1]


class Sessions:
    """The processes that worked on something one after another, in a file that holds the seconds of all of them.

    Args:
      path: of the file. One that is damaged is refused now, not when there is something to add to it.
    """

    def __init__(self, path: Path):
        self._started = time.time()
        self._path = path
        self._before = _earlier(path)

    def including_this(self, **about: Any) -> dict[str, Any]:
        """What the file says when this process, of which `about` tells, ends now."""
        seconds = {"seconds": round(time.time() - self._started, 1)}
        sessions = [*self._before, host(self._started) | seconds | about]
        total = round(sum(session["seconds"] for session in sessions), 1)
        return {"seconds": total, "sessions": sessions}

    def write(self, **about: Any) -> None:
        """Adds this process."""
        durable.write_json(self._path, self.including_this(**about))


def _earlier(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    sessions = durable.read_json(path).get("sessions")
    if not isinstance(sessions, list) or not all(
        isinstance(session, dict) and isinstance(session.get("seconds"), int | float)
        for session in sessions
    ):
        raise durable.DamagedFileError(path, "it has no list of sessions")
    return sessions


def processor() -> str:
    """The processor's name, as far as the system knows it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
