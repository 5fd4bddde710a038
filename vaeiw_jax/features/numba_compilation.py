"""Numba compiles the feature code when it is first used: it says so, or does it ahead of time."""

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

MESSAGE = "compiling feature code, once after an installation: this may take 15 seconds"

_listeners: list[Any] = []


def announce() -> None:
    """From now on, prints one line to stderr before code of this package is compiled.

    Code that is in Numba's cache on disk is not compiled. Where Numba is not loaded, nothing needs it yet.
    """
    if _listeners or "numba" not in sys.modules:
        return
    from numba.core import event

    class Announcer(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:
            module = event.data["dispatcher"].py_func.__module__
            if not self.told and module.startswith("vaeiw_jax."):
                self.told = True
                print(MESSAGE, file=sys.stderr, flush=True)

        def on_end(self, event: Any) -> None:
            pass

    _listeners.append(Announcer())
    event.register("numba:compile", _listeners[0])


def compile_all() -> None:
    """Compiles the code of every feature set, or finds it in Numba's cache."""
    from vaeiw_jax import models
    from vaeiw_jax.features.config import FeaturesConfig, Setting
    from vaeiw_jax.features.registry import FEATURE_SETS, create

    blank = SimpleNamespace(screen=np.zeros((210, 160), np.uint8), ram=np.zeros(128, np.uint8))
    setting = Setting(models.shipped_games()[0], (210, 160))
    for name in FEATURE_SETS:
        create(FeaturesConfig(name), setting).atoms(blank, blank)
