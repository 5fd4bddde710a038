"""The networks against the PyTorch reference, and what PyTorch does not say."""

import dataclasses

import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.vae import pairs
from vaeiw_jax.vae import latents, networks
from vaeiw_jax.vae.architecture import variable_shapes
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE

EVERY_MODEL = pytest.mark.parametrize("name", pairs.MODELS)


def assert_close(actual, expected) -> None:
    """To float32's tolerance, relative to the largest number: sums of thousands of terms."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def in_float64(model, frames, noise):
    """What PyTorch computes; in float32 some of its convolutions round ten times as much as ours."""
    return model(pairs.to_torch(frames, torch.float64), pairs.to_torch(noise, torch.float64))


@EVERY_MODEL
def test_outputs_in_evaluation_equal_pytorch(name: str) -> None:
    config = pairs.MODELS[name]
    model = pairs.reference(config).eval()
    variables = pairs.variables_of(model, config)
    frames, noise = pairs.inputs(config, seed=1)
    expected = in_float64(model.double(), frames, noise)

    run = jax.jit(lambda *arguments: VAE(config).apply(*arguments, False))
    output = run(variables, frames, noise)

    for actual, tensor in zip(output, expected, strict=True):
        assert_close(actual, pairs.from_torch(tensor))


@EVERY_MODEL
def test_variables_have_the_shapes_that_are_expected_of_saved_ones(name: str) -> None:
    config = pairs.MODELS[name]

    def init(key):
        frames = jnp.zeros((1, 128, 128, 1))
        return VAE(config).init(key, frames, latents.noise(config, key, 1), False)

    made = flax.traverse_util.flatten_dict(jax.eval_shape(init, jax.random.key(0)), sep="/")
    assert {name: array.shape for name, array in made.items()} == variable_shapes(config)
    assert {array.dtype for array in made.values()} == {np.dtype("float32")}


@EVERY_MODEL
def test_outputs_and_running_averages_in_training_equal_pytorch(name: str) -> None:
    config = pairs.MODELS[name]
    masks = pairs.Masks(config)
    model = pairs.reference(config).train()
    variables = pairs.variables_of(model, config)
    masks.install(model)
    model.double()

    @jax.jit
    def run(variables, frames, noise):
        with masks.applied():
            return VAE(config).apply(variables, frames, noise, True, mutable=["batch_stats"])

    for seed in range(3):
        frames, noise = pairs.inputs(config, seed)
        output, updates = run(variables, frames, noise)
        variables = {**variables, **updates}
        expected = in_float64(model, frames, noise)
        for actual, tensor in zip(output, expected, strict=True):
            assert_close(actual, pairs.from_torch(tensor))
    expected_stats = pairs.variables_of(model, config)["batch_stats"]
    jax.tree.map(assert_close, variables["batch_stats"], expected_stats)


@pytest.mark.parametrize(
    ("latent", "kind", "channels"),
    [("15x15x20", "bernoulli", 20), ("4x4x200", "bernoulli", 200), ("4x4x7", "gaussian", 14)],
)
def test_code_and_image_have_the_sizes_of_the_config(latent, kind, channels) -> None:
    config = ModelConfig(latent=latent, latent_kind=kind)
    key = jax.random.key(0)
    frames = jnp.zeros((3, 128, 128, 1))
    codes = jnp.zeros((3, config.height, config.width, config.channels))
    output, _ = jax.eval_shape(
        lambda: VAE(config).init_with_output({"params": key}, frames, codes, False)
    )
    assert output.posterior.shape == (3, config.height, config.width, channels)
    assert output.latents.shape == codes.shape
    assert output.pixel_logits.shape == frames.shape


def test_published_logits_are_clamped_in_the_autoencoder_and_not_in_the_encoder() -> None:
    config = pairs.MODELS["published"]
    variables = pairs.variables_of(pairs.reference(config), config)
    variables["params"]["encoder"]["conv_2"]["bias"] += np.linspace(-20, 20, 20, dtype=np.float32)
    frames, noise = pairs.inputs(config, seed=1)

    output = VAE(config).apply(variables, frames, noise, False)
    posterior = VAE(config).apply(variables, frames, False, method="encode")

    assert np.abs(posterior).max() > 15
    np.testing.assert_array_equal(output.posterior, np.clip(posterior, -8, 8))


def test_bfloat16_changes_the_arithmetic_but_not_the_types_outside() -> None:
    config = ModelConfig(dtype="bfloat16")
    variables = pairs.variables_of(pairs.reference(config), config)
    frames, noise = pairs.inputs(config, seed=1)
    run = jax.jit(lambda config, *arguments: VAE(config).apply(*arguments, False), static_argnums=0)
    output = run(config, variables, frames, noise)
    exact = run(dataclasses.replace(config, dtype="float32"), variables, frames, noise)
    for actual, expected in zip(output, exact, strict=True):
        assert actual.dtype == jnp.float32
        difference = np.abs(actual - expected).max() / np.abs(expected).max()
        assert 0 < difference < 0.05


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_dropout_zeroes_its_share_and_scales_up_the_rest(rate: float) -> None:
    x = jnp.ones((8, 32, 32, 63))
    y = networks.Dropout(rate).apply({}, x, True, rngs={"dropout": jax.random.key(0)})
    dropped = float((y == 0).mean())
    assert abs(dropped - rate) < 4 * np.sqrt(rate * (1 - rate) / x.size)
    np.testing.assert_allclose(y[y != 0], 1 / (1 - rate), rtol=1e-4)


def test_dropout_of_neighbours_is_independent() -> None:
    y = networks.Dropout(0.5).apply(
        {}, jnp.ones((8, 32, 32, 64)), True, rngs={"dropout": jax.random.key(0)}
    )
    kept = np.asarray(y != 0, np.float64).reshape(-1, 64)
    correlation = np.corrcoef(kept.T)
    np.fill_diagonal(correlation, 0)
    assert np.abs(correlation).max() < 6 / np.sqrt(len(kept))


def test_dropout_of_different_steps_rows_and_images_is_independent() -> None:
    """Keys that differ in one bit, as those of steps in sequence may, share nothing."""
    masks = []
    for key in range(24):
        key_data = jnp.array([0, 1 << key], jnp.uint32)
        rngs = {"dropout": jax.random.wrap_key_data(key_data)}
        y = networks.Dropout(0.5).apply({}, jnp.ones((4, 16, 16, 64)), True, rngs=rngs)
        masks.append(np.asarray(y != 0, np.float64))
    by_key = np.stack(masks)
    for samples in (
        by_key.reshape(24, -1),
        by_key.transpose(1, 0, 2, 3, 4).reshape(4, -1),  # images
        by_key.transpose(2, 0, 1, 3, 4).reshape(16, -1),  # rows
    ):
        correlation = np.corrcoef(samples)
        np.fill_diagonal(correlation, 0)
        assert np.abs(correlation).max() < 5 / np.sqrt(samples.shape[1])


def test_published_dropout_drops_whole_channels_of_an_image() -> None:
    dropout = networks.Dropout(0.2, whole_channels=True)
    y = dropout.apply({}, jnp.ones((64, 5, 5, 64)), True, rngs={"dropout": jax.random.key(0)})
    kept = np.asarray(y[:, 0, 0] != 0)
    np.testing.assert_array_equal(y != 0, np.broadcast_to(kept[:, None, None], y.shape))
    assert 0.75 < kept.mean() < 0.85


def test_dropout_is_off_outside_training() -> None:
    x = jax.random.normal(jax.random.key(0), (2, 4, 4, 8))
    np.testing.assert_array_equal(networks.Dropout(0.2).apply({}, x, False), x)
