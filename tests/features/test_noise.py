"""Features with the noise of training, drawn for every node from its own seed."""

from types import SimpleNamespace

import numpy as np
import pytest

from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, create
from vaeiw_jax.features.patch_network import PatchNetwork
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.vae import codes

SETTING = Setting("Pong", (210, 160))


@pytest.fixture(scope="module")
def screen(real_screens):
    return real_screens("Pong", 10)[-1]


def bits(features, screen, seed):
    atoms = features.atoms(SimpleNamespace(screen=screen, noise_seed=seed), None)
    return np.isin(np.arange(4500), atoms)


def test_a_relaxed_sample_beyond_the_threshold_is_what_is_drawn():
    rng = np.random.default_rng(0)
    logits, uniform = rng.normal(0, 3, 2000), rng.random(2000)
    for tau, threshold in ((0.5, 0.9), (1.0, 0.6)):
        noise = np.log(uniform / (1 - uniform))  # logistic
        relaxed = 1 / (1 + np.exp(-(logits - noise) / tau))
        drawn = 1 / (1 + np.exp(codes.noise_shift(tau, threshold) - logits)) > uniform
        np.testing.assert_array_equal(drawn, relaxed > threshold)


def test_a_bit_is_true_as_often_as_the_published_code_has_it(screen):
    """P(true) = sigmoid(logit - log(0.9 / 0.1) / 2)."""
    features = create(FeaturesConfig("vae", noise=True), SETTING)
    drawn = np.mean([bits(features, screen, seed) for seed in range(1, 301)], axis=0)
    network = PatchNetwork(*models.load_model(models.model_directory("vae", "Pong")), (210, 160))
    logits = network.encode(screen).ravel().astype(np.float64)
    expected = 1 / (1 + np.exp(-(logits - np.log(9) / 2)))
    deviation = np.sqrt(expected * (1 - expected) / 300)
    assert (np.abs(drawn - expected) <= 5 * deviation + 1e-3).all()
    assert ((drawn > 0) & (drawn < 1)).sum() > 20


def test_equal_screens_of_two_nodes_have_draws_of_their_own_and_a_node_always_its_own(screen):
    features = create(FeaturesConfig("vae", noise=True), SETTING)
    one, other = bits(features, screen, 1), bits(features, screen, 2)
    assert (one != other).any()
    np.testing.assert_array_equal(bits(features, screen, 1), one)
    afresh = create(FeaturesConfig("vae", noise=True), SETTING)
    np.testing.assert_array_equal(bits(afresh, screen, 2), other)


def played(episode, decisions=None):
    while not episode.stop and (decisions is None or len(episode.actions) < decisions):
        episode.advance()
    return episode


CONFIG = EpisodeConfig.of(
    "Freeway", noise=True, changes=True, budget_nodes=15, max_actions=6, rollouts_in_flight=2
)


def test_nodes_keep_their_seeds_when_a_branch_is_kept():
    episode = played(Episode(CONFIG, seed=1), 2)
    decision = episode.planner.decide()
    tree = episode.planner.tree
    below = tree.breadth_first(int(tree.children[0, decision.action]))
    before = [tree.snapshots[node].noise_seed for node in sorted(below)]
    episode.act(decision)
    assert [snapshot.noise_seed for snapshot in tree.snapshots] == before
    assert len(set(before)) == len(before) > 1


def test_a_noisy_run_is_the_same_interrupted_or_not_and_by_whatever_emulators():
    whole = played(Episode(CONFIG, seed=1))
    begun = played(Episode(CONFIG, seed=1), 3)
    resumed = Episode(CONFIG, seed=1)
    resumed.resume(begun.save())
    assert played(resumed).record() == whole.record()
    pooled = played(Episode(CONFIG, seed=1, emulators=1))
    assert pooled.record() == whole.record()
    another = played(Episode(CONFIG, seed=2))
    assert (
        another.planner.tree.snapshots[0].noise_seed != whole.planner.tree.snapshots[0].noise_seed
    )


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"noise": True, "sample_features": True}, "choose one of the two"),
        ({"noise": True, "features": "bprost"}, "are for learned features, not for"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        EpisodeConfig.of("Pong", **settings)
