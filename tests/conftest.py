"""Screens and commands that several tests use."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from tests.random_play import random_screens
from tests.train_process import SOON
from vaeiw_jax.atari import rom_id
from vaeiw_jax.vae import convolutions

# Compiling takes most of the time of a short run: all processes share what one has compiled.
_COMPILED = Path(tempfile.gettempdir()) / f"vaeiw_jax-tests-compiled-{os.getuid()}"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_COMPILED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
# Pytest's workers share the cores, and PyTorch's threads spin while they wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def real_screens() -> Callable[[str, int], np.ndarray]:
    """uint8[number, 210, 160]: what random play of a game shows."""
    return lambda game, number: random_screens(rom_id(game), number)


@pytest.fixture(scope="module")
def compiled_soon() -> Iterator[dict[str, str]]:
    """Trainings of a few steps in this process: slower code, compiled in half the time. The options for `jax.jit`."""
    options = convolutions.compiler_options() | SOON
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolutions, "compiler_options", lambda: options)
        yield options


@pytest.fixture(scope="session")
def launch() -> Callable[..., subprocess.CompletedProcess]:
    """Runs a command of the project as a user would, in a process of its own."""

    def run(
        module: str, *flags: str, cwd: Path | None = None, **options: Any
    ) -> subprocess.CompletedProcess:
        root = str(Path(__file__).parent.parent)
        return subprocess.run(
            [sys.executable, "-m", f"launch.{module}", *flags],
            capture_output=True,
            text=True,
            cwd=cwd or root,
            env=os.environ | {"PYTHONPATH": root},
            timeout=300,
            **options,
        )

    return run
