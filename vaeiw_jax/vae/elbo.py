"""The loss: the beta-ELBO with its sign turned (Equation 3 of the paper), per image."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import xlog1py, xlogy

from vaeiw_jax.errors import UserError
from vaeiw_jax.vae import latents
from vaeiw_jax.vae.networks import VAE

Metrics = dict[str, jax.Array]


def loss(
    model: VAE,
    variables: Mapping[str, Any],
    frames: jax.Array,
    noise: jax.Array,
    dropout_key: jax.Array | None,
    train: bool,
    tau: jax.Array | float | None = None,
    zero_suppression: jax.Array | float = 0.0,
) -> tuple[jax.Array, tuple[Metrics, Any]]:
    """Binary cross-entropy + beta * KL, summed per image, averaged over the batch.

    Args:
      model: the autoencoder.
      variables: its "params" and "batch_stats".
      frames: float[B, 128, 128, 1], grey in [0, 1].
      noise: float[B, H, W, C], from `latents.noise`.
      dropout_key: a random key; needed only with `train` and a dropout rate above zero.
      train: whether BatchNorm uses the batch's statistics and dropout is on.
      tau: temperature of the samples, the config's if None.
      zero_suppression: weight of the latents' mean probability, added to push them towards zero.

    Returns:
      The loss, the metrics (scalars) and the new "batch_stats" (the old ones if not `train`).
    """
    output, batch_stats = _apply(model, variables, frames, noise, dropout_key, train, tau)
    logits = output.pixel_logits
    bce = cross_entropy(logits, frames).sum(axis=(1, 2, 3)).mean()
    kl = latents.kl(model.config, output.posterior).mean()
    total = bce + model.config.beta * kl
    if not _is_zero(zero_suppression):
        if model.config.latent_kind != "bernoulli":
            raise UserError("zero_suppression is for bernoulli latents; leave it at 0")
        total += zero_suppression * jax.nn.sigmoid(output.posterior).mean()

    metrics = {
        "loss": total,
        "bce": bce,
        "excess_bce": bce - entropy(frames).sum(axis=(1, 2, 3)).mean(),
        "kl": kl,
        "mse": jnp.square(jax.nn.sigmoid(logits) - frames).mean(),
    }
    return total, (metrics, batch_stats)


def cross_entropy(logits: jax.Array, frames: jax.Array) -> jax.Array:
    """Of each pixel, in nats: what it costs to predict grey `frames` with the probabilities of `logits`."""
    return jax.nn.softplus(logits) - frames * logits


def entropy(frames: jax.Array) -> jax.Array:
    """The cross-entropy of each pixel, predicted exactly: above zero, for grey is no coin's outcome."""
    return -xlogy(frames, frames) - xlog1py(1 - frames, -frames)


def _apply(
    model: VAE,
    variables: Mapping[str, Any],
    frames: jax.Array,
    noise: jax.Array,
    dropout_key: jax.Array | None,
    train: bool,
    tau: jax.Array | float | None,
) -> tuple[Any, Any]:
    if not train:
        return model.apply(variables, frames, noise, False, tau), variables["batch_stats"]
    rngs = {} if dropout_key is None else {"dropout": dropout_key}
    output, updates = model.apply(
        variables, frames, noise, True, tau, rngs=rngs, mutable=["batch_stats"]
    )
    return output, updates["batch_stats"]


def _is_zero(weight: jax.Array | float) -> bool:
    return isinstance(weight, int | float) and weight == 0
