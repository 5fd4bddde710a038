"""How a policy learns: pure JAX functions from parameters and decisions to parameters."""

import functools

import jax
import jax.numpy as jnp
import optax
from jax.typing import ArrayLike

from vaeiw_jax.policies.config import PolicyConfig
from vaeiw_jax.policies.replay import Decisions

Parameters = dict[str, jax.Array]


def outputs(parameters: Parameters, bits: ArrayLike, num_rows: int) -> jax.Array:
    """float32[batch, outputs]: what `network.Network.outputs` computes of atoms, of packed bits."""
    true = jnp.unpackbits(jnp.asarray(bits), axis=-1, count=num_rows).astype(jnp.float32)
    inputs = true / jnp.sqrt(jnp.maximum(1.0, true.sum(axis=-1, keepdims=True)))
    if "hidden_weights" in parameters:
        hidden = inputs @ parameters["hidden_weights"] + parameters["hidden_bias"]
        inputs = jax.nn.relu(hidden)
    return inputs @ parameters["weights"] + parameters["bias"]


def loss(parameters: Parameters, batch: Decisions, num_rows: int) -> jax.Array:
    """The mean cross-entropy of the target among tried actions and, with a value, its squared error by `symlog`.

    Actions that were not tried are left out of the softmax: a decision says nothing about them.
    """
    predicted = outputs(parameters, batch.bits, num_rows)
    num_actions = batch.target.shape[-1]
    logits = jnp.where(batch.tried, predicted[:, :num_actions], -jnp.inf)
    log_probabilities = jnp.where(batch.tried, jax.nn.log_softmax(logits), 0.0)
    total = -(batch.target * log_probabilities).sum(axis=-1).mean()
    if predicted.shape[-1] > num_actions:
        total += jnp.square(predicted[:, num_actions] - batch.value).mean()
    return total


def optimiser(config: PolicyConfig) -> optax.GradientTransformation:
    """RMSProp on clipped gradients. Weights decay apart from it, at the same pace whatever their gradients."""
    return optax.chain(
        optax.clip_by_global_norm(config.policy_clip_norm),
        optax.scale_by_rms(decay=0.99, eps=1e-8),
        optax.add_decayed_weights(config.policy_weight_decay),
        optax.scale_by_learning_rate(config.policy_learning_rate),
    )


@functools.partial(jax.jit, static_argnames=("config", "num_rows"))
def train(
    parameters: Parameters,
    optimiser_state: optax.OptState,
    batches: Decisions,
    config: PolicyConfig,
    num_rows: int,
) -> tuple[Parameters, optax.OptState, jax.Array]:
    """A gradient step for each batch; returns the new parameters and state, and the mean of the losses.

    Args:
      parameters: as in `network.Parameters`.
      optimiser_state: of `optimiser(config)`.
      batches: with two leading axes, [steps, batch].
      config: of the optimiser.
      num_rows: of the first layer.
    """
    update = optimiser(config).update

    def step(
        carry: tuple[Parameters, optax.OptState], batch: Decisions
    ) -> tuple[tuple[Parameters, optax.OptState], jax.Array]:
        parameters, state = carry
        value, gradients = jax.value_and_grad(loss)(parameters, batch, num_rows)
        updates, state = update(gradients, state, parameters)
        return (optax.apply_updates(parameters, updates), state), value

    (parameters, optimiser_state), losses = jax.lax.scan(
        step, (parameters, optimiser_state), batches
    )
    return parameters, optimiser_state, losses.mean()
