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
from vaeiw_jax.features.config import EITHER, UNUSUAL, FeaturesConfig, Setting
from vaeiw_jax.features.encoders import ENCODERS, ScreenEncoder
from vaeiw_jax.features.literals import Literals, usual_values
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
        self._config = config
        self._model, variables = models.load_model(directory)
        self._warn_of_another_game(directory, setting.game)
        if config.sample_features and self._model.latent_kind != "bernoulli":
            raise UserError(
                "sample_features needs Bernoulli latents, and this model's are Gaussian"
            )
        self._sampled = config.sample_features
        self._num_bits = codes.num_features(self._model, config.quantisation_bits)
        self._word = np.uint64 if math.prod(setting.screen_shape) % 8 == 0 else np.uint8
        self._cache: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._cache_lock = threading.Lock()
        edges = codes.edges(self._model, config.threshold, config.quantisation_bits)
        encoder = ENCODERS[encoders.resolved(config.encoder)]
        self._encoder: ScreenEncoder = encoder(self._model, variables, setting.screen_shape, edges)
        self._literals = Literals(
            self._num_bits, config.literals, config.changes, self._usual(config, setting)
        )

    def _usual(self, config: FeaturesConfig, setting: Setting) -> np.ndarray | None:
        if config.literals != UNUSUAL:
            return None
        if setting.typical is None:
            raise UserError("literals=unusual needs screens of the game, to know what is usual")
        return usual_values(np.stack([self._code(screen) for screen in setting.typical]))

    @property
    def num_features(self) -> int:
        return self._config.num_atoms(self._num_bits)

    @property
    def notions(self) -> list[tuple[int, int]]:
        """What can count as new, from few atoms to many: those below a number, one by one (1) or in pairs (2).

        `Literals` tells their order.
        """
        bits, config = self._num_bits, self._config
        wider = [bits * 2] if config.literals == EITHER else []
        wider += [self.num_features] if config.changes else []
        pairs = [(bits, 2)] if config.literals == UNUSUAL else []
        return [(bits, 1), *((limit, 1) for limit in wider), *pairs]

    @property
    def usual(self) -> np.ndarray | None:
        """The code of usual values, packed, if atoms depend on it. A run that goes on has those it began with."""
        return self._literals.usual if self._config.literals == UNUSUAL else None

    @usual.setter
    def usual(self, code: np.ndarray) -> None:
        self._literals.usual = code

    @staticmethod
    def _warn_of_another_game(directory: Path, game: str) -> None:
        games = models.trained_on(directory)
        if len(games) == 1 and game not in games:
            warnings.warn(f"{directory} was trained on {games[0]}, not on {game}", stacklevel=4)

    def atoms(self, seen: Seen, previous: Seen | None) -> np.ndarray:
        before = None
        if self._config.changes and previous is not None:
            before = self._code(previous.screen)
        return self._literals.atoms(self._code(seen.screen), before)

    def _code(self, screen: np.ndarray) -> np.ndarray:
        """uint8[ceil(bits / 8)]: what the encoder makes of a screen."""
        digest = self._digest(screen)
        with self._cache_lock:
            packed = self._cache.get(digest)
            if packed is not None:
                self._cache.move_to_end(digest)
        return self._encode({digest: screen})[0] if packed is None else packed

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
        """The packed bits of screens, by digest, which are kept: uint8[n, ceil(bits / 8)]."""
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
