"""The loss: the beta-ELBO with its sign turned (Equation 3 of the paper), per image."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import xlog1py, xlogy

from vaeiw_jax.vae import latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE, VAEOutput

Metrics = dict[str, jax.Array]

_PIXELS = (1, 2, 3)  # the axes of an image


class Terms(NamedTuple):
    """What the loss of each image is made of, and what tells how good it can be."""

    bce: jax.Array  # float32[B], the cross-entropy of the reconstruction
    entropy: jax.Array  # float32[B], the cross-entropy of a perfect one
    kl: jax.Array  # float32[B]
    mse: jax.Array  # float32[B]


def terms(config: ModelConfig, output: VAEOutput, frames: jax.Array) -> Terms:
    """The terms of each of a batch of frames, float[B, 128, 128, 1], given what the autoencoder made of it."""
    logits = output.pixel_logits
    return Terms(
        bce=cross_entropy(logits, frames).sum(axis=_PIXELS),
        entropy=entropy(frames).sum(axis=_PIXELS),
        kl=latents.kl(config, output.posterior),
        mse=jnp.square(jax.nn.sigmoid(logits) - frames).mean(axis=_PIXELS),
    )


def loss(
    model: VAE,
    variables: Mapping[str, Any],
    frames: jax.Array,
    noise: jax.Array,
    dropout_key: jax.Array,
    tau: jax.Array | float | None = None,
    zero_suppression: jax.Array | float = 0.0,
) -> tuple[jax.Array, tuple[Metrics, Any]]:
    """Binary cross-entropy + beta * KL, summed per image, averaged over the batch, of a model in training.

    Args:
      model: the autoencoder; BatchNorm uses the batch's statistics, and dropout is on.
      variables: its "params" and "batch_stats".
      frames: float[B, 128, 128, 1], grey in [0, 1].
      noise: float[B, H, W, C], from `latents.noise`.
      dropout_key: a random key.
      tau: temperature of the samples, the config's if None.
      zero_suppression: weight of Bernoulli latents' mean probability, added to push them towards zero.

    Returns:
      The loss, the metrics (scalars) and the new "batch_stats".
    """
    output, updates = model.apply(
        variables, frames, noise, True, tau, rngs={"dropout": dropout_key}, mutable=["batch_stats"]
    )
    bce, floor, kl, mse = (term.mean() for term in terms(model.config, output, frames))
    total = bce + model.config.beta * kl
    if not _is_zero(zero_suppression):
        total += zero_suppression * jax.nn.sigmoid(output.posterior).mean()
    metrics = {"loss": total, "bce": bce, "excess_bce": bce - floor, "kl": kl, "mse": mse}
    return total, (metrics, updates["batch_stats"])


def cross_entropy(logits: jax.Array, frames: jax.Array) -> jax.Array:
    """Of each pixel, in nats: what it costs to predict grey `frames` with the probabilities of `logits`."""
    return jax.nn.softplus(logits) - frames * logits


def entropy(frames: jax.Array) -> jax.Array:
    """The cross-entropy of each pixel, predicted exactly: above zero, for grey is no coin's outcome."""
    return -xlogy(frames, frames) - xlog1py(1 - frames, -frames)


def _is_zero(weight: jax.Array | float) -> bool:
    return isinstance(weight, int | float) and weight == 0
