"""What a model makes of screens: their features, and the pictures it decodes from them."""

import dataclasses
import functools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np
from tqdm import tqdm

from vaeiw_jax import frames as frames_lib
from vaeiw_jax.features import FeaturesConfig, Setting
from vaeiw_jax.features.config import TRUE
from vaeiw_jax.features.vae import VAEFeatures
from vaeiw_jax.inspection.gathering import Gathered
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.vae import elbo, latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE


@dataclass(frozen=True)
class Encoded:
    """Screens and their features, those that planning sees."""

    screens: np.ndarray  # uint8[N, rows, columns]
    frames: np.ndarray  # float32[N, 128, 128]
    bits: np.ndarray  # bool[N, F]
    shape: tuple[int, ...]  # of the features: (H, W, C), for Gaussian latents (H, W, C, bits)

    def by_place(self, per_feature: np.ndarray) -> np.ndarray:
        """Sums over the channels of a position: [..., F] -> [..., H, W]."""
        height, width = self.shape[:2]
        return per_feature.reshape(*per_feature.shape[:-1], height, width, -1).sum(axis=-1)

    def place(self, feature: int) -> tuple[int, ...]:
        """Row, column and channel of a feature and, for Gaussian latents, the number of its bit."""
        return tuple(int(index) for index in np.unravel_index(feature, self.shape))


@dataclass(frozen=True)
class Decoded:
    """Frames as the decoder draws them."""

    reconstructions: (
        np.ndarray
    )  # float32[N, 128, 128], from samples of the posterior, as in training
    from_bits: np.ndarray  # float32[N, 128, 128], from the features alone
    excess_bce: np.ndarray  # float32[N], nats above what a perfect reconstruction costs

    def squared_error(self, frames: np.ndarray) -> float:
        return float(np.square(self.reconstructions - frames).mean())


def true_bits(
    config: FeaturesConfig, game: str, screens: Sequence[np.ndarray] | np.ndarray
) -> np.ndarray:
    """bool[N, F]: the bits of screens, by the very function that a planner calls, whatever of them is an atom."""
    config = dataclasses.replace(config, literals=TRUE, usual=FeaturesConfig.usual, changes=False)
    features = VAEFeatures(config, Setting(game, (screens[0].shape[0], screens[0].shape[1])))
    bits = np.zeros((len(screens), features.num_features), np.bool_)
    for i, screen in enumerate(tqdm(screens, "encoding", **_bar(len(screens)))):
        node = SimpleNamespace(screen=screen, noise_seed=i)
        bits[i, features.atoms(node, None)] = True
    return bits


def encode(model: ModelConfig, config: FeaturesConfig, seen: ScreenSet | Gathered) -> Encoded:
    """The features of screens."""
    shape: tuple[int, ...] = (model.height, model.width, model.channels)
    if model.latent_kind == "gaussian":
        shape += (config.quantisation_bits,)
    frames = np.concatenate([frames_lib.from_screens(screen[None]) for screen in seen.screens])
    return Encoded(seen.screens, frames, true_bits(config, seen.game, seen.screens), shape)


def decode(
    model: ModelConfig, variables: dict[str, Any], encoded: Encoded, rows: np.ndarray
) -> Decoded:
    """Decodes some frames, rows: int[n], one at a time: it is what their number costs, not their batch."""
    autoencode = _autoencoder(model)
    drawn = [
        jax.device_get(
            autoencode(
                variables,
                encoded.frames[row],
                code_of_bits(model, encoded.bits[row]),
                jax.random.key(int(row)),
            )
        )
        for row in tqdm(rows, "decoding", **_bar(len(rows)))
    ]
    reconstructions, from_bits, excess = (np.stack(parts) for parts in zip(*drawn, strict=True))
    return Decoded(reconstructions, from_bits, excess)


def _bar(total: int) -> dict[str, Any]:
    """A bar of progress, for people only."""
    return {"total": total, "unit": " frames", "leave": False, "disable": None}


@functools.cache
def _autoencoder(model: ModelConfig) -> Any:
    network = VAE(model)

    @jax.jit
    def autoencode(
        variables: Any, frame: jax.Array, code: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        noise = latents.noise(model, key, 1)
        output: Any = network.apply(variables, frame[None, ..., None], noise, False)
        logits = output.pixel_logits[0, ..., 0]
        from_bits = cast(jax.Array, network.apply(variables, code[None], False, method="decode"))
        excess = elbo.cross_entropy(logits, frame).sum() - elbo.entropy(frame).sum()
        pixels = jax.nn.sigmoid(logits), jax.nn.sigmoid(from_bits[0, ..., 0])
        return *pixels, excess

    return autoencode


def code_of_bits(model: ModelConfig, bits: np.ndarray) -> np.ndarray:
    """The code float32[H, W, C] that features bool[F] stand for: 0 or 1, or the middle of a bin."""
    shape = (model.height, model.width, model.channels)
    if model.latent_kind == "bernoulli":
        return bits.reshape(shape).astype(np.float32)
    written = bits.reshape(*shape, -1)
    bins = 2 ** written.shape[-1]
    number = written @ (1 << np.arange(written.shape[-1])[::-1])
    normal = statistics.NormalDist()
    middles = np.array([normal.inv_cdf((i + 0.5) / bins) for i in range(bins)], np.float32)
    return middles[number]
