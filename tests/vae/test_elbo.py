"""The loss and what follows from it: gradients, Adam's steps, metrics."""

import copy
import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

from tests.train_process import SOON
from tests.vae import pairs, torch_reference
from vaeiw_jax.vae import elbo, latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE

LEARNING_RATE = 1e-4
KEY = jax.random.key(0)
"""For dropout; where there is any, `pairs.Masks` replaces it."""
WITHOUT_DROPOUT = ModelConfig(latent="4x4x5", dropout=0.0)


@functools.cache
def compiled_step(config: ModelConfig):
    """(variables, optimiser's state, frames, noise) -> (loss, gradients, variables, state)."""
    masks = pairs.Masks(config)
    model = VAE(config)

    def step(variables, state, frames, noise):
        def objective(params):
            with masks.applied():
                return elbo.loss(model, {**variables, "params": params}, frames, noise, KEY)

        (loss, (_, stats)), gradients = jax.value_and_grad(objective, has_aux=True)(
            variables["params"]
        )
        updates, state = optax.adam(LEARNING_RATE).update(gradients, state)
        params = optax.apply_updates(variables["params"], updates)
        return loss, gradients, {"params": params, "batch_stats": stats}, state

    return jax.jit(step, compiler_options=SOON)


def torch_steps(model, config, frames, noise, dtype, count):
    """Steps of PyTorch's Adam: the last loss, its gradients, the parameters after it."""
    model = copy.deepcopy(model).to(dtype)
    optimiser = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    arguments = pairs.to_torch(frames, dtype), pairs.to_torch(noise, dtype)
    for _ in range(count):
        optimiser.zero_grad()
        loss = torch_reference.loss(model, *arguments)
        loss.backward()
        optimiser.step()
    gradients = copy.deepcopy(model)
    for copied, parameter in zip(gradients.parameters(), model.parameters(), strict=True):
        copied.data = parameter.grad.clone()
    as_params = [pairs.variables_of(m, config)["params"] for m in (gradients, model)]
    return loss.item(), *as_params


@pytest.mark.parametrize("name", pairs.MODELS)
def test_loss_and_every_gradient_equal_pytorch(name: str) -> None:
    """In float32 as near to the truth, PyTorch in float64, as PyTorch in float32 is.

    The slack is for activations so near zero that rounding decides on their sign, hence their
    slope: each one changes the gradient of a layer of half a million activations by a thousandth.
    """
    config = pairs.MODELS[name]
    model = pairs.reference(config).train()
    variables = pairs.variables_of(model, config)
    pairs.Masks(config).install(model)
    frames, noise = pairs.inputs(config, seed=1)
    loss64, gradients64, _ = torch_steps(model, config, frames, noise, torch.float64, 1)
    _, gradients32, _ = torch_steps(model, config, frames, noise, torch.float32, 1)

    state = optax.adam(LEARNING_RATE).init(variables["params"])
    loss, gradients, _, _ = compiled_step(config)(variables, state, frames, noise)

    np.testing.assert_allclose(loss, loss64, rtol=1e-6)
    jax.tree.map_with_path(
        lambda path, *tensors: assert_as_near(*tensors, slack=5e-3, path=path),
        gradients,
        gradients32,
        gradients64,
    )


def test_parameters_after_ten_adam_steps_equal_pytorch() -> None:
    """As near as PyTorch in float32 is to PyTorch in float64; nearer cannot be asked for.

    Adam divides gradients by their size, so a parameter whose gradient is rounding noise, such as
    a bias before a BatchNorm, takes full steps in a random direction.
    """
    config = pairs.MODELS["15x15"]
    model = pairs.reference(config).train()
    start = variables = pairs.variables_of(model, config)
    pairs.Masks(config).install(model)
    frames, noise = pairs.inputs(config, seed=1)
    _, _, params64 = torch_steps(model, config, frames, noise, torch.float64, 10)
    _, _, params32 = torch_steps(model, config, frames, noise, torch.float32, 10)

    step = compiled_step(config)
    state = optax.adam(LEARNING_RATE).init(variables["params"])
    for _ in range(10):
        _, _, variables, state = step(variables, state, frames, noise)

    def changes_are_near(path, first, actual, peer, truth) -> None:
        assert_as_near(actual - first, peer - first, truth - first, slack=0.05, path=path)

    jax.tree.map_with_path(
        changes_are_near, start["params"], variables["params"], params32, params64
    )


