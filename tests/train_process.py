"""Training in a process of its own, as users start it.

What is compiled is shared between processes, so of trainings of the same size, model and learning rate only the first
is expensive: most have `SCREENS` screens and a `BATCH` of two.
"""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCREENS, BATCH = 12, 2
"""One screen to validate on, five batches to train on."""
SOON = {"xla_backend_optimization_level": "0"}
"""For `jax.jit(..., compiler_options=)` of what runs a few times: slower code, compiled in half the time."""


def start(
    frames: Path, workdir: Path, *flags: str, devices: int = 1, module: str = "launch.train"
) -> subprocess.Popen[str]:
    """Starts `python -m launch.train` on so many virtual devices."""
    xla = "--xla_backend_optimization_level=0"  # a few steps need no fast code, but code soon
    if devices > 1:
        xla += f" --xla_force_host_platform_device_count={devices}"
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": xla}
    return subprocess.Popen(
        [sys.executable, "-m", module, f"--screens={frames}", f"--workdir={workdir}", *flags],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder that `make` fills, once for all of pytest's worker processes."""
    base = factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    directory = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            make(unfinished(directory))
            unfinished(directory).rename(directory)
    return directory


def unfinished(directory: Path) -> Path:
    """Where a folder of `once` was while it was made."""
    return directory.with_name(f"{directory.name}.unfinished")


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Waits for the end: return code, stdout, stderr."""
    stdout, stderr = process.communicate(timeout=500)
    return process.returncode, stdout, stderr


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Waits for what a running process is to bring about."""
    while not condition():
        if process.poll() is not None:
            raise AssertionError(f"the process ended too early: {process.communicate()}")
        time.sleep(0.02)
