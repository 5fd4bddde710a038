"""What a trained encoder makes of a screen: atoms, as one compiled function gives them, at a fraction of its cost.

The *canonical* posterior of a screen is that of one compiled function, given this screen alone. Atoms follow from it.
(XLA cuts convolutions into as many parts as the process may use cores, and rounds accordingly.)
Three things spare most of its work and change no atom:

- Atoms are kept for the screens seen last.
- `FastEncoder` gives the posterior up to rounding. It decides every feature but those so close to where they change
  that rounding might matter: nearer than a margin, which is measured against the canonical posterior and eight times
  the largest error found.
- Those left take the canonical value. It is kept for the position and what is seen there, so that a screen that differs
  elsewhere need not be encoded again.
"""

import hashlib
import math
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

import flax
import jax
import numba
import numpy as np

from vaeiw_jax import screens
from vaeiw_jax.errors import UserError
from vaeiw_jax.features.config import FeaturesConfig, Setting
from vaeiw_jax.vae import checkpoints, convolutions, latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.fast_encoder import FastEncoder
from vaeiw_jax.vae.networks import VAE

SHIPPED = Path(__file__).parent.parent.parent / "checkpoints"
"""The trained models that come with the project, one folder per game."""

CACHED_SCREENS = 20_000

SAFETY = 8
"""How many times the largest rounding error that was found the margin is."""


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
        self._model, variables = checkpoints.load_model(directory)
        self._warn_of_another_game(directory, setting.game)
        if config.sample_features and self._model.latent_kind != "bernoulli":
            raise UserError(
                "sample_features needs Bernoulli latents, and this model's are Gaussian"
            )
        self._config = config
        self._edges = _edges(self._model, config)
        self.num_features = latents.num_features(self._model, config.quantisation_bits)
        self._word = np.uint64 if math.prod(setting.screen_shape) % 8 == 0 else np.uint8
        self._cache: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._cache_lock = threading.Lock()
        self._canonical = canonical_encoder(self._model, variables, setting.screen_shape)
        self._settled = _Settled(self._canonical)
        self._fast = None
        if FastEncoder.covers(self._model):
            self._fast = FastEncoder(self._model, variables, setting.screen_shape)
            self._margin = SAFETY * self._largest_error(setting.screen_shape)

    @staticmethod
    def _warn_of_another_game(directory: Path, game: str) -> None:
        trained_on = checkpoints.model_description(directory)["about"].get("game")
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
        if self._fast is None:
            return self._decide(self._canonical(screen), draws)
        posterior, ids, generation = self._fast.encode(screen)
        features = self._decide(posterior - self._margin, draws)
        unsure = features != self._decide(posterior + self._margin, draws)
        if not unsure.any():
            return features
        positions = np.flatnonzero(unsure.reshape(ids.size, -1).any(axis=1))
        canonical = self._settled.posterior(screen, positions, ids, generation)
        posterior[np.unravel_index(positions, ids.shape)] = canonical
        return self._decide(posterior, draws)

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

    def _largest_error(self, screen_shape: tuple[int, int]) -> float:
        """How far the fast posterior is from the canonical one, at most, on screens full of random blocks.

        Errors grow with the values, so those are left out that are far from where features change.
        """
        assert self._fast is not None
        near = 2 * np.abs(self._edges).max() + 4
        largest = 0.0
        for screen in _random_blocks(screen_shape):
            posterior, canonical = self._fast.encode(screen)[0], self._canonical(screen)
            errors = np.abs(posterior - canonical)
            close = np.abs(canonical) < near
            largest = max(largest, float(errors[close if close.any() else ...].max()))
        self._fast.forget()
        return largest


