"""The latent variables, Bernoulli or Gaussian: samples, KL to the prior, the bits planning sees.

A posterior is what the encoder puts out, float[B, H, W, posterior_channels]: the logits of
Bernoulli latents, or the means and then the log-variances of Gaussian ones.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from vaeiw_jax.vae import codes
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


def entropy(config: ModelConfig, posterior: jax.Array) -> jax.Array:
    """Entropy of the posterior in nats, summed over the latents: float[B]. Of Gaussian ones, the differential one."""
    if config.latent_kind == "bernoulli":
        uncertainty = jax.nn.softplus(posterior) - jax.nn.sigmoid(posterior) * posterior
    else:
        _, log_variance = jnp.split(posterior, 2, axis=-1)
        uncertainty = (log_variance + math.log(2 * math.pi * math.e)) / 2
    return uncertainty.sum(axis=(1, 2, 3))


def prior_sample(config: ModelConfig, key: jax.Array, batch: int) -> jax.Array:
    """Codes drawn from the prior, float[batch, H, W, C]."""
    if config.latent_kind == "bernoulli":
        return jax.random.bernoulli(key, config.prior, _shape(config, batch)).astype(jnp.float32)
    return jax.random.normal(key, _shape(config, batch))


def bits(
    config: ModelConfig,
    posterior: jax.Array,
    threshold: float = codes.THRESHOLD,
    quantisation_bits: int = codes.QUANTISATION_BITS,
) -> jax.Array:
    """The features planning sees: bool[B, `codes.num_features`], in the order H, W, C (and bit).

    A Bernoulli latent is true when its probability exceeds `threshold`. The mean of a Gaussian one
    falls into one of 2**quantisation_bits bins of equal prior probability, whose number is written
    in binary, most significant bit first.
    """
    return bits_at(config, posterior, codes.edges(config, threshold, quantisation_bits))


def bits_at(config: ModelConfig, posterior: jax.Array, edges: jax.Array | np.ndarray) -> jax.Array:
    """The features of a posterior, as `bits`, given the values at which they change.

    Args:
      config: which autoencoder.
      posterior: float32[B, H, W, posterior_channels].
      edges: float32[n], rising, from `codes.edges`, or float32[B, num_latents, n] with edges of
        each latent's own, as `codes.sampling_edges` gives them; B and num_latents may be 1.

    Returns:
      bool[B, `codes.num_features`].
    """
    values = _values(config, posterior)
    if config.latent_kind == "bernoulli":
        # The logit is compared, not the probability: nothing is rounded before the comparison.
        return (values > edges)[..., 0]
    bins = (values >= edges).sum(axis=-1, keepdims=True)
    quantisation_bits = edges.shape[-1].bit_length()
    shifts = jnp.arange(quantisation_bits - 1, -1, -1)
    return (bins >> shifts & 1).astype(bool).reshape(len(posterior), -1)


def clearance(
    config: ModelConfig, posterior: jax.Array, edges: jax.Array | np.ndarray
) -> jax.Array:
    """How near an image's features come to being others: float32[B], the least distance to an edge.

    The arguments are those of `bits_at`.
    """
    return jnp.abs(_values(config, posterior) - edges).min(axis=(1, 2))


def _values(config: ModelConfig, posterior: jax.Array) -> jax.Array:
    """What features are made of, the logits or the means: float32[B, num_latents, 1]."""
    return posterior[..., : config.channels].reshape(len(posterior), -1, 1)


def _shape(config: ModelConfig, batch: int) -> tuple[int, int, int, int]:
    return batch, config.height, config.width, config.channels
