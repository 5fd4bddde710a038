"""What random play of a game shows before it is planned: typical screens, and what stands still on them."""

import dataclasses

import numpy as np

from vaeiw_jax.atari import Atari

STEPS = 100
"""Steps of random play over which a pixel must keep its colour to be masked, or after which screens are compared."""

COMPARED_SCREENS = 7
"""Screens, one action apart, on which a pixel must have the same colour for it to be subtracted."""


def random_screens(simulator: Atari, rng: np.random.Generator, steps: int = STEPS) -> np.ndarray:
    """uint8[1 + steps, height, width]: what random play shows, starting over where a game ends."""
    snapshot = simulator.start(rng)
    screens = [snapshot.screen]
    for _ in range(steps):
        if snapshot.terminal:
            snapshot = simulator.start(rng)
        snapshot = simulator.step(snapshot, int(rng.integers(simulator.num_actions))).snapshot
        screens.append(snapshot.screen)
    return np.stack(screens)


def background_to_mask(simulator: Atari, rng: np.random.Generator) -> np.ndarray:
    """int16[height, width]: the colours that random play never changes, -1 elsewhere."""
    from vaeiw_jax.features import bprost  # Numba takes a while to load

    return bprost.background(random_screens(simulator, rng))


def background_to_subtract(simulator: Atari, rng: np.random.Generator) -> np.ndarray:
    """int16[height, width]: the colours that are the same on a few screens after some random play, -1 elsewhere.

    As the program of Bandres, Bonet and Geffner (AAAI 2018) has it: random actions of the game's own set, without idle
    ones before them.
    """
    from vaeiw_jax.features import bprost

    bare = dataclasses.replace(simulator.config, full_action_set=False, noop_max=0, noop_actions=0)
    screens = random_screens(Atari(bare), rng, STEPS + COMPARED_SCREENS - 1)
    return bprost.background(screens[-COMPARED_SCREENS:])
