"""The pure half of training: state, the step, the evaluation of a batch.

All that is random is a function of the seed and the number of the step, so that a checkpoint needs
no more than the state, and a run that goes on from one is the run that was never interrupted.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax

from vaeiw_jax import frames as frames_lib
from vaeiw_jax.vae import elbo, latents
from vaeiw_jax.vae.config import TrainConfig
from vaeiw_jax.vae.elbo import Metrics
from vaeiw_jax.vae.networks import VAE

Order = TypeVar("Order", jax.Array, np.ndarray)

# The uses of the seed: each draws from a stream of its own.
_INIT, _ORDER, _STEP, _VALIDATION, _PICTURE = range(5)


@flax.struct.dataclass
class TrainState:
    """All that training carries from one step to the next."""

    step: jax.Array  # int32[], steps done
    params: Any
    batch_stats: Any
    opt_state: optax.OptState

    @property
    def variables(self) -> dict[str, Any]:
        return {"params": self.params, "batch_stats": self.batch_stats}


def create_train_state(config: TrainConfig) -> TrainState:
    """The state before the first step."""

    @jax.jit  # compiled, the forward pass that Flax traces is not computed
    def init(key: jax.Array) -> TrainState:
        frames = jnp.zeros((1, frames_lib.FRAME_SIZE, frames_lib.FRAME_SIZE, 1))
        noise = latents.noise(config.model, key, 1)
        variables = VAE(config.model).init(key, frames, noise, False)
        return TrainState(
            step=jnp.zeros((), jnp.int32),
            params=variables["params"],
            batch_stats=variables["batch_stats"],
            opt_state=_optimizer(config).init(variables["params"]),
        )

    # This generator compiles in a fraction of the time the default takes on the CPU.
    key = jax.random.wrap_key_data(
        jax.random.bits(_key(config, _INIT), (4,), jnp.uint32), impl="rbg"
    )
    return init(key)


def train_state_of(config: TrainConfig, variables: Mapping[str, Any]) -> TrainState:
    """The state before the first step of a run that begins with a model's "params" and "batch_stats"."""
    return TrainState(
        step=jnp.zeros((), jnp.int32),
        params=variables["params"],
        batch_stats=variables["batch_stats"],
        opt_state=jax.jit(_optimizer(config).init)(variables["params"]),
    )


def epoch_order(config: TrainConfig, num_screens: int, epoch: jax.Array | int) -> jax.Array:
    """The batches of an epoch, int32[steps, batch_size]."""
    key = jax.random.fold_in(_key(config, _ORDER), epoch)
    return batches(config, jax.random.permutation(key, num_screens))


def batches(config: TrainConfig, order: Order) -> Order:
    """int32[screens] -> int32[steps, batch_size]; the last, partial batch is dropped."""
    steps = config.steps_per_epoch(len(order))
    return order[: steps * config.batch_size].reshape(steps, config.batch_size)


def train_step(
    config: TrainConfig,
    state: TrainState,
    screens: jax.Array,
    order: jax.Array,
    constrain: Callable[[jax.Array], jax.Array] = lambda frames: frames,
) -> tuple[TrainState, Metrics]:
    """One step of Adam on the beta-ELBO.

    Args:
      config: how to train.
      state: the state before the step.
      screens: uint8[N, rows, columns], all frames to train on.
      order: int32[steps, batch_size], the batches of the epoch that the step is in.
      constrain: puts the batch of frames on the devices.

    Returns:
      The state after the step and the metrics of the batch (scalars).
    """
    batch = screens[order[state.step % len(order)]]
    frames = constrain(frames_lib.from_screens(batch)[..., None])
    noise_key, dropout_key = jax.random.split(jax.random.fold_in(_key(config, _STEP), state.step))
    noise = latents.noise(config.model, noise_key, len(frames))
    progress = state.step / (config.epochs * len(order))
    tau, zero_suppression = _schedules(config, progress)

    def loss(params: Any) -> tuple[jax.Array, tuple[Metrics, Any]]:
        variables = {"params": params, "batch_stats": state.batch_stats}
        model = VAE(config.model)
        return elbo.loss(model, variables, frames, noise, dropout_key, tau, zero_suppression)

    (_, (metrics, batch_stats)), gradients = jax.value_and_grad(loss, has_aux=True)(state.params)
    updates, opt_state = _optimizer(config).update(gradients, state.opt_state, state.params)
    if config.learning_rate_end:
        learning_rate = _learning_rate(config, progress)
        updates = jax.tree.map(lambda u: u * (learning_rate / config.learning_rate), updates)
    new_state = TrainState(
        step=state.step + 1,
        params=optax.apply_updates(state.params, updates),
        batch_stats=batch_stats,
        opt_state=opt_state,
    )
    metrics["gradient_norm"] = optax.tree.norm(gradients)
    if config.learning_rate_end:
        metrics["learning_rate"] = learning_rate
    if config.tau_start:
        metrics["tau"] = tau
    if config.zero_suppression:
        metrics["zero_suppression"] = zero_suppression
    return new_state, metrics


