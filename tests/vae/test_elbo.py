"""The loss and what follows from it: gradients, Adam's steps, metrics."""

import copy
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

from tests.vae import pairs, torch_reference
from vaeiw_jax.errors import UserError
from vaeiw_jax.vae import elbo, latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE

LEARNING_RATE = 1e-4


def compiled_step(config: ModelConfig):
    """(variables, optimiser's state, frames, noise) -> (loss, gradients, variables, state)."""
    masks = pairs.Masks(config)
    model = VAE(config)

    def step(variables, state, frames, noise):
        def objective(params):
            with masks.applied():
                return elbo.loss(
                    model, {**variables, "params": params}, frames, noise, None, train=True
                )

        (loss, (_, stats)), gradients = jax.value_and_grad(objective, has_aux=True)(
            variables["params"]
        )
        updates, state = optax.adam(LEARNING_RATE).update(gradients, state)
        params = optax.apply_updates(variables["params"], updates)
        return loss, gradients, {"params": params, "batch_stats": stats}, state

    return jax.jit(step)


def torch_steps(model, config, frames, noise, dtype):
    """Ten steps of PyTorch's Adam: the first loss and gradients, the parameters after the tenth."""
    model = copy.deepcopy(model).to(dtype)
    optimiser = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    arguments = pairs.to_torch(frames, dtype), pairs.to_torch(noise, dtype)
    for i in range(10):
        optimiser.zero_grad()
        loss = torch_reference.loss(model, *arguments)
        loss.backward()
        if i == 0:
            first_loss, gradients = loss.item(), copy.deepcopy(model)
            for copied, parameter in zip(gradients.parameters(), model.parameters(), strict=True):
                copied.data = parameter.grad.clone()
        optimiser.step()
    as_params = [pairs.variables_of(m, config)["params"] for m in (gradients, model)]
    return first_loss, *as_params


@pytest.mark.parametrize("name", pairs.MODELS)
def test_loss_gradients_and_ten_adam_steps_equal_pytorch(name: str) -> None:
    """In float32 as near to the truth, PyTorch in float64, as PyTorch in float32 is.

    Nearer cannot be asked for: Adam divides gradients by their size, so a parameter whose gradient
    is rounding noise (a bias before a BatchNorm) takes full steps in a random direction.
    """
    config = pairs.MODELS[name]
    model = pairs.reference(config).train()
    variables = pairs.variables_of(model, config)
    pairs.Masks(config).install(model)
    frames, noise = pairs.inputs(config, seed=1)
    loss64, gradients64, params64 = torch_steps(model, config, frames, noise, torch.float64)
    _, gradients32, params32 = torch_steps(model, config, frames, noise, torch.float32)

    step = compiled_step(config)
    state = optax.adam(LEARNING_RATE).init(variables["params"])
    first_loss, gradients, variables, state = step(variables, state, frames, noise)
    for _ in range(9):
        _, _, variables, state = step(variables, state, frames, noise)

    np.testing.assert_allclose(first_loss, loss64, rtol=1e-6)
    jax.tree.map_with_path(assert_as_near, gradients, gradients32, gradients64)
    jax.tree.map_with_path(assert_as_near, variables["params"], params32, params64)


def assert_as_near(path, actual, peer, truth) -> None:
    size = np.linalg.norm(truth)
    error, peer_error = np.linalg.norm(actual - truth) / size, np.linalg.norm(peer - truth) / size
    assert error < 3 * peer_error + 1e-5, (jax.tree_util.keystr(path), error, peer_error)


def evaluate(config: ModelConfig, zero_suppression: float = 0.0, frames=None):
    variables = pairs.variables_of(pairs.reference(config), config)
    default_frames, noise = pairs.inputs(config, seed=1)
    frames = default_frames if frames is None else frames
    return elbo.loss(
        VAE(config), variables, frames, noise, None, False, zero_suppression=zero_suppression
    )


def test_loss_is_reconstruction_plus_beta_times_kl() -> None:
    total, (metrics, _) = evaluate(ModelConfig(latent="4x4x5", beta=0.5))
    assert metrics["kl"] > 0
    np.testing.assert_allclose(total, metrics["bce"] + 0.5 * metrics["kl"], rtol=1e-6)


def test_excess_is_zero_for_a_perfect_reconstruction_of_grey() -> None:
    config = ModelConfig(latent="4x4x5")
    variables = pairs.variables_of(pairs.reference(config), config)
    last = variables["params"]["decoder"]["conv_4"]
    last["kernel"], last["bias"] = 0 * last["kernel"], np.array([math.log(3)], np.float32)
    frames = np.full((2, 128, 128, 1), 0.75, np.float32)  # the sigmoid of log 3
    _, noise = pairs.inputs(config, seed=1)
    _, (metrics, _) = elbo.loss(VAE(config), variables, frames, noise, None, False)
    floor = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) * 128 * 128
    np.testing.assert_allclose(metrics["bce"], floor, rtol=1e-5)
    assert abs(metrics["excess_bce"]) < 0.1
    assert metrics["mse"] < 1e-10


def test_black_and_white_frames_have_no_floor() -> None:
    frames = np.zeros((2, 128, 128, 1), np.float32)
    frames[:, :64] = 1
    _, (metrics, _) = evaluate(ModelConfig(latent="4x4x5"), frames=frames)
    np.testing.assert_allclose(metrics["excess_bce"], metrics["bce"], rtol=1e-6)


def test_zero_suppression_adds_the_mean_probability() -> None:
    config = ModelConfig(latent="4x4x5")
    without, _ = evaluate(config)
    with_suppression, _ = evaluate(config, zero_suppression=1000.0)
    variables = pairs.variables_of(pairs.reference(config), config)
    frames, _ = pairs.inputs(config, seed=1)
    posterior = VAE(config).apply(variables, frames, False, method="encode")
    expected = 1000 * jax.nn.sigmoid(posterior).mean()
    np.testing.assert_allclose(with_suppression - without, expected, rtol=1e-3)


def test_zero_suppression_of_gaussian_latents_is_refused() -> None:
    with pytest.raises(UserError, match="zero_suppression is for bernoulli latents"):
        evaluate(ModelConfig(latent="4x4x5", latent_kind="gaussian"), zero_suppression=0.7)


def test_evaluation_keeps_the_running_averages() -> None:
    config = ModelConfig(latent="4x4x5")
    variables = pairs.variables_of(pairs.reference(config), config)
    _, (_, stats) = evaluate(config)
    jax.tree.map(np.testing.assert_array_equal, stats, variables["batch_stats"])


def test_kl_has_no_gradient_at_the_prior() -> None:
    config = ModelConfig(latent="4x4x5", prior=0.2)
    logits = jnp.full((1, 4, 4, 5), math.log(0.2 / 0.8))
    gradient = jax.grad(lambda logits: latents.kl(config, logits)[0])(logits)
    np.testing.assert_allclose(gradient, 0, atol=1e-7)
