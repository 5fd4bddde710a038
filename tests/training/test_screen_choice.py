"""Screens are chosen as an obvious computation would choose them."""

import numpy as np
import pytest
from scipy.special import expit, xlog1py, xlogy

import vaeiw_jax as vx
from tests.random_play import random_screens
from vaeiw_jax import frames, models
from vaeiw_jax.training import screen_choice
from vaeiw_jax.vae import latents
from vaeiw_jax.vae.config import MISFITS

MODEL = models.SHIPPED / models.UNIVERSAL
SCREENS = random_screens("breakout", 9)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine screens: two full batches, and one that is filled up."""
    monkeypatch.setattr(screen_choice, "BATCH", 4)


@pytest.fixture(scope="module")
def obvious() -> dict[str, np.ndarray]:
    """The measures from what the encoder and the decoder give, in float64."""
    import jax

    vae = vx.load_vae("universal")
    seen = np.asarray(frames.from_screens(SCREENS), np.float64)
    logits = vae.encode(seen).astype(np.float64)
    noise = np.asarray(latents.noise(vae.config, jax.random.key(0), 1))
    drawn = vae.decode(expit((logits + noise) / vae.config.tau)).astype(np.float64)
    on = expit(logits)
    entropy = -(xlogy(on, on) + xlog1py(1 - on, -on)).sum(axis=(1, 2, 3))
    kl = on[0].size * np.log(2) - entropy  # to fair coins
    bce = -(xlogy(seen, drawn) + xlog1py(1 - seen, -drawn)).sum(axis=(1, 2))
    return {
        "elbo": bce + kl,
        "loss": bce + vae.config.beta * kl,
        "entropy": entropy,
        "reconstruction": bce,
    }


def choose(criterion, number, model=MODEL, seed=0, **options):
    rng = np.random.default_rng(seed)
    screens = SCREENS.__getitem__
    return screen_choice.choose(criterion, model, len(SCREENS), screens, number, rng, **options)


@pytest.mark.parametrize("criterion", MISFITS)
def test_those_explained_worst_are_chosen(obvious, criterion):
    expected = obvious[criterion]
    gaps = np.diff(np.sort(expected))
    number = len(SCREENS) - 1 - int(gaps.argmax())  # where rounding cannot change the choice
    choice = choose(criterion, number)
    assert choice.places.tolist() == sorted(np.argsort(-expected)[:number].tolist())
    assert choice.mean_misfit == pytest.approx(expected.mean(), rel=1e-4)
    assert choice.chosen_misfit == pytest.approx(expected[choice.places].mean(), rel=1e-4)


@pytest.mark.parametrize("given", [{"criterion": "random"}, {"criterion": "elbo", "model": None}])
def test_without_a_model_or_by_wish_they_are_drawn(given):
    choices = [choose(number=4, seed=seed, **given) for seed in range(20)]
    assert all(choice.mean_misfit is None for choice in choices)
    assert all(len(set(choice.places.tolist())) == 4 for choice in choices)
    assert len({choice.places.tobytes() for choice in choices}) > 1
    assert set(np.concatenate([choice.places for choice in choices]).tolist()) == set(range(9))


def test_of_candidates_the_worst_are_chosen(obvious):
    choice = choose("entropy", 2, candidates=3)
    expected = obvious["entropy"]
    np.testing.assert_allclose(choice.chosen_misfit, expected[choice.places].mean(), rtol=1e-4)
    among = np.sort(np.random.default_rng(0).choice(9, 3, replace=False))
    assert set(choice.places.tolist()) == set(among[np.argsort(-expected[among])[:2]].tolist())


def test_all_are_chosen_where_there_are_few_and_none_where_there_is_no_room():
    assert choose("random", 20).places.tolist() == list(range(9))
    assert choose("elbo", 0).places.tolist() == []
    none = screen_choice.choose("elbo", MODEL, 0, pytest.fail, 5, np.random.default_rng(0))
    assert none.places.tolist() == []


def test_equal_values_are_taken_in_order():
    assert screen_choice.worst(np.array([1.0, 2, 1, 2, 1]), 3).tolist() == [0, 1, 3]


def test_measuring_can_be_interrupted_and_says_how_far_it_is():
    told = []
    assert choose("entropy", 2, interrupted=lambda: len(told) > 1, tell=told.append) is None
    assert [(progress.done, progress.total) for progress in told] == [(4, 9), (8, 9)]
