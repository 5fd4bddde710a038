"""What a trained model's code mostly is, game by game, on the screens it was trained on."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vaeiw_jax.features.encoders import PatchEncoder
from vaeiw_jax.features.literals import usual_values
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.vae import codes
from vaeiw_jax.vae.config import ModelConfig

SCREENS_PER_GAME = 100
"""Screens of a game that are looked at, spread evenly over those there are."""


def usual_codes(
    config: ModelConfig, variables: Mapping[str, Any], screen_set: ScreenSet
) -> dict[str, np.ndarray]:
    """By game, uint8[ceil(bits / 8)]: the value that each bit has on most of its screens, packed.

    Args:
      config: which autoencoder.
      variables: its "params" and "batch_stats", as NumPy arrays.
      screen_set: of the training. Games whose name is unknown are left out.
    """
    shape = screen_set.screens.shape[1:]
    encoder = PatchEncoder(config, variables, shape, codes.edges(config))
    starts = np.cumsum([0, *screen_set.counts[:-1]])
    usual = {}
    for game, start, count in zip(screen_set.games, starts, screen_set.counts, strict=True):
        if game:
            rows = start + np.linspace(0, count - 1, min(count, SCREENS_PER_GAME)).astype(int)
            usual[game] = usual_values(encoder.features(screen_set.screens[rows]))
    return usual
