"""The two encoders: one result, whatever the batch, with the shipped models on real screens."""

import functools
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from tests.random_play import random_screens
from vaeiw_jax import frames, models
from vaeiw_jax.atari import AtariConfig, rom_id
from vaeiw_jax.features import FeaturesConfig, Setting, create
from vaeiw_jax.features.encoders import (
    BATCH_SIZES,
    MARGIN,
    PatchEncoder,
    XLAEncoder,
    accelerator_is_possible,
)
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.vae import codes
from vaeiw_jax.vae.networks import VAE

GAMES = [*models.shipped_games(), "Kangaroo"]  # the last with the universal model
SHAPE = (210, 160)

ROUNDING = 1e-4
"""How close to where a feature changes a value must be for it to be rounding that decides."""


@functools.cache
def shipped(game):
    return models.load_model(models.model_directory("vae", game))


@functools.cache
def screens_of(game):
    return np.unique(random_screens(rom_id(game), 60, seed=3), axis=0)[:24]


@functools.cache
def posteriors_of(game):
    """float32[n, num_latents]: the network as JAX computes it, without any encoder of ours."""
    model, variables = shipped(game)
    encode = jax.jit(lambda frames: VAE(model).apply(variables, frames, False, method="encode"))
    return np.concatenate(
        [encode(frames.from_screens(screen[None])[..., None]) for screen in screens_of(game)]
    ).reshape(len(screens_of(game)), -1)


@functools.cache
def xla(game):
    return encoder(XLAEncoder, game)


def encoder(kind, game):
    model, variables = shipped(game)
    return kind(model, variables, SHAPE, codes.edges(model))


def bits(packed, game):
    return np.unpackbits(packed, axis=1, count=shipped(game)[0].num_latents).astype(bool)


def draws_for(number, game, seed=0):
    return np.random.default_rng(seed).random((number, shipped(game)[0].num_latents))


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("kind", [PatchEncoder, XLAEncoder])
def test_features_are_those_of_the_shipped_network_but_for_rounding(game, kind):
    screens, posteriors = screens_of(game), posteriors_of(game)
    features = bits(encoder(kind, game).features(screens), game)
    edge = codes.edges(shipped(game)[0])[0]
    different = features != (posteriors > edge)
    assert (np.abs(posteriors - edge)[different] < ROUNDING).all()
    assert 0 < features.sum() < features.size


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("sampled", [False, True])
def test_both_encoders_give_the_same_features_but_for_rounding(game, sampled):
    screens, posteriors = screens_of(game), posteriors_of(game)
    draws = draws_for(len(screens), game) if sampled else None
    one, other = (
        bits(each.features(screens, draws), game)
        for each in (encoder(PatchEncoder, game), xla(game))
    )
    if draws is None:
        distances = np.abs(posteriors - codes.edges(shipped(game)[0]))
    else:
        distances = np.abs(1 / (1 + np.exp(-posteriors.astype(np.float64))) - draws)
    assert (distances[one != other] < ROUNDING).all()


@pytest.mark.parametrize("sampled", [False, True])
def test_features_do_not_depend_on_the_batch(sampled):
    game, rng = "SpaceInvaders", np.random.default_rng(0)
    screens = screens_of(game)
    draws = draws_for(len(screens), game) if sampled else None

    def features(chosen):
        return xla(game).features(screens[chosen], None if draws is None else draws[chosen])

    alone = np.concatenate([features([i]) for i in range(len(screens))])
    for size in (2, 3, 4, 7, 16, 19):
        chosen = rng.integers(len(screens), size=size)
        assert (features(chosen) == alone[chosen]).all()


class RoughXLAEncoder(XLAEncoder):
    """As on a device whose programs for several screens round differently from the one for a single screen."""

    def _run(self, screens, edges):
        if len(screens) > 1:
            edges = edges + np.random.default_rng(1).uniform(-0.5, 0.5, edges.shape) * MARGIN
        return super()._run(screens, edges.astype(np.float32))


def test_rounding_that_depends_on_the_batch_changes_no_feature():
    """With draws that lie as near to the probabilities as rounding can matter, on every screen."""
    game = "SpaceInvaders"
    screens, posteriors = screens_of(game)[:6], posteriors_of(game)[:6]
    near = posteriors + np.random.default_rng(0).uniform(-MARGIN, MARGIN, posteriors.shape) / 2
    draws = 1 / (1 + np.exp(-near.astype(np.float64)))
    rough = encoder(RoughXLAEncoder, game)
    alone = np.concatenate(
        [rough.features(screens[i : i + 1], draws[i : i + 1]) for i in range(len(screens))]
    )
    assert (rough.features(screens, draws) == alone).all()
    by_batch, _ = rough._run(screens, codes.sampling_edges(draws))
    assert (by_batch != alone).any()  # what a batch alone would have said


class CountingXLAEncoder(XLAEncoder):
    """Remembers how many screens it was given at a time."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.sizes = []

    def features(self, screens, draws=None):
        self.sizes.append(len(screens))
        return super().features(screens, draws)


def test_waiting_screens_are_encoded_in_one_batch_when_the_first_is_new():
    game = "Pong"
    features = create(FeaturesConfig("vae", encoder="xla"), Setting(game, SHAPE))
    plain = create(FeaturesConfig("vae", encoder="xla"), Setting(game, SHAPE))
    seen = [SimpleNamespace(screen=screen) for screen in screens_of(game)[:6]]
    features._encoder = encoder(CountingXLAEncoder, game)
    sizes = features._encoder.sizes
    features.prefetch(seen[:3])
    features.prefetch([seen[0], seen[3]])  # the first is known: no hurry
    features.prefetch([seen[4], seen[0], seen[3], seen[4]])
    assert sizes == [3, 2]
    for each in seen:
        assert features.atoms(each, None).tolist() == plain.atoms(each, None).tolist()
    assert sizes == [3, 2, 1]


def test_patches_are_not_prefetched():
    features = create(FeaturesConfig("vae", encoder="patches"), Setting("Pong", SHAPE))
    assert features.prefetch is None


def test_a_game_does_not_depend_on_the_encoder_nor_on_what_waits_to_be_encoded():
    def played(encoder, emulators):
        config = EpisodeConfig(
            AtariConfig("Pong"),
            PlannerConfig(budget_seconds=None, budget_nodes=12, rollouts_in_flight=4),
            FeaturesConfig("vae", encoder=encoder),
            max_actions=4,
        )
        episode = Episode(config, seed=0, emulators=emulators)
        while not episode.stop:
            episode.advance()
        if emulators:
            episode.planner.world.pool.close()
        return episode.record() | {"config": None}, episode.actions

    expected = played("patches", emulators=0)
    assert played("xla", emulators=0) == expected
    assert played("xla", emulators=2) == expected


@pytest.mark.parametrize(
    ("platforms", "plugins", "possible"),
    [
        ("", [], False),
        ("", ["xla_cuda13"], True),
        ("", ["libtpu"], True),
        ("cpu", ["xla_cuda13"], False),
        ("cuda", [], True),
        ("cuda,cpu", ["xla_cuda13"], True),
    ],
)
def test_jax_is_asked_for_accelerators_only_where_there_may_be_one(platforms, plugins, possible):
    assert accelerator_is_possible(platforms, plugins) == possible


def test_batches_are_of_one_to_sixteen_screens():
    assert BATCH_SIZES == (1, 2, 4, 8, 16)
