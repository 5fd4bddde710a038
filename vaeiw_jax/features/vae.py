"""What a trained encoder makes of a screen: atoms.

They are a function of screen and model alone: neither what was encoded before, nor the batch, nor threads, nor the
number of cores change them. `encoders.py` has the two ways to compute them, for accelerators and for the CPU.

Atoms are kept for the screens seen last.
"""

import dataclasses
import math
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

import numba
import numpy as np

from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import encoders
from vaeiw_jax.features.config import FeaturesConfig, Setting
from vaeiw_jax.features.encoders import ENCODERS, ScreenEncoder
from vaeiw_jax.features.numba_compilation import read_only
from vaeiw_jax.models import model_directory
from vaeiw_jax.vae import codes

CACHED_SCREENS = 20_000


class Seen(Protocol):
    """What the features look at."""

    @property
    def screen(self) -> np.ndarray: ...


class VAEFeatures:
    """The bits of a VAE's code as features.

    Threads may ask for them at once.

    Args:
      config: which model, as `models.model_directory` finds it; the encoder; threshold, bits, sampling.
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
        self._sampled = config.sample_features
        self.num_features = codes.num_features(self._model, config.quantisation_bits)
        self._word = np.uint64 if math.prod(setting.screen_shape) % 8 == 0 else np.uint8
        self._cache: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._cache_lock = threading.Lock()
        edges = codes.edges(self._model, config.threshold, config.quantisation_bits)
        encoder = ENCODERS[encoders.resolved(config.encoder)]
        self._encoder: ScreenEncoder = encoder(self._model, variables, setting.screen_shape, edges)

    @staticmethod
    def _warn_of_another_game(directory: Path, game: str) -> None:
        games = models.trained_on(directory)
        if len(games) == 1 and game not in games:
            warnings.warn(f"{directory} was trained on {games[0]}, not on {game}", stacklevel=4)

    def atoms(self, seen: Seen, previous: Seen | None) -> np.ndarray:
        digest = self._digest(seen.screen)
        with self._cache_lock:
            packed = self._cache.get(digest)
            if packed is not None:
                self._cache.move_to_end(digest)
        if packed is None:
            packed = self._encode({digest: seen.screen})[0]
        return _true_features(packed, self.num_features)

    @property
    def prefetch(self) -> Callable[[Iterable[Seen]], None] | None:
        """What to call, before `atoms`, with the snapshots whose atoms will be asked for; None if it would not help.

        It encodes those not yet known in one batch, if the first is among them: that one is needed now, and as long
        as it is known the others may wait for more to come.
        """
        return self._prefetch if self._encoder.batched else None

    def _prefetch(self, waiting: Iterable[Seen]) -> None:
        screens = {self._digest(seen.screen): seen.screen for seen in waiting}
        with self._cache_lock:
            new = {digest: screens[digest] for digest in screens if digest not in self._cache}
        if new and next(iter(new)) == next(iter(screens)):
            self._encode(new)

    def _digest(self, screen: np.ndarray) -> bytes:
        digest: np.ndarray = _digest(read_only(screen).ravel().view(self._word))
        return digest.tobytes()

    def _encode(self, screens: dict[bytes, np.ndarray]) -> np.ndarray:
        """The packed features of screens, by digest, which are kept: uint8[n, ceil(num_features / 8)]."""
        draws = None
        if self._sampled:  # with a generator that is the screen's own
            generators = [np.random.default_rng(int.from_bytes(digest)) for digest in screens]
            draws = np.stack([rng.random(self._model.num_latents) for rng in generators])
        packed = self._encoder.features(np.stack(list(screens.values())), draws)
        with self._cache_lock:
            self._cache.update(zip(screens, packed, strict=True))
            while len(self._cache) > CACHED_SCREENS:
                self._cache.popitem(last=False)
        return packed


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


def origin(config: FeaturesConfig, game: str) -> str:
    """Where the model comes from, in words."""
    directory = model_directory(config.features, game)
    games = models.trained_on(directory)
    trained = f"on {len(games)} games" if len(games) > 1 else f"on {games[0]}" if games else ""
    what = "the universal VAE" if directory == models.SHIPPED / models.UNIVERSAL else "the VAE"
    return f"{what} in {directory}, trained {trained or 'elsewhere'}"


def identity(name: str, game: str) -> str:
    """The model that is meant, by its digest instead of its place."""
    return f"vae:{models.model_description(model_directory(name, game))['weights']['sha256']}"


def identified(config: FeaturesConfig, game: str) -> FeaturesConfig:
    """The config with the model by its digest, and the encoder that is used on this machine."""
    return dataclasses.replace(
        config, features=identity(config.features, game), encoder=encoders.resolved(config.encoder)
    )