def assert_as_near(actual, peer, truth, slack: float, path: str) -> None:
    """At most three times as far from the truth as the peer, and what `slack` allows."""
    size = np.linalg.norm(truth)
    error, peer_error = np.linalg.norm(actual - truth) / size, np.linalg.norm(peer - truth) / size
    assert error < 3 * peer_error + slack, (path, error, peer_error)


@functools.partial(jax.jit, static_argnums=(0, 4), compiler_options=SOON)
def compiled_loss(config: ModelConfig, variables, frames, noise, zero_suppression: float = 0.0):
    return elbo.loss(VAE(config), variables, frames, noise, KEY, zero_suppression=zero_suppression)


def evaluate(config: ModelConfig, zero_suppression: float = 0.0, frames=None):
    variables = pairs.variables_of(pairs.reference(config), config)
    default_frames, noise = pairs.inputs(config, seed=1)
    frames = default_frames if frames is None else frames
    return compiled_loss(config, variables, frames, noise, zero_suppression)


def test_loss_is_reconstruction_plus_beta_times_kl() -> None:
    total, (metrics, _) = evaluate(dataclasses.replace(WITHOUT_DROPOUT, beta=0.5))
    assert metrics["kl"] > 0
    np.testing.assert_allclose(total, metrics["bce"] + 0.5 * metrics["kl"], rtol=1e-6)


def test_excess_is_zero_for_a_perfect_reconstruction_of_grey() -> None:
    config = WITHOUT_DROPOUT
    variables = pairs.variables_of(pairs.reference(config), config)
    last = variables["params"]["decoder"]["conv_4"]
    last["kernel"], last["bias"] = 0 * last["kernel"], np.array([math.log(3)], np.float32)
    frames = np.full((2, 128, 128, 1), 0.75, np.float32)  # the sigmoid of log 3
    _, noise = pairs.inputs(config, seed=1)
    _, (metrics, _) = compiled_loss(config, variables, frames, noise)
    floor = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) * 128 * 128
    np.testing.assert_allclose(metrics["bce"], floor, rtol=1e-5)
    assert abs(metrics["excess_bce"]) < 0.1
    assert metrics["mse"] < 1e-10


def test_black_and_white_frames_have_no_floor() -> None:
    frames = np.zeros((2, 128, 128, 1), np.float32)
    frames[:, :64] = 1
    _, (metrics, _) = evaluate(WITHOUT_DROPOUT, frames=frames)
    np.testing.assert_allclose(metrics["excess_bce"], metrics["bce"], rtol=1e-6)


def test_zero_suppression_adds_the_mean_probability() -> None:
    config = WITHOUT_DROPOUT
    without, _ = evaluate(config)
    with_suppression, _ = evaluate(config, zero_suppression=1000.0)
    variables = pairs.variables_of(pairs.reference(config), config)
    frames, _ = pairs.inputs(config, seed=1)
    posterior, _ = jax.jit(
        lambda *given: VAE(config).apply(*given, True, method="encode", mutable=["batch_stats"])
    )(variables, frames)
    expected = 1000 * jax.nn.sigmoid(posterior).mean()
    np.testing.assert_allclose(with_suppression - without, expected, rtol=1e-3)


def test_kl_has_no_gradient_at_the_prior() -> None:
    config = ModelConfig(latent="4x4x5", prior=0.2)
    logits = jnp.full((1, 4, 4, 5), math.log(0.2 / 0.8))
    gradient = jax.grad(lambda logits: latents.kl(config, logits)[0])(logits)
    np.testing.assert_allclose(gradient, 0, atol=1e-7)
