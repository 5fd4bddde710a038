"""How badly a model explains a frame, by several measures: more is worse. For `jax.jit`, measure and config fixed."""

from collections.abc import Mapping
from typing import Any

import jax

from vaeiw_jax import frames as frames_lib
from vaeiw_jax.errors import unknown
from vaeiw_jax.vae import elbo, latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE

MEASURES = ELBO, LOSS, ENTROPY, RECONSTRUCTION = "elbo", "loss", "entropy", "reconstruction"


def misfit(
    measure: str,
    config: ModelConfig,
    variables: Mapping[str, Any],
    screens: jax.Array,
    noise: jax.Array,
) -> jax.Array:
    """The measures that Olive chooses screens by (Ayton and Asai, ICAPS 2022), of each screen, in nats.

    `elbo`: cross-entropy + KL, the negative evidence lower bound. `loss`: cross-entropy + beta * KL, as trained.
    `reconstruction`: cross-entropy alone. `entropy`: of the code, which the decoder is not needed for.

    Args:
      measure: one of `MEASURES`.
      config: which autoencoder.
      variables: its "params" and "batch_stats".
      screens: uint8[B, rows, columns] of palette colours.
      noise: float32[1, H, W, C], of `latents.noise`: the same for every screen, whose measure then depends on it alone.

    Returns:
      float32[B].
    """
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    frames = frames_lib.from_screens(screens)[..., None]
    output: Any = VAE(config).apply(variables, frames, noise, False)
    if measure == ENTROPY:
        return latents.entropy(config, output.posterior)
    reconstruction = elbo.cross_entropy(output.pixel_logits, frames).sum(axis=(1, 2, 3))
    weight = {ELBO: 1.0, LOSS: config.beta, RECONSTRUCTION: 0.0}[measure]
    return reconstruction + weight * latents.kl(config, output.posterior)
