"""What a trained encoder makes of a screen: atoms.

They follow from the posterior that `FastEncoder` computes, in float32 and whatever arithmetic the model was trained
with. It is a function of screen and model to the last bit: neither what was encoded before, nor threads, nor the number
of cores change it. From that of the network as XLA compiles it, it differs by rounding, so that a feature may differ
whose value lies within a few millionths of where it changes.

Atoms are kept for the screens seen last.
"""

import math
import threading
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

import numba
import numpy as np

from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.features.config import FeaturesConfig, Setting
from vaeiw_jax.features.patch_encoder import FastEncoder
from vaeiw_jax.models import model_directory
from vaeiw_jax.vae import codes
from vaeiw_jax.vae.config import ModelConfig

CACHED_SCREENS = 20_000


class Seen(Protocol):
    """What the features look at."""

    @property
    def screen(self) -> np.ndarray: ...


class VAEFeatures:
    """The bits of a VAE's code as features.

    Atoms are a function of screen and model alone. Threads may ask for them at once; most of the work is done without
    holding Python's lock, one screen at a time.

    Args:
      config: `vae` for the shipped model of the game, or `vae:DIRECTORY`; threshold, bits, sampling.
      setting: where the features are used.
    """

    def __init__(self, config: FeaturesConfig, setting: Setting):
        directory = model_directory(config.features, setting.game)
        self._model, variables = models.load_model(directory)
        self._warn_of_another_game(directory, setting.game)
        if config.sample_features and self._model.latent_kind != "bernoulli":
            raise UserError(
                "sample_features needs Bernoulli latents, and this model's are Gaussian"
            )
        self._config = config
        self._edges = _edges(self._model, config)
        self.num_features = codes.num_features(self._model, config.quantisation_bits)
        self._word = np.uint64 if math.prod(setting.screen_shape) % 8 == 0 else np.uint8
        self._cache: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._cache_lock = threading.Lock()
        self._encoder = FastEncoder(self._model, variables, setting.screen_shape)

    @staticmethod
    def _warn_of_another_game(directory: Path, game: str) -> None:
        trained_on = models.model_description(directory)["about"].get("game")
        if trained_on and trained_on != game:
            warnings.warn(f"{directory} was trained on {trained_on}, not on {game}", stacklevel=4)

    def atoms(self, seen: Seen, previous: Seen | None) -> np.ndarray:
        digest = _digest(seen.screen.ravel().view(self._word)).tobytes()
        with self._cache_lock:
            packed = self._cache.get(digest)
            if packed is not None:
                self._cache.move_to_end(digest)
        if packed is None:
            packed = np.packbits(self._features(np.ascontiguousarray(seen.screen), digest))
            with self._cache_lock:
                self._cache[digest] = packed
                if len(self._cache) > CACHED_SCREENS:
                    self._cache.popitem(last=False)
        return _true_features(packed, self.num_features)

    def _features(self, screen: np.ndarray, digest: bytes) -> np.ndarray:
        """bool[num_features] of a screen that is not in the cache."""
        draws = None
        if self._config.sample_features:  # with a generator that is this screen's own
            draws = np.random.default_rng(int.from_bytes(digest)).random(self._model.num_latents)
        return self._decide(self._encoder.encode(screen), draws)

    def _decide(self, posterior: np.ndarray, draws: np.ndarray | None) -> np.ndarray:
        """The features of a posterior, as `latents.bits` gives them: bool[num_features].

        Args:
          posterior: float32[H, W, posterior_channels].
          draws: float64[num_latents] from [0, 1), to sample features instead.
        """
        if draws is not None:
            return draws < 1 / (1 + np.exp(-posterior.ravel().astype(np.float64)))
        if self._model.latent_kind == "bernoulli":
            return posterior.ravel() > self._edges[0]
        means = posterior[..., : self._model.channels].ravel()
        bins = np.searchsorted(self._edges, means, side="right")
        shifts = np.arange(self._config.quantisation_bits - 1, -1, -1)
        return (bins[:, None] >> shifts & 1).astype(np.bool_).ravel()


_SEEDS, _MULTIPLIERS = np.random.default_rng(0).integers(1, 2**64, (2, 8), np.uint64) | 1


@numba.njit(cache=True, nogil=True)
def _digest(words):  # type: ignore[no-untyped-def]
    """uint64[8] that tell screens apart: two hashes of every fourth word. Ten times as fast as hashlib's."""
    lanes = _SEEDS.copy()
    for i in range(len(words)):
        for lane in range(2 * (i & 3), 2 * (i & 3) + 2):
            mixed = (lanes[lane] ^ np.uint64(words[i])) * _MULTIPLIERS[lane]
            lanes[lane] = mixed ^ mixed >> np.uint64(29)
    return lanes


@numba.njit(cache=True, nogil=True)
def _true_features(packed, number):  # type: ignore[no-untyped-def]
    """The places, int32[n], of the ones among the first `number` bits that `np.packbits` packed."""
    places = np.empty(number + 1, np.int32)
    found = 0
    for i in range(number):
        places[found] = i
        found += packed[i >> 3] >> (7 - (i & 7)) & 1
    return places[:found].copy()


def _edges(model: ModelConfig, config: FeaturesConfig) -> np.ndarray:
    """The values of a logit, or of a mean, at which features change: float32[n], rising."""
    if model.latent_kind == "gaussian":
        return codes.bin_edges(config.quantisation_bits)
    return np.array([np.log(config.threshold / (1 - config.threshold))], np.float32)


def identity(name: str, game: str) -> str:
    """The model that is meant, by its digest instead of its place."""
    return f"vae:{models.model_description(model_directory(name, game))['weights']['sha256']}"
