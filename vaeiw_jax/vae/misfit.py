"""How badly a model explains a screen: more is worse. Functions for `jax.jit`, of each screen of a batch, in nats.

The measures are those that Olive chooses screens by (Ayton and Asai, ICAPS 2022).
"""

from collections.abc import Mapping
from typing import Any

import jax

from vaeiw_jax import frames as frames_lib
from vaeiw_jax.vae import elbo, latents
from vaeiw_jax.vae.config import ELBO, LOSS, RECONSTRUCTION, ModelConfig
from vaeiw_jax.vae.networks import VAE


def kl_weight(config: ModelConfig, measure: str) -> float:
    """The weight of the KL in a measure that is a `reconstruction_and_kl`."""
    return {ELBO: 1.0, LOSS: config.beta, RECONSTRUCTION: 0.0}[measure]


def reconstruction_and_kl(
    config: ModelConfig,
    variables: Mapping[str, Any],
    screens: jax.Array,
    noise: jax.Array,
    weight: jax.Array | float,
) -> jax.Array:
    """Cross-entropy + weight * KL, float32[B].

    Args:
      config: which autoencoder.
      variables: its "params" and "batch_stats".
      screens: uint8[B, rows, columns] of palette colours.
      noise: float32[1, H, W, C], of `latents.noise`: the same for every screen, whose misfit then depends on it alone.
      weight: of the KL.
    """
    frames = frames_lib.from_screens(screens)[..., None]
    output: Any = VAE(config).apply(variables, frames, noise, False)
    reconstruction = elbo.cross_entropy(output.pixel_logits, frames).sum(axis=(1, 2, 3))
    return reconstruction + weight * latents.kl(config, output.posterior)


def code_entropy(
    config: ModelConfig, variables: Mapping[str, Any], screens: jax.Array
) -> jax.Array:
    """Entropy of the code, float32[B]; the arguments are those of `reconstruction_and_kl`."""
    frames = frames_lib.from_screens(screens)[..., None]
    posterior: Any = VAE(config).apply(variables, frames, False, method="encode")
    return latents.entropy(config, posterior)
