"""The compiled functions of a training run, and the screens they work on."""

import dataclasses
import functools

import jax
import numpy as np

from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import screen_store
from vaeiw_jax.vae import convolutions, elbo, sampling, sharding, steps
from vaeiw_jax.vae.config import TrainConfig
from vaeiw_jax.vae.steps import TrainState, eval_step

STEPS_PER_CALL = 32  # on accelerators
CALLS_IN_FLIGHT = 2  # enough to keep a device busy, few enough to stop soon


@dataclasses.dataclass(frozen=True)
class Validation:
    """The model on the validation frames."""

    metrics: dict[str, float]
    """Means over all frames; of several games, over the games' means."""
    features: np.ndarray
    """int[N], true features per frame."""
    feature_shares: np.ndarray
    """float[F], the share of frames in which a feature is true."""
    games: dict[str, dict[str, float]]
    """The means over the frames of each game."""

    def worst_first(self) -> list[str]:
        """The games, those that are reconstructed worst first."""
        return sorted(self.games, key=lambda game: -self.games[game]["excess_bce"])


def split(
    config: TrainConfig, screen_set: screen_store.ScreenSet
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Which screens of each store to train on, and which to validate on."""
    for game, count in zip(screen_set.games, screen_set.counts, strict=True):
        if count < 2:
            raise UserError(
                f"there is {count} screen of {game or 'the game'}, and training takes at least two: one to train "
                "on and one to validate on; collect more"
            )
    return sampling.split(screen_set.counts, config.validation_share, config.seed)


def steps_per_epoch(config: TrainConfig, screen_set: screen_store.ScreenSet) -> int:
    """Steps until each game has given its share of the screens."""
    training = [len(rows) for rows in split(config, screen_set)[0]]
    return config.steps_per_epoch(sum(training) // len(training) * len(training))


class Trainer:
    """The compiled functions of a run and, on the devices, the screens they work on."""

    def __init__(self, config: TrainConfig, screen_set: screen_store.ScreenSet) -> None:
        training, validation = split(config, screen_set)
        self.config = config
        self.games = screen_set.games
        self.steps_per_epoch = steps_per_epoch(config, screen_set)
        self.total_steps = self.steps_per_epoch * config.epochs
        self.validation_counts = [len(rows) for rows in validation]
        self.validation_screens = screen_set.screens[np.concatenate(validation)]
        self._counts = [len(rows) for rows in training]
        self._mesh = sharding.device_mesh(config.batch_size)
        self._screens = sharding.replicate(self._mesh, screen_set.screens[np.concatenate(training)])
        self._device_validation = sharding.replicate(self._mesh, self.validation_screens)

        everywhere = sharding.replicated(self._mesh)
        constrain = functools.partial(
            jax.lax.with_sharding_constraint, shardings=sharding.along_batch(self._mesh)
        )
        self._shuffle = jax.jit(
            functools.partial(steps.epoch_order, config, self._counts[0]),
            out_shardings=sharding.along_batch(self._mesh, axis=1),
        )
        self._advance = jax.jit(
            functools.partial(steps.train_steps, config, constrain=constrain),
            static_argnums=0,
            donate_argnums=1,
            out_shardings=everywhere,
            compiler_options=convolutions.compiler_options(),
        )
        self._evaluate = jax.jit(
            functools.partial(eval_step, config, constrain=constrain),
            out_shardings=everywhere,
            compiler_options=convolutions.compiler_options(),
        )
        on_cpu = jax.default_backend() == "cpu"
        self.steps_per_call = config.steps_per_call or (1 if on_cpu else STEPS_PER_CALL)
        # Collectives of several CPU devices can block one another when more than one call runs.
        self.calls_in_flight = 0 if on_cpu and self._mesh.size > 1 else CALLS_IN_FLIGHT

    def next_validation(self, step: int) -> int:
        """The first step after `step` that a validation follows: one of each `validate_every`, and an epoch's last."""
        done = step % self.steps_per_epoch
        every = self.config.validate_every or self.steps_per_epoch
        return step - done + min(done - done % every + every, self.steps_per_epoch)

    def epoch_order(self, epoch: int) -> jax.Array:
        """The batches of an epoch, int32[steps, batch_size], cut along the devices."""
        if len(self._counts) == 1:
            return self._shuffle(epoch)
        batches = steps.batches(
            self.config, sampling.epoch_rows(self._counts, self.config.seed, epoch)
        )
        return sharding.place(batches, sharding.along_batch(self._mesh, axis=1))

    def place(self, state: TrainState) -> TrainState:
        """Puts a state on all devices."""
        return sharding.replicate(self._mesh, state)

    def advance(
        self, state: TrainState, order: jax.Array, count: int
    ) -> tuple[TrainState, elbo.Metrics]:
        """Begins `count` steps of an epoch; the buffers of `state` are given away."""
        return self._advance(count, state, self._screens, order)

    def validate(self, state: TrainState) -> Validation:
        size, count = self.config.batch_size, len(self.validation_screens)
        parts = []
        for batch, start in enumerate(range(0, count, size)):
            rows = np.arange(start, start + size)
            part = self._evaluate(
                state.variables, self._device_validation, rows % count, rows < count, batch
            )
            parts.append(part if self.calls_in_flight else jax.block_until_ready(part))
        parts = jax.device_get(parts)
        bce, entropy, kl, mse = (
            np.concatenate(term)[:count]
            for term in zip(*(part.terms for part in parts), strict=True)
        )
        features = np.concatenate([part.features for part in parts])[:count]
        shares = sum(part.feature_counts for part in parts) / count
        of_frames = {
            "loss": bce + self.config.model.beta * kl,
            "bce": bce,
            "excess_bce": bce - entropy,
            "kl": kl,
            "mse": mse,
            "features_per_frame": features,
        }
        games = self._by_game(of_frames)
        metrics = {
            name: float(np.mean([values[name] for values in games.values()])) for name in of_frames
        }
        metrics["features_varying"] = float(np.sum((shares > 0) & (shares < 1)))
        return Validation(metrics, features, shares, games)

    def _by_game(self, of_frames: dict[str, np.ndarray]) -> dict[str, dict[str, float]]:
        """The mean of each metric over the validation frames of each game."""
        ends = np.cumsum(self.validation_counts)[:-1]
        parts = {name: np.split(values, ends) for name, values in of_frames.items()}
        return {
            game: {name: float(np.mean(parts[name][store], dtype=np.float64)) for name in of_frames}
            for store, game in enumerate(self.games)
        }
