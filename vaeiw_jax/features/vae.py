"""What a trained encoder makes of a screen: one compiled function from palette screen to posterior, and a cache."""

import hashlib
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any, Protocol, cast

import flax
import jax
import numpy as np

from vaeiw_jax import screens
from vaeiw_jax.errors import UserError
from vaeiw_jax.features.config import FeaturesConfig, Setting
from vaeiw_jax.vae import checkpoints, convolutions, latents
from vaeiw_jax.vae.networks import VAE

SHIPPED = Path(__file__).parent.parent.parent / "checkpoints"
"""The trained models that come with the project, one folder per game."""

CACHED_SCREENS = 20_000


class Seen(Protocol):
    """What the features look at."""

    @property
    def screen(self) -> np.ndarray: ...


class VAEFeatures:
    """The bits of a VAE's code as features.

    Atoms are a function of screen and model alone: each screen is encoded by itself, by one compiled function.

    Args:
      config: `vae` for the shipped model of the game, or `vae:DIRECTORY`; threshold, bits, sampling.
      setting: where the features are used.
    """

    def __init__(self, config: FeaturesConfig, setting: Setting):
        directory = model_directory(config.features, setting.game)
        self._model, variables = checkpoints.load_model(directory)
        self._warn_of_another_game(directory, setting.game)
        self._config = config
        if config.sample_features and self._model.latent_kind != "bernoulli":
            raise UserError(
                "sample_features needs Bernoulli latents, and this model's are Gaussian"
            )
        self.num_features = latents.num_features(self._model, config.quantisation_bits)
        self._cache: OrderedDict[bytes, np.ndarray] = OrderedDict()
        self._compiled = self._compile(setting.screen_shape)
        self._variables = jax.device_put(variables)

    @staticmethod
    def _warn_of_another_game(directory: Path, game: str) -> None:
        trained_on = checkpoints.model_description(directory)["about"].get("game")
        if trained_on and trained_on != game:
            warnings.warn(f"{directory} was trained on {trained_on}, not on {game}", stacklevel=4)

    def _compile(self, screen_shape: tuple[int, int]) -> jax.stages.Compiled:
        """From variables and one screen to its bits or, for sampling them, their probabilities."""
        config, model = self._config, VAE(self._model)

        def features(variables: Any, screen: jax.Array) -> jax.Array:
            frames = screens.frames(screen[None])[..., None]
            posterior = cast(jax.Array, model.apply(variables, frames, False, method="encode"))
            if config.sample_features:
                return jax.nn.sigmoid(posterior).ravel()
            return latents.bits(self._model, posterior, config.threshold, config.quantisation_bits)[
                0
            ]

        jitted = jax.jit(features, compiler_options=convolutions.compiler_options())
        shapes = checkpoints.variable_shapes(self._model)
        variables = flax.traverse_util.unflatten_dict(shapes, sep="/")
        return jitted.lower(variables, jax.ShapeDtypeStruct(screen_shape, np.uint8)).compile()

    def atoms(self, seen: Seen, previous: Seen | None) -> np.ndarray:
        digest = hashlib.blake2b(seen.screen.tobytes(), digest_size=16).digest()
        known = self._cache.get(digest)
        if known is not None:
            self._cache.move_to_end(digest)
            return known
        features = np.asarray(self._compiled(self._variables, seen.screen))
        if self._config.sample_features:  # with a generator that is this screen's own
            draws = np.random.default_rng(int.from_bytes(digest)).random(self.num_features)
            features = draws < features
        atoms = features.nonzero()[0].astype(np.int32)
        self._cache[digest] = atoms
        if len(self._cache) > CACHED_SCREENS:
            self._cache.popitem(last=False)
        return atoms


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
