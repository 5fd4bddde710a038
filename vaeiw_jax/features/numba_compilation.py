"""Numba compiles the feature code when it is first used: this announces it, or does it ahead of time."""

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
    from tqdm import tqdm

    class Announcer(event.Listener):
        announced = False

        def on_start(self, event: Any) -> None:
            module = event.data["dispatcher"].py_func.__module__
            if not self.announced and module.startswith("vaeiw_jax."):
                self.announced = True
                tqdm.write(MESSAGE, file=sys.stderr)  # on a line of its own, progress bars or not

        def on_end(self, event: Any) -> None:
            pass

    _listeners.append(Announcer())
    event.register("numba:compile", _listeners[0])


def read_only(array: np.ndarray) -> np.ndarray:
    """The array, as one that cannot be written.

    Numba compiles code once for arrays that can be written and once for those that cannot, such as the screens that
    come from emulator processes. Code that is only ever given the latter is compiled once.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def compile_all() -> None:
    """Compiles the code of every feature set, or finds it in Numba's cache."""
    from vaeiw_jax.features.config import EITHER, FeaturesConfig, Setting
    from vaeiw_jax.features.registry import FEATURE_SETS, create

    blank = SimpleNamespace(screen=np.zeros((210, 160), np.uint8), ram=np.zeros(128, np.uint8))
    setting = Setting("", (210, 160))
    for name, entry in FEATURE_SETS.items():
        if not entry.needs_directory:
            config = FeaturesConfig(name)
            if entry.takes_directory:  # either with changes runs the code of all kinds of literals
                config = FeaturesConfig(name, literals=EITHER, changes=True)
            create(config, setting).atoms(blank, blank)