class _Settled:
    """Canonical posteriors at single positions, by what is seen there.

    Every output of the compiled encoder depends on the pixels it sees and on its position (where rounding may differ),
    but on nothing else of the screen.
    """

    def __init__(self, canonical: Callable[[np.ndarray], np.ndarray]):
        self._canonical = canonical
        self._known: dict[tuple[int, int], np.ndarray] = {}
        self._generation = -1
        self._lock = threading.Lock()

    def posterior(
        self, screen: np.ndarray, positions: np.ndarray, ids: np.ndarray, generation: int
    ) -> np.ndarray:
        """float32[n, posterior_channels], at the given positions of a screen.

        Args:
          screen: uint8[rows, columns].
          positions: int[n], H and W as one index.
          ids: int32[H, W], what is seen at all positions.
          generation: in which the ids were given.
        """
        keys = list(zip(positions.tolist(), ids.ravel()[positions].tolist(), strict=True))
        with self._lock:
            if generation != self._generation:
                self._known.clear()
                self._generation = generation
            if not all(key in self._known for key in keys):
                canonical = self._canonical(screen)
                rows = canonical.reshape(-1, canonical.shape[-1])
                self._known.update({key: rows[key[0]].copy() for key in keys})
            return np.stack([self._known[key] for key in keys])


def canonical_encoder(
    model: ModelConfig, variables: Any, screen_shape: tuple[int, int]
) -> Callable[[np.ndarray], np.ndarray]:
    """The compiled function from a screen, uint8[rows, columns], to its posterior, float32[H, W, channels]."""
    network = VAE(model)

    def posterior(variables: Any, screen: jax.Array) -> jax.Array:
        frames = screens.frames(screen[None])[..., None]
        return cast(jax.Array, network.apply(variables, frames, False, method="encode"))[0]

    _keep_compiled_code()
    jitted = jax.jit(posterior, compiler_options=convolutions.compiler_options())
    shapes = flax.traverse_util.unflatten_dict(checkpoints.variable_shapes(model), sep="/")
    compiled = jitted.lower(shapes, jax.ShapeDtypeStruct(screen_shape, np.uint8)).compile()
    on_device = jax.device_put(variables)
    return lambda screen: np.asarray(compiled(on_device, screen))


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


def _keep_compiled_code() -> None:
    """Lets XLA keep what it compiles in the user's cache directory, unless it was told where to.

    Code is for one kind of CPU: a home directory may be shared by several.
    """
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    cpu = Path("/proc/cpuinfo")
    features = cpu.read_text().partition("\n\n")[0] if cpu.exists() else ""
    lines = [line for line in features.splitlines() if line.startswith(("model name", "flags"))]
    kind = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    jax.config.update("jax_compilation_cache_dir", str(home / "vaeiw_jax" / f"xla-{kind}"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def _edges(model: ModelConfig, config: FeaturesConfig) -> np.ndarray:
    """The values of a logit, or of a mean, at which features change: float32[n], rising."""
    if model.latent_kind == "gaussian":
        return latents.bin_edges(config.quantisation_bits)
    return np.array([np.log(config.threshold / (1 - config.threshold))], np.float32)


def _random_blocks(screen_shape: tuple[int, int]) -> list[np.ndarray]:
    """Screens of randomly coloured squares, from one pixel to 32 wide: uint8[rows, columns]."""
    rng = np.random.default_rng(0)
    rows, columns = (np.arange(side) for side in screen_shape)
    colours = rng.integers(256, size=(6, *screen_shape), dtype=np.uint8)
    return [image[np.ix_(rows >> i, columns >> i)] for i, image in enumerate(colours)]


def model_directory(name: str, game: str) -> Path:
    """Where the model is that `vae` or `vae:DIRECTORY` names; a training run's directory will do."""
    _, _, given = name.partition(":")
    if given:
        directory = Path(given)
        return directory / "model" if (directory / "model").is_dir() else directory
    if not (SHIPPED / game).is_dir():
        shipped = ", ".join(
            sorted(path.parent.name for path in SHIPPED.glob(f"*/{checkpoints.CONFIG}"))
        )
        raise UserError(
            f"no VAE of {game} comes with the project (there is {shipped or 'none'}); train one with launch.train "
            "and use --features=vae:DIRECTORY"
        )
    return SHIPPED / game


def identity(name: str, game: str) -> str:
    """The model that is meant, by its digest instead of its place."""
    return f"vae:{checkpoints.model_description(model_directory(name, game))['weights']['sha256']}"
