"""The convolutions for the CPU are those of XLA: same values, same gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.vae import pairs
from vaeiw_jax.vae import convolutions, elbo
from vaeiw_jax.vae.channels import channel_sum, spread
from vaeiw_jax.vae.networks import VAE


def random(seed: int, *shape: int) -> jax.Array:
    return jnp.array(np.random.default_rng(seed).standard_normal(shape, np.float32))


def assert_same(function, *arguments) -> None:
    """Values and gradients, of a function that takes `rewritten`, agree to float tolerance."""

    def value_and_gradients(rewritten: bool):
        value, pull_back = jax.vjp(functools.partial(function, rewritten=rewritten), *arguments)
        return value, *pull_back(jnp.sin(jnp.arange(value.size) * 1.0).reshape(value.shape))

    pairs_of_arrays = zip(value_and_gradients(True), value_and_gradients(False), strict=True)
    for actual, expected in pairs_of_arrays:
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * jnp.abs(expected).max())


@pytest.mark.parametrize(
    ("height", "width", "size", "stride", "padding"),
    [(9, 8, 3, 1, 1), (13, 12, 4, 2, 0), (12, 15, 3, 2, 1), (13, 12, 3, 2, 0), (7, 7, 3, 2, 1)],
)
def test_conv_equals_xla(height, width, size, stride, padding) -> None:
    convolve = functools.partial(convolutions.conv, stride=stride, padding=padding)
    assert_same(convolve, random(0, 3, height, width, 5), random(1, size, size, 5, 7))


@pytest.mark.parametrize("size", [3, 4])
def test_transposed_conv_equals_xla(size: int) -> None:
    assert_same(convolutions.conv_transpose, random(0, 3, 5, 6, 5), random(1, size, size, 5, 7))


def test_loss_and_gradients_of_a_model_do_not_depend_on_the_rewriting(monkeypatch) -> None:
    config = pairs.MODELS["15x15"]
    variables = pairs.variables_of(pairs.reference(config), config)
    frames, noise = pairs.inputs(config, seed=1)
    forms = {name: getattr(convolutions, name) for name in ("conv", "conv_transpose")}

    def loss_and_gradients(rewritten: bool):
        for name in ("conv", "conv_transpose"):
            form = functools.partial(forms[name], rewritten=rewritten)
            monkeypatch.setattr(convolutions, name, form)

        def loss(params):
            # In evaluation, where no statistics of a batch of two amplify rounding.
            output = VAE(config).apply({**variables, "params": params}, frames, noise, False)
            terms = elbo.terms(config, output, frames)
            return (terms.bce + config.beta * terms.kl).mean()

        return jax.jit(jax.value_and_grad(loss))(variables["params"])

    actual, expected = loss_and_gradients(True), loss_and_gradients(False)

    def assert_close(a, b) -> None:
        assert jnp.linalg.norm(a - b) <= 1e-4 * jnp.linalg.norm(b)

    jax.tree.map(assert_close, actual, expected)


def test_channel_sum_adds_over_batch_rows_and_columns() -> None:
    x = random(0, 3, 4, 5, 6)
    np.testing.assert_allclose(channel_sum(x), np.asarray(x, float).sum((0, 1, 2)), rtol=1e-4)


def test_gradient_of_spread_is_the_sum_of_gradients() -> None:
    image, weights = random(0, 3, 4, 5, 6), random(1, 3, 4, 5, 6)
    gradient = jax.grad(lambda vector: (weights * spread(vector, image)).sum())(jnp.ones(6))
    np.testing.assert_allclose(gradient, weights.sum((0, 1, 2)), rtol=1e-4, atol=1e-5)


def test_compiler_options_are_accepted_by_this_xla() -> None:
    function = jax.jit(lambda x: x + 1, compiler_options=convolutions.compiler_options())
    assert function(1) == 2