def train_steps(
    config: TrainConfig,
    count: int,
    state: TrainState,
    screens: jax.Array,
    order: jax.Array,
    constrain: Callable[[jax.Array], jax.Array] = lambda frames: frames,
) -> tuple[TrainState, Metrics]:
    """`count` steps of one epoch in one call; the metrics are stacked, float32[count].

    Loops of the compiler slow convolution gradients down on the CPU, so a single step has none.
    """
    if count == 1:
        state, metrics = train_step(config, state, screens, order, constrain)
        return state, jax.tree.map(lambda metric: jnp.asarray(metric)[None], metrics)

    def body(state: TrainState, _: None) -> tuple[TrainState, Metrics]:
        return train_step(config, state, screens, order, constrain)

    return jax.lax.scan(body, state, length=count)


@flax.struct.dataclass
class Evaluation:
    """What validation gives for each of a batch of B frames, and for each feature."""

    terms: elbo.Terms
    features: jax.Array  # int32[B], true features
    feature_counts: jax.Array  # int32[F], in how many of the frames a feature is true


def eval_step(
    config: TrainConfig,
    variables: dict[str, Any],
    screens: jax.Array,
    indices: jax.Array,
    valid: jax.Array,
    batch: jax.Array | int,
    constrain: Callable[[jax.Array], jax.Array] = lambda frames: frames,
) -> Evaluation:
    """Evaluates one batch: running averages in BatchNorm, no dropout, noise from a fixed key.

    Args:
      config: how the model is trained.
      variables: its "params" and "batch_stats".
      screens: uint8[N, rows, columns].
      indices: int[B], which of them are in the batch.
      valid: bool[B], which of these count; the rest fill up the batch.
      batch: the number of the batch.
      constrain: puts the batch of frames on the devices.
    """
    model = config.model
    frames = constrain(frames_lib.from_screens(screens[indices])[..., None])
    noise_key = jax.random.fold_in(_key(config, _VALIDATION), batch)
    noise = latents.noise(model, noise_key, len(frames))
    output: Any = VAE(model).apply(variables, frames, noise, False)
    bits = latents.bits(model, output.posterior)
    return Evaluation(
        terms=elbo.terms(model, output, frames),
        features=bits.sum(axis=1, dtype=jnp.int32),
        feature_counts=(bits & valid[:, None]).sum(axis=0, dtype=jnp.int32),
    )


def picture_key(config: TrainConfig) -> jax.Array:
    """The key for samples from the prior: the same in every picture of a run."""
    return _key(config, _PICTURE)


def _key(config: TrainConfig, stream: int) -> jax.Array:
    return jax.random.fold_in(jax.random.key(config.seed), stream)


@functools.cache
def _optimizer(config: TrainConfig) -> optax.GradientTransformation:
    adam = optax.adam(config.learning_rate)
    if not config.clip_norm:
        return adam
    return optax.chain(optax.clip_by_global_norm(config.clip_norm), adam)


def _learning_rate(config: TrainConfig, progress: jax.Array) -> jax.Array:
    """Half a cosine from `learning_rate` to `learning_rate_end`."""
    start, end = config.learning_rate, config.learning_rate_end
    return end + (start - end) * (1 + jnp.cos(jnp.pi * progress)) / 2


def _schedules(
    config: TrainConfig, progress: jax.Array
) -> tuple[jax.Array | None, jax.Array | float]:
    """Temperature and weight of zero-suppression when a share `progress` of training is done."""
    tau = None
    if config.tau_start:
        tau = config.tau_start * (config.model.tau / config.tau_start) ** progress
    weight: jax.Array | float = config.zero_suppression
    if weight and config.zero_suppression_from:
        weight = weight * jnp.clip(progress / config.zero_suppression_from - 1, 0, 1)
    return tau, weight
