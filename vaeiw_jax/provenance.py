"""Where, when, how and with what a result was made: what depends on the machine, recorded apart from the result."""

import platform
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from vaeiw_jax import cores, durable


def host(command: list[str] | None, started: float) -> dict[str, Any]:
    """Where, when, how and with what something was made."""
    return {
        "command": command,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.node(),
        "platform": platform.platform(),
        "processor": processor(),
        "threads": cores.usable_cores(),
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("vaeiw_jax", "ale-py", "numpy", "numba")},
    }


def note_session(path: Path, command: list[str] | None, started: float, **about: Any) -> None:
    """Adds this process to those that worked on something, in a file that tells the seconds of all of them."""
    before = durable.read_json(path)["sessions"] if path.exists() else []
    seconds = {"seconds": round(time.time() - started, 1)}
    sessions = [*before, host(command, started) | seconds | about]
    total = round(sum(session["seconds"] for session in sessions), 1)
    durable.write_json(path, {"seconds": total, "sessions": sessions})


def processor() -> str:
    """The processor's name, as well as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
