"""Real screens for tests: the emulator under seeded random play."""

import functools

import ale_py
import numpy as np
from ale_py import roms

FRAME_SKIP = 15


def emulator(game: str, seed: int = 0) -> ale_py.ALEInterface:
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", seed)
    ale.loadROM(roms.get_rom_path(game))
    return ale


@functools.cache
def random_screens(game: str, count: int, seed: int = 0) -> np.ndarray:
    """uint8[count, rows, columns]: screens after random actions, each held for 15 frames."""
    ale = emulator(game, seed)
    actions = ale.getMinimalActionSet()
    generator = np.random.default_rng(seed)
    screens = []
    for _ in range(count):
        action = actions[generator.integers(len(actions))]
        for _ in range(FRAME_SKIP):
            ale.act(action)
        screens.append(ale.getScreen())
        if ale.game_over():
            ale.reset_game()
    result = np.stack(screens)
    result.flags.writeable = False
    return result
