"""A trained VAE to look into: encode frames, decode codes."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.vae.networks import VAE


class TrainedVAE:
    """A trained autoencoder. `frames.from_screens` makes the frames it takes of screens.

    Attributes:
      config: which autoencoder.
      variables: its "params" and "batch_stats", as NumPy arrays.
      about: what is known about it, such as the game and its validation loss.
    """

    def __init__(self, directory: Path):
        self.config, self.variables = models.load_model(directory)
        self.about: dict[str, Any] = models.model_description(directory)["about"]
        network: Any = VAE(self.config)

        @jax.jit
        def encode(variables: Any, frames: jax.Array) -> jax.Array:
            return network.apply(variables, frames[..., None], False, method="encode")

        @jax.jit
        def decode(variables: Any, codes: jax.Array) -> jax.Array:
            logits = network.apply(variables, codes, False, method="decode")
            return jax.nn.sigmoid(logits[..., 0])

        self._encode, self._decode = encode, decode

    def encode(self, frames: np.ndarray) -> np.ndarray:
        """The posterior of frames.

        Args:
          frames: float32[n, 128, 128], from 0 to 1.

        Returns:
          float32[n, H, W, C], logits of Bernoulli latents; float32[n, H, W, 2 C], means and then log-variances of
          Gaussian ones.
        """
        return np.asarray(self._encode(self.variables, np.asarray(frames, np.float32)))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The frames that codes stand for.

        Args:
          codes: float32[n, H, W, C], latent variables.

        Returns:
          float32[n, 128, 128], from 0 to 1.
        """
        return np.asarray(self._decode(self.variables, np.asarray(codes, np.float32)))


def load_vae(game_or_directory: str | Path) -> TrainedVAE:
    """A trained VAE: a directory's, perhaps a training run's; or a shipped one by name, a game's or `universal`."""
    directory = models.named(game_or_directory)
    if directory.is_dir():
        return TrainedVAE(directory)
    raise UserError(
        f"{game_or_directory} is neither a directory nor a VAE that is shipped "
        f"({', '.join(models.shipped_models())})"
    )
