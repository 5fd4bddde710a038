"""How a code becomes features: how many there are, and where they change."""

import statistics

import numpy as np

from vaeiw_jax.errors import UserError
from vaeiw_jax.vae.config import ModelConfig


def num_features(config: ModelConfig, quantisation_bits: int = 4) -> int:
    """How many features a code has: one per Bernoulli latent, several per Gaussian one."""
    if config.latent_kind == "bernoulli":
        return config.num_latents
    return config.num_latents * quantisation_bits


def bin_edges(quantisation_bits: int) -> np.ndarray:
    """The float32[2**bits - 1] edges that cut N(0, 1) into bins of equal probability."""
    if not 1 <= quantisation_bits <= 8:
        raise UserError(f"quantisation_bits must be from 1 to 8, not {quantisation_bits}")
    bins = 2**quantisation_bits
    normal = statistics.NormalDist()
    return np.array([normal.inv_cdf(i / bins) for i in range(1, bins)], np.float32)
