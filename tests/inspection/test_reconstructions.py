from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vaeiw_jax import models
from vaeiw_jax.features import FeaturesConfig, Setting
from vaeiw_jax.features.vae import VAEFeatures
from vaeiw_jax.inspection import reconstructions
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.vae import elbo, latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE

GAUSSIAN = ModelConfig("15x15x5", "gaussian")


@pytest.mark.parametrize("bits", [4, 6])
def test_a_code_made_of_quantised_features_has_those_features(bits):
    rng = np.random.default_rng(0)
    features = rng.random(GAUSSIAN.num_latents * bits) < 0.5
    code = reconstructions.code_of_bits(GAUSSIAN, features)
    posterior = jnp.concatenate([code, jnp.zeros_like(code)], axis=-1)[None]
    assert np.array_equal(latents.bits(GAUSSIAN, posterior, quantisation_bits=bits)[0], features)


def test_frames_are_encoded_as_a_planner_would_and_decoded_both_ways(model_of, real_screens):
    directory = model_of()
    model, variables = models.load_model(directory)
    config = FeaturesConfig(f"vae:{directory}", threshold=0.6)
    screens = real_screens("Pong", 8)[::2]
    encoded = reconstructions.encode(model, config, ScreenSet.of("Pong", screens))
    features = VAEFeatures(config, Setting("Pong", (210, 160)))
    for screen, bits in zip(screens, encoded.bits, strict=True):
        atoms = features.atoms(SimpleNamespace(screen=screen), None)
        assert np.array_equal(np.flatnonzero(bits), atoms)

    decoded = reconstructions.decode(model, variables, encoded, np.array([0, 2]))
    for drawn in (decoded.reconstructions, decoded.from_bits):
        assert drawn.shape == (2, 128, 128)
        assert drawn.min() >= 0
        assert drawn.max() <= 1
        assert np.ptp(drawn) > 0.1
    for i, row in enumerate((0, 2)):
        frame, noise = (
            encoded.frames[row][None, ..., None],
            latents.noise(model, jax.random.key(row), 1),
        )
        output = VAE(model).apply(variables, frame, noise, False)
        expected = elbo.terms(model, output, frame)
        excess = float(expected.bce[0] - expected.entropy[0])
        assert decoded.excess_bce[i] == pytest.approx(excess, rel=1e-3)
        error = np.square(decoded.reconstructions[i] - encoded.frames[row]).mean()
        assert error == pytest.approx(float(expected.mse[0]), rel=1e-3)


def test_a_features_place_is_where_it_is_counted():
    bits = np.zeros((1, 15 * 15 * 5 * 4), bool)
    encoded = reconstructions.Encoded(
        np.zeros((1, 2, 2)), np.zeros((1, 128, 128)), bits, (15, 15, 5, 4)
    )
    feature = ((7 * 15 + 3) * 5 + 2) * 4 + 1
    bits[0, feature] = True
    assert encoded.place(feature) == (7, 3, 2, 1)
    counts = encoded.by_place(bits[0])
    assert counts.shape == (15, 15)
    assert counts[7, 3] == counts.sum() == 1
