"""What was measured so far: one JSON file, which every measurement is added to when it is made."""

import math
import os
import platform
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from vaeiw_jax import durable, provenance
from vaeiw_jax.cores import usable_cores

FILE = "benchmark.json"
PICTURE = "benchmark.png"


class Measurements:
    """The measurements in a work directory.

    They are found by suite, part and name, such as `planner`, `rates`, `Pong`. A benchmark that was killed goes on with
    what is missing.

    Args:
      workdir: where the file is.
      again: measure what was measured before, too.
    """

    def __init__(self, workdir: Path, again: bool = False):
        self.path = workdir / FILE
        self._again = again
        self._new: set[tuple[str, str, str]] = set()
        self._all = durable.read_json(self.path) if self.path.exists() else {}

    def missing(self, suite: str, part: str, names: Iterable[str]) -> list[str]:
        """Which of the names are still to be measured."""
        known = self.of(suite, part)
        return [
            name
            for name in names
            if name not in known or (self._again and (suite, part, name) not in self._new)
        ]

    def of(self, suite: str, part: str) -> dict[str, Any]:
        """The measurements of a part, by name."""
        found: dict[str, Any] = self._all.get(suite, {}).get(part, {})
        return found

    def put(self, suite: str, part: str, name: str, measured: Mapping[str, Any]) -> None:
        """Adds a measurement, and where and how it was made."""
        parts = self._all.setdefault(suite, {}).setdefault(part, {})
        parts[name] = dict(measured)
        self._new.add((suite, part, name))
        self._all["machine"] = machine()
        durable.write_json(self.path, self._all)


def machine() -> dict[str, Any]:
    """What the measurements depend on."""
    versions = ("vaeiw_jax", "ale-py", "jax", "jaxlib", "numba", "numpy", "torch")
    return {
        "processor": provenance.processor(),
        "cores": usable_cores(),
        "cores_of_machine": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in versions},
    }


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
