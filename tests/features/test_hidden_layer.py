"""The hidden layer of a learned policy as a feature set."""

import numpy as np
import pytest

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, create
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig, Run, play

SHAPE = (210, 160)
LEARNING = {
    **{"budget_nodes": 12, "max_actions": 8, "policy_share": 0.5, "policy_batch_size": 2},
    "policy_learning_rate": 1e-3,
}


def learned(workdir, **settings):
    config = EpisodeConfig.of("Breakout", **{"features": "ram"} | LEARNING | settings)
    assert play(PlayConfig(config, seed=0), workdir)
    return workdir


@pytest.fixture(scope="module")
def on_ram(tmp_path_factory):
    return learned(tmp_path_factory.mktemp("ram"), policy_hidden=24)


def test_a_unit_is_true_where_its_weighted_sum_is_positive(on_ram):
    features = create(FeaturesConfig(f"policy:{on_ram}"), Setting("Breakout", SHAPE))
    below = create(FeaturesConfig("ram"), Setting("Breakout", SHAPE))
    known = durable.read_arrays(Run(on_ram, "Breakout", 0).policy / "policy.npz")
    episode = Episode(EpisodeConfig.of("Breakout", features="ram", budget_nodes=5), seed=1)
    seen = set()
    for _ in range(6):
        inputs = np.zeros(below.num_features)
        atoms = below.atoms(episode.snapshot, None)
        inputs[atoms] = 1 / np.sqrt(len(atoms))
        units = inputs @ known["hidden_weights"].astype(np.float64) + known["hidden_bias"]
        assert (np.abs(units) > 1e-4).all()  # so that rounding decides nothing
        mine = features.atoms(episode.snapshot, None)
        assert mine.dtype == np.int32
        assert mine.tolist() == np.flatnonzero(units > 0).tolist()
        seen.add(tuple(mine))
        episode.advance()
    assert features.num_features == 24
    assert len(seen) > 1


def test_it_plays_by_name_and_its_record_names_the_policy_by_its_digest(on_ram, tmp_path):
    settings = {"features": f"policy:{on_ram}", "budget_nodes": 10, "max_actions": 4}
    assert play(PlayConfig(EpisodeConfig.of("Breakout", **settings), seed=3), tmp_path)
    record = durable.read_json(Run(tmp_path, "Breakout", 3).record, sealed=True)
    assert record["config"]["features"].startswith("policy:sha256:")
    assert record["actions"] == 4


def test_a_policy_on_learned_symbols_finds_its_model_again(tmp_path):
    workdir = learned(tmp_path, features="vae:universal", literals="unusual", policy_hidden=16)
    features = create(FeaturesConfig(f"policy:{workdir}"), Setting("Breakout", SHAPE))
    episode = Episode(EpisodeConfig.of("Breakout", features=f"policy:{workdir}"), seed=0)
    assert 0 < len(features.atoms(episode.snapshot, None)) < 16
    assert len(features.usual) == 4500 // 8 + 1


class LeftEdge:
    """One's own feature set: which colour the leftmost pixel of each row has."""

    num_features = 210 * 256

    def atoms(self, seen, previous):
        return np.arange(210, dtype=np.int32) * 256 + seen.screen[:, 0]


def test_a_policy_on_ones_own_features_finds_them_again(tmp_path):
    workdir = learned(tmp_path, features=f"{__name__}:LeftEdge", policy_hidden=8)
    features = create(FeaturesConfig(f"policy:{workdir}"), Setting("Breakout", SHAPE))
    episode = Episode(EpisodeConfig.of("Breakout", features=f"policy:{workdir}"), seed=0)
    assert 0 < len(features.atoms(episode.snapshot, None)) < 8


def test_what_makes_no_sense_is_refused_in_a_sentence(on_ram, tmp_path):
    setting = Setting("Breakout", SHAPE)
    for config, sentence in (
        (FeaturesConfig("policy"), "needs to know of which: policy:DIRECTORY"),
        (FeaturesConfig(f"policy:{tmp_path}"), "holds no policy for Breakout"),
        (FeaturesConfig(f"policy:{on_ram}", threshold=0.5), "threshold=0.5 changes nothing"),
        (FeaturesConfig(f"policy:{on_ram}", noise=True), "are for learned features"),
    ):
        with pytest.raises(UserError, match=sentence):
            create(config, setting)
    linear = learned(tmp_path / "linear")
    with pytest.raises(UserError, match="is linear; give one"):
        create(FeaturesConfig(f"policy:{linear}"), setting)
    noisy = learned(tmp_path / "noisy", features="vae:universal", noise=True, policy_hidden=4)
    with pytest.raises(UserError, match="was learned with noise"):
        create(FeaturesConfig(f"policy:{noisy}"), setting)
