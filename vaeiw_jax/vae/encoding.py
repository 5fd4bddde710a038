"""From palette screens to packed features, as planning uses a trained encoder: one function for `jax.jit`."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from vaeiw_jax import frames
from vaeiw_jax.vae import latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE


class Encoding(NamedTuple):
    """What the encoder makes of a batch of B screens."""

    packed: jax.Array  # uint8[B, ceil(num_features / 8)], the features as `np.packbits` packs them
    clearance: jax.Array  # float32[B], how far the nearest value is from where a feature changes


def encode(
    config: ModelConfig,
    variables: Mapping[str, Any],
    screens: jax.Array,
    edges: jax.Array | np.ndarray,
) -> Encoding:
    """Encodes a batch of screens.

    The arithmetic is float32, whatever the model was trained with, and products are not shortened
    (to bfloat16 on a TPU, to TF32 on a GPU): features are the same on every platform but for values
    within rounding of where they change. Rounding may also depend on the size of the batch.

    Args:
      config: which autoencoder.
      variables: its "params" and "batch_stats".
      screens: uint8[B, rows, columns] of palette colours.
      edges: where features change, in a shape that `latents.bits_at` takes.
    """
    config = dataclasses.replace(config, dtype="float32")
    with jax.default_matmul_precision("highest"):
        seen = frames.from_screens(screens)[..., None]
        posterior = cast(jax.Array, VAE(config).apply(variables, seen, False, method="encode"))
    features = latents.bits_at(config, posterior, edges)
    return Encoding(jnp.packbits(features, axis=1), latents.clearance(config, posterior, edges))
