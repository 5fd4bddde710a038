"""Latents against their definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from vaeiw_jax.errors import UserError
from vaeiw_jax.vae import codes, latents
from vaeiw_jax.vae.config import ModelConfig

BERNOULLI = ModelConfig(latent="4x4x2")
GAUSSIAN = ModelConfig(latent="4x4x2", latent_kind="gaussian")


def posterior_of(config: ModelConfig, *values: float) -> jnp.ndarray:
    """The same outputs of the encoder everywhere."""
    channels = np.repeat(np.array(values, np.float32), 2)
    return jnp.broadcast_to(channels, (1, 4, 4, config.posterior_channels))


@pytest.mark.parametrize("prior", [0.5, 0.1])
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.95])
def test_bernoulli_kl_is_the_sum_over_both_outcomes(prior: float, probability: float) -> None:
    config = ModelConfig(latent="4x4x2", prior=prior)
    posterior = posterior_of(config, np.log(probability / (1 - probability)))
    expected = 32 * scipy.stats.entropy([probability, 1 - probability], [prior, 1 - prior])
    np.testing.assert_allclose(latents.kl(config, posterior), [expected], rtol=1e-5, atol=1e-5)


def test_bernoulli_kl_is_finite_for_certain_latents() -> None:
    for logit in (-200.0, 200.0):
        kl = latents.kl(BERNOULLI, posterior_of(BERNOULLI, logit))
        np.testing.assert_allclose(kl, [32 * np.log(2)], rtol=1e-6)


@settings(deadline=None, max_examples=30)
@given(mean=st.floats(-3, 3), log_variance=st.floats(-4, 2))
def test_gaussian_kl_is_the_integral_of_the_definition(mean: float, log_variance: float) -> None:
    deviation = np.exp(log_variance / 2)
    q, p = scipy.stats.norm(mean, deviation), scipy.stats.norm()
    z = np.linspace(mean - 10 * deviation, mean + 10 * deviation, 4001)
    expected = 32 * np.trapezoid(q.pdf(z) * (q.logpdf(z) - p.logpdf(z)), z)
    kl = latents.kl(GAUSSIAN, posterior_of(GAUSSIAN, mean, log_variance))
    np.testing.assert_allclose(kl, [expected], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("logit", [-3.0, 0.0, 0.7, 60.0])
def test_entropies_are_those_of_the_distributions(logit: float) -> None:
    probability = scipy.special.expit(logit)
    bernoulli = latents.entropy(BERNOULLI, posterior_of(BERNOULLI, logit))
    expected = scipy.stats.bernoulli(probability).entropy() * BERNOULLI.num_latents
    np.testing.assert_allclose(bernoulli, expected, rtol=1e-5, atol=1e-20)
    gaussian = latents.entropy(GAUSSIAN, posterior_of(GAUSSIAN, 3.0, logit))
    expected = scipy.stats.norm(3.0, np.exp(logit / 2)).entropy() * GAUSSIAN.num_latents
    np.testing.assert_allclose(gaussian, expected, rtol=1e-5)


def test_bernoulli_sample_is_the_gumbel_softmax_of_two_classes() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.gumbel(size=(2, 3, 4, 4, 2))
    logits, tau = rng.normal(size=(3, 4, 4, 2)), 0.7
    exponentials = np.exp(np.stack([(logits + first) / tau, second / tau]))
    expected = exponentials[0] / exponentials.sum(axis=0)
    actual = latents.sample(BERNOULLI, jnp.array(logits), jnp.array(first - second), tau)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def test_noise_of_bernoulli_latents_is_logistic_and_of_gaussian_ones_normal() -> None:
    for config, distribution in ((BERNOULLI, "logistic"), (GAUSSIAN, "norm")):
        noise = latents.noise(config, jax.random.key(0), 512)
        assert noise.shape == (512, 4, 4, 2)
        assert scipy.stats.kstest(np.ravel(noise), distribution).pvalue > 0.01


def test_samples_of_bernoulli_latents_use_the_tau_of_the_config() -> None:
    noise = latents.noise(BERNOULLI, jax.random.key(0), 1)
    posterior = posterior_of(BERNOULLI, 1.0)
    np.testing.assert_array_equal(
        latents.sample(BERNOULLI, posterior, noise),
        latents.sample(BERNOULLI, posterior, noise, 0.5),
    )


def test_rounded_samples_are_on_with_the_posterior_probability() -> None:
    noise = latents.noise(BERNOULLI, jax.random.key(0), 2000)
    samples = latents.sample(BERNOULLI, posterior_of(BERNOULLI, np.log(4)), noise)
    assert abs(float((samples > 0.5).mean()) - 0.8) < 0.01


def test_gaussian_samples_have_the_posterior_mean_and_deviation() -> None:
    noise = latents.noise(GAUSSIAN, jax.random.key(0), 2000)
    samples = np.ravel(latents.sample(GAUSSIAN, posterior_of(GAUSSIAN, 3.0, np.log(4.0)), noise))
    assert abs(samples.mean() - 3) < 0.05
    assert abs(samples.std() - 2) < 0.05


def test_prior_samples_follow_the_prior() -> None:
    config = ModelConfig(latent="4x4x2", prior=0.1)
    codes = latents.prior_sample(config, jax.random.key(0), 1000)
    assert set(np.unique(codes)) == {0, 1}
    assert abs(float(codes.mean()) - 0.1) < 0.01
    normal = latents.prior_sample(GAUSSIAN, jax.random.key(0), 500)
    assert scipy.stats.kstest(np.ravel(normal), "norm").pvalue > 0.01


@pytest.mark.parametrize("quantisation_bits", [1, 4, 6])
def test_bins_have_equal_probability(quantisation_bits: int) -> None:
    bins = 2**quantisation_bits
    expected = scipy.stats.norm.ppf(np.arange(1, bins) / bins)
    np.testing.assert_allclose(codes.bin_edges(quantisation_bits), expected, atol=1e-6)


def test_bernoulli_bits_are_the_latents_more_probable_than_the_threshold() -> None:
    posterior = np.zeros((1, 4, 4, 2), np.float32)
    posterior[0, 0, 1, 0] = 2.2  # probability 0.9002
    posterior[0, 3, 3, 1] = 2.19  # probability 0.8993
    assert np.flatnonzero(latents.bits(BERNOULLI, jnp.array(posterior))).tolist() == [2]
    lower = latents.bits(BERNOULLI, jnp.array(posterior), threshold=0.8)
    assert np.flatnonzero(lower).tolist() == [2, 31]


def test_gaussian_bits_write_the_bin_in_binary_most_significant_first() -> None:
    # The quartiles of N(0, 1) are -0.674, 0 and 0.674.
    posterior = np.zeros((1, 4, 4, 4), np.float32)
    posterior[..., 2:] = 50  # the log-variances have no say
    posterior[0, 0, 0, :2] = [-0.7, -0.6]  # bins 0 and 1
    posterior[0, 0, 1, :2] = [0.6, 0.7]  # bins 2 and 3
    bits = latents.bits(GAUSSIAN, jnp.array(posterior), quantisation_bits=2)
    assert bits[0, :8].astype(int).tolist() == [0, 0, 0, 1, 1, 0, 1, 1]


def test_sixteen_means_in_the_middle_of_their_bins_give_all_four_bit_numbers() -> None:
    means = scipy.stats.norm.ppf((np.arange(16) + 0.5) / 16).reshape(1, 4, 4, 1)
    config = ModelConfig(latent="4x4x1", latent_kind="gaussian")
    posterior = jnp.array(np.concatenate([means, 0 * means], axis=-1))
    bits = np.asarray(latents.bits(config, posterior)).reshape(16, 4)
    assert (bits @ [8, 4, 2, 1]).tolist() == list(range(16))


@pytest.mark.parametrize(
    ("config", "quantisation_bits", "count"),
    [
        (ModelConfig(), 4, 4500),
        (ModelConfig(latent="4x4x200"), 4, 3200),
        (ModelConfig(latent="15x15x5", latent_kind="gaussian"), 4, 4500),
        (ModelConfig(latent="15x15x5", latent_kind="gaussian"), 6, 6750),
    ],
)
def test_number_of_features(config: ModelConfig, quantisation_bits: int, count: int) -> None:
    posterior = jnp.zeros((2, config.height, config.width, config.posterior_channels))
    bits = latents.bits(config, posterior, quantisation_bits=quantisation_bits)
    assert bits.shape == (2, count)
    assert bits.dtype == bool
    assert codes.num_features(config, quantisation_bits) == count


def test_impossible_thresholds_and_bits_are_refused() -> None:
    with pytest.raises(UserError, match="threshold must lie between 0 and 1, not 1"):
        latents.bits(BERNOULLI, posterior_of(BERNOULLI, 0.0), threshold=1)
    with pytest.raises(UserError, match="quantisation_bits must be from 1 to 8, not 0"):
        codes.bin_edges(0)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"latent": "15x15"}, "latent must look like 15x15x20, not '15x15'"),
        ({"latent": "15x15x0"}, "latent must look like 15x15x20"),
        ({"latent": "8x8x20"}, "there is no network for '8x8x20'"),
        ({"latent_kind": "gausian"}, "did you mean 'gaussian'"),
        ({"variant": "published", "latent": "4x4x200"}, "use variant=paper"),
        ({"tau": 0.0}, "tau must be positive, not 0.0"),
        ({"tau": float("nan")}, "tau must be positive"),
        ({"prior": 1.0}, "prior must lie between 0 and 1, not 1.0"),
        ({"beta": float("nan")}, "beta must be a number"),
        (
            {"beta": -1.0, "latent": "15x15x5", "latent_kind": "gaussian"},
            "beta must be zero or more for gaussian latents",
        ),
        ({"dropout": 1.0}, "dropout must be at least 0"),
        ({"dtype": "float16"}, "unknown dtype 'float16'"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(settings: dict, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        ModelConfig(**settings)
