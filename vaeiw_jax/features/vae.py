"""What a trained encoder makes of a screen: atoms.

They are a function of screen and model alone: neither what was encoded before, nor the batch, nor threads, nor the
number of cores change them. `encoders.py` has the two ways to compute them, for accelerators and for the CPU.

Atoms are kept for the screens seen last.
"""

import dataclasses
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import encoders, screen_digest
from vaeiw_jax.features.config import (
    EITHER,
    MODEL,
    RANDOM_PLAY,
    UNUSUAL,
    FeaturesConfig,
    Seen,
    Setting,
)
from vaeiw_jax.features.encoders import ENCODERS, ScreenEncoder
from vaeiw_jax.features.literals import Literals, usual_values
from vaeiw_jax.models import model_directory
from vaeiw_jax.vae import codes

CACHED_SCREENS = 20_000


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
        for name in ("sample_features", "noise"):
            if getattr(config, name) and self._model.latent_kind != "bernoulli":
                raise UserError(f"{name} needs Bernoulli latents, and this model's are Gaussian")
        self._num_bits = codes.num_features(self._model, config.quantisation_bits)
        self._cache: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._cache_lock = threading.Lock()
        edges = codes.edges(self._model, config.threshold, config.quantisation_bits)
        encoder = ENCODERS[encoders.resolved(config.encoder)]
        shift = codes.noise_shift(self._model.tau, config.threshold) if config.noise else 0.0
        self._encoder: ScreenEncoder = encoder(
            self._model, variables, setting.screen_shape, edges, shift
        )
        self._literals = Literals(
            self._num_bits, config.literals, config.changes, self._usual(directory, setting)
        )

    def _usual(self, directory: Path, setting: Setting) -> np.ndarray | None:
        """The code of usual values, if atoms depend on it."""
        if self._config.literals != UNUSUAL:
            return None
        if usual_source(self._config, directory, setting.game) != RANDOM_PLAY:
            return models.usual_codes(directory)[setting.game]
        if setting.random_screens is None:
            raise UserError("literals=unusual needs screens of the game, to know what is usual")
        screens, draws = setting.random_screens(), None
        if self._config.noise or self._config.sample_features:
            draws = np.full((len(screens), self._model.num_latents), 0.5)  # the median of all
        return usual_values(self._encoder.features(screens, draws))

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
            before = self._code(previous)
        return self._literals.atoms(self._code(seen), before)

    def _code(self, seen: Seen) -> np.ndarray:
        """uint8[ceil(bits / 8)]: what the encoder makes of a screen."""
        key = self._key(seen)
        with self._cache_lock:
            packed = self._cache.get(key)
            if packed is not None:
                self._cache.move_to_end(key)
        return self._encode({key: seen})[0] if packed is None else packed

    @property
    def prefetch(self) -> Callable[[Iterable[Seen]], None] | None:
        """What to call, before `atoms`, with the snapshots whose atoms will be asked for; None if it would not help.

        It encodes those not yet known in one batch, if the first is among them: that one is needed now, and as long
        as it is known the others may wait for more to come.
        """
        return self._prefetch if self._encoder.batched else None

    def _prefetch(self, waiting: Iterable[Seen]) -> None:
        keys = {self._key(seen): seen for seen in waiting}
        with self._cache_lock:
            new = {key: keys[key] for key in keys if key not in self._cache}
        if new and next(iter(new)) == next(iter(keys)):
            self._encode(new)

    def _key(self, seen: Seen) -> bytes:
        """What a code depends on: the screen and, if there is noise, the node's own seed."""
        seed = _noise_seed(seen).to_bytes(8) if self._config.noise else b""
        return screen_digest.digest(seen.screen) + seed

    def _encode(self, waiting: dict[bytes, Seen]) -> np.ndarray:
        """The packed bits of what is seen, by key, which are kept: uint8[n, ceil(bits / 8)]."""
        screens = np.stack([seen.screen for seen in waiting.values()])
        packed = self._encoder.features(screens, self._draws(waiting))
        with self._cache_lock:
            self._cache.update(zip(waiting, packed, strict=True))
            while len(self._cache) > CACHED_SCREENS:
                self._cache.popitem(last=False)
        return packed

    def _draws(self, waiting: dict[bytes, Seen]) -> np.ndarray | None:
        """float64[n, num_latents], uniform, if features are drawn: each row by a generator of its own."""
        if self._config.noise:
            seeds = [_noise_seed(seen) for seen in waiting.values()]
        elif self._config.sample_features:
            seeds = [int.from_bytes(key) for key in waiting]
        else:
            return None
        number = self._model.num_latents
        return np.stack([np.random.default_rng(seed).random(number) for seed in seeds])


def _noise_seed(seen: Seen) -> int:
    return getattr(seen, "noise_seed", 0)


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


def usual_source(config: FeaturesConfig, directory: Path, game: str) -> str:
    """Where usual values come from: `model:DIGEST`, or random play where the model does not know the game.

    A model knows them for the default features alone: other thresholds and bits have others.
    """
    default = FeaturesConfig()
    deciding = ("threshold", "quantisation_bits", "sample_features", "noise")
    own = any(getattr(config, name) != getattr(default, name) for name in deciding)
    digest = models.usual_digest(directory, game)
    if config.usual == RANDOM_PLAY or own or digest is None:
        return RANDOM_PLAY
    if config.usual not in (MODEL, f"{MODEL}:{digest}"):
        raise UserError(
            f"the usual values of {directory} are {MODEL}:{digest}, not {config.usual}; give --usual={MODEL}"
        )
    return f"{MODEL}:{digest}"


def identified(config: FeaturesConfig, game: str) -> FeaturesConfig:
    """The config with the model and its usual values by digest, and the encoder that is used on this machine."""
    usual = config.usual
    if config.literals == UNUSUAL:
        usual = usual_source(config, model_directory(config.features, game), game)
    return dataclasses.replace(
        config,
        features=identity(config.features, game),
        usual=usual,
        encoder=encoders.resolved(config.encoder),
    )
