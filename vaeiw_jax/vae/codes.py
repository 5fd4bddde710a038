"""How a code becomes features: how many there are, and where they change."""

import math
import statistics

import numpy as np

from vaeiw_jax.errors import UserError
from vaeiw_jax.vae.config import ModelConfig

THRESHOLD = 0.9
"""The probability that a Bernoulli feature exceeds where it is true: the paper's lambda."""

QUANTISATION_BITS = 4
"""Bits that number the bin of a Gaussian latent's mean, in one of the paper's two settings."""


def num_features(config: ModelConfig, quantisation_bits: int) -> int:
    """How many features a code has: one per Bernoulli latent, several per Gaussian one."""
    if config.latent_kind == "bernoulli":
        return config.num_latents
    return config.num_latents * quantisation_bits


def edges(
    config: ModelConfig,
    threshold: float = THRESHOLD,
    quantisation_bits: int = QUANTISATION_BITS,
) -> np.ndarray:
    """The values of a logit, or of a Gaussian latent's mean, at which features change: float32[n], rising."""
    if config.latent_kind == "gaussian":
        return bin_edges(quantisation_bits)
    if not 0 < threshold < 1:
        raise UserError(f"threshold must lie between 0 and 1, not {threshold}")
    return np.array([math.log(threshold / (1 - threshold))], np.float32)


def sampling_edges(draws: np.ndarray) -> np.ndarray:
    """The logits beyond which Bernoulli features are drawn as true.

    Args:
      draws: float64[..., num_latents], uniform in [0, 1).

    Returns:
      float32[..., num_latents, 1]: a probability exceeds the draw when its logit exceeds this.
    """
    with np.errstate(divide="ignore"):  # minus infinity for a draw of zero
        return np.log(draws / (1 - draws)).astype(np.float32)[..., None]


def noise_shift(tau: float, threshold: float) -> float:
    """What to take from logits for features that are drawn with the noise of training: a relaxed sample is true.

    sigmoid((logit + noise) / tau) > threshold says that logit - tau * logit(threshold) exceeds -noise, and logistic
    noise, whose sign does not matter, is exceeded with the probability sigmoid of this.

    Args:
      tau: temperature of the relaxed samples.
      threshold: of a feature.
    """
    return tau * math.log(threshold / (1 - threshold))


def bin_edges(quantisation_bits: int) -> np.ndarray:
    """The float32[2**bits - 1] edges that cut N(0, 1) into bins of equal probability."""
    if not 1 <= quantisation_bits <= 8:
        raise UserError(f"quantisation_bits must be from 1 to 8, not {quantisation_bits}")
    bins = 2**quantisation_bits
    normal = statistics.NormalDist()
    return np.array([normal.inv_cdf(i / bins) for i in range(1, bins)], np.float32)
