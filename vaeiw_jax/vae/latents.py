"""The latent variables, Bernoulli or Gaussian: samples, KL to the prior, the bits planning sees.

A posterior is what the encoder puts out, float[B, H, W, posterior_channels]: the logits of
Bernoulli latents, or the means and then the log-variances of Gaussian ones.
"""

import math
import statistics

import jax
import jax.numpy as jnp
import numpy as np

from vaeiw_jax.errors import UserError
from vaeiw_jax.vae.config import ModelConfig


def noise(config: ModelConfig, key: jax.Array, batch: int) -> jax.Array:
    """The randomness of `sample`, float[batch, H, W, C]: logistic for Bernoulli, else normal."""
    draw = jax.random.logistic if config.latent_kind == "bernoulli" else jax.random.normal
    return draw(key, _shape(config, batch))


def sample(
    config: ModelConfig,
    posterior: jax.Array,
    noise: jax.Array,
    tau: jax.Array | float | None = None,
) -> jax.Array:
    """Reparameterised samples of the posterior, float[B, H, W, C].

    For Bernoulli latents the Gumbel-Softmax relaxation (Jang et al., 2017) with two classes: the
    difference of two Gumbel variables is logistic, so the softmax is a sigmoid. `tau` is the
    config's unless given.
    """
    if config.latent_kind == "bernoulli":
        return jax.nn.sigmoid((posterior + noise) / (config.tau if tau is None else tau))
    mean, log_variance = jnp.split(posterior, 2, axis=-1)
    return mean + jnp.exp(log_variance / 2) * noise


def kl(config: ModelConfig, posterior: jax.Array) -> jax.Array:
    """KL from the posterior to the prior, summed over the latents: float[B]."""
    if config.latent_kind == "bernoulli":
        on, log_on, log_off = (
            jax.nn.sigmoid(posterior),
            jax.nn.log_sigmoid(posterior),
            jax.nn.log_sigmoid(-posterior),
        )
        divergence = on * (log_on - math.log(config.prior)) + (1 - on) * (
            log_off - math.log1p(-config.prior)
        )
    else:
        mean, log_variance = jnp.split(posterior, 2, axis=-1)
        divergence = (jnp.square(mean) + jnp.exp(log_variance) - 1 - log_variance) / 2
    return divergence.sum(axis=(1, 2, 3))


def prior_sample(config: ModelConfig, key: jax.Array, batch: int) -> jax.Array:
    """Codes drawn from the prior, float[batch, H, W, C]."""
    if config.latent_kind == "bernoulli":
        return jax.random.bernoulli(key, config.prior, _shape(config, batch)).astype(jnp.float32)
    return jax.random.normal(key, _shape(config, batch))


def num_features(config: ModelConfig, quantisation_bits: int = 4) -> int:
    """How many features `bits` gives: one per Bernoulli latent, several per Gaussian one."""
    if config.latent_kind == "bernoulli":
        return config.num_latents
    return config.num_latents * quantisation_bits


def bits(
    config: ModelConfig, posterior: jax.Array, threshold: float = 0.9, quantisation_bits: int = 4
) -> jax.Array:
    """The features planning sees: bool[B, num_features], in the order H, W, C (and bit).

    A Bernoulli latent is true when its probability exceeds `threshold`. The mean of a Gaussian one
    falls into one of 2**quantisation_bits bins of equal prior probability, whose number is written
    in binary, most significant bit first.
    """
    if config.latent_kind == "bernoulli":
        if not 0 < threshold < 1:
            raise UserError(f"threshold must lie between 0 and 1, not {threshold}")
        # The logit is compared, not the probability: nothing is rounded before the comparison.
        features = posterior > math.log(threshold / (1 - threshold))
    else:
        mean, _ = jnp.split(posterior, 2, axis=-1)
        bins = jnp.searchsorted(
            bin_edges(quantisation_bits), mean, side="right", method="compare_all"
        )
        shifts = jnp.arange(quantisation_bits - 1, -1, -1)
        features = (bins[..., None] >> shifts & 1).astype(bool)
    return features.reshape(len(posterior), -1)


def bin_edges(quantisation_bits: int) -> np.ndarray:
    """The float32[2**bits - 1] edges that cut N(0, 1) into bins of equal probability."""
    if not 1 <= quantisation_bits <= 8:
        raise UserError(f"quantisation_bits must be from 1 to 8, not {quantisation_bits}")
    bins = 2**quantisation_bits
    normal = statistics.NormalDist()
    return np.array([normal.inv_cdf(i / bins) for i in range(1, bins)], np.float32)


def _shape(config: ModelConfig, batch: int) -> tuple[int, int, int, int]:
    return batch, config.height, config.width, config.channels
