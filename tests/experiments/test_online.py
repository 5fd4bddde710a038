"""Online learning as a library: what it is asked to do, checked before anything is done."""

import dataclasses
from pathlib import Path

import pytest

from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import estimates, online
from vaeiw_jax.experiments.online_config import OnlineConfig, configure


def test_defaults_are_olives_but_for_what_a_cpu_could_not_do():
    config = configure("pong")
    planner = config.play.episode.planner
    assert (planner.budget_nodes, planner.budget_seconds, planner.rollouts_in_flight) == (
        100,
        None,
        1,
    )
    assert (config.simulator_calls, config.added_screens, config.max_screens) == (
        100_000,
        500,
        15_000,
    )
    assert (config.choose_by, config.train.start_from) == ("elbo", "")
    assert (config.train.epochs, config.train.batch_size) == (3, 8)
    assert config.game == "Pong"


def test_a_budget_in_seconds_that_is_given_alone_is_the_only_one():
    planner = configure("Pong", budget_seconds=0.5).play.episode.planner
    assert (planner.budget_nodes, planner.budget_seconds) == (None, 0.5)
    both = configure("Pong", budget_seconds=0.5, budget_nodes=9).play.episode.planner
    assert (both.budget_nodes, both.budget_seconds) == (9, 0.5)


def test_the_first_game_without_a_model_has_no_settings_that_only_learned_features_know():
    config = configure("Pong", literals="either", changes=True, widen=True, discount=1.0)
    first = online.with_features(config.play.episode, "")
    assert first.features.features == "bprost"
    assert not first.planner.widen
    assert first.planner.discount == 1.0
    later = online.with_features(config.play.episode, "somewhere")
    assert later.features.features == "vae:somewhere"
    assert later.features.literals == "either"
    assert later.planner.widen


@pytest.mark.parametrize("protocol", ["rollout_iw", "published"])
def test_protocols_are_for_the_vae_that_is_to_be_learned(protocol):
    """Backgrounds are for hand-made features, noise is for learned ones."""
    episode = configure("Pong", protocol).play.episode
    assert episode.features.kind == "vae"
    assert not episode.features.background_mask
    assert not episode.features.background_subtract
    assert online.with_features(episode, "").planner == episode.planner


@pytest.mark.parametrize(
    ("relearn", "start_from", "begins"),
    [
        ("continue", "", ["", "rounds/1/vae", "rounds/2/vae"]),
        ("continue", "universal", ["universal", "rounds/1/vae", "rounds/2/vae"]),
        ("anew", "", ["", "", ""]),
        ("anew", "universal", ["universal"] * 3),
    ],
)
def test_training_goes_on_from_the_last_vae_or_begins_anew(relearn, start_from, begins):
    config = configure("Pong", relearn=relearn, start_from=start_from, seed=7)
    lasts = [None, Path("rounds/1/vae"), Path("rounds/2/vae")]
    trainings = [
        online.training_config(config, number, last, Path("here"))
        for number, last in enumerate(lasts, start=1)
    ]
    assert [training.start_from for training in trainings] == begins
    assert [training.seed for training in trainings] == [8, 9, 10]
    assert {training.screens for training in trainings} == {"here/screens"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"simulator_calls": 0}, "simulator_calls must be 1 or more, not 0"),
        ({"added_screens": 0}, "added_screens must be 1 or more"),
        ({"episode_calls": -1}, "episode_calls must be 0 or more"),
        ({"evaluations": -1}, "evaluations must be 0 or more"),
        ({"choose_by": "elb"}, "unknown choice of screens 'elb'; did you mean 'elbo'"),
        ({"relearn": "never"}, "unknown way to relearn 'never'"),
        ({"candidates": 9, "choose_by": "random"}, "candidates change nothing with"),
        ({"candidates": 9}, "at least added_screens, 500, not 9"),
        ({"planner": "random"}, "the planner random generates no screens"),
        ({"width": 2}, "played with B-PROST .* give --start_from=universal"),
        ({"width": 2, "latent": "15x15x50"}, "at most 10,000 features"),
        ({"sample_features": True, "latent_kind": "gaussian"}, "needs Bernoulli latents"),
        ({"epochs": 0}, "epochs=0 trains nothing"),
        ({"epochs": 0, "start_from": "universal"}, "epochs=0 trains nothing; give 1 or more"),
        ({"max_screens": 8}, "max_screens=8 are too few for a batch of 8"),
        ({"policy": "somewhere"}, "unknown setting of online learning 'policy'"),
        ({"features": "ram"}, "unknown setting of online learning 'features'"),
        ({"epoch": 3}, "did you mean 'epochs'"),
        ({"seed": -1}, "seed must be 0 or more"),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(UserError, match=sentence):
        configure("Pong", **given)


def test_a_model_of_another_shape_cannot_begin(tmp_path):
    config = configure("Pong", start_from="universal", latent="4x4x200")
    with pytest.raises(UserError, match="cannot begin one with latent=4x4x200"):
        online.learn(config, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_settings_that_change_the_result_make_another_work_directory(tmp_path):
    def asked_for(**given) -> OnlineConfig:
        return configure("Pong", start_from="universal", budget_nodes=4, **given)

    def at_once() -> bool:
        return True

    assert online.learn(asked_for(), tmp_path, at_once) is None
    assert online.learn(asked_for(save_seconds=0.0, keep=2), tmp_path, at_once) is None
    with pytest.raises(UserError, match="holds results with choose_by=elbo"):
        online.learn(asked_for(choose_by="loss"), tmp_path, at_once)


def test_one_seed_is_for_all():
    config = configure("Pong", seed=5)
    assert config.train.seed == config.play.seed == 5
    with pytest.raises(UserError, match="one seed is for all"):
        dataclasses.replace(config, train=dataclasses.replace(config.train, seed=6))


def test_games_with_too_few_screens_for_a_batch_teach_nothing_and_say_so(tmp_path: Path):
    config = configure(
        "Pong", simulator_calls=4, budget_nodes=4, added_screens=4, evaluations=0, seed=1
    )
    with pytest.raises(UserError, match="screens were gathered, too few for a batch of 8"):
        online.learn(config, tmp_path)


def test_the_estimate_grows_with_what_is_asked_for():
    usual = estimates.learning_online(configure("Pong"), cpus=2)
    assert 600 < usual < 4 * 3600
    for more in ({"epochs": 6}, {"evaluations": 6}, {"episode_calls": 5000}):
        assert estimates.learning_online(configure("Pong", **more), cpus=2) > usual
    for less in ({"candidates": 1000}, {"choose_by": "random"}):
        assert estimates.learning_online(configure("Pong", **less), cpus=2) < usual


def test_the_curve_is_a_table_with_empty_cells_where_nothing_is_known():
    line = dict.fromkeys(online.COLUMNS) | {"round": 1, "score": -3, "mean_misfit": 0.5}
    header, row = online.curve_csv([line]).decode().splitlines()
    assert header.split(",") == list(online.COLUMNS)
    values = dict(zip(online.COLUMNS, row.split(","), strict=True))
    assert values == dict.fromkeys(online.COLUMNS, "") | {
        "round": "1",
        "score": "-3",
        "mean_misfit": "0.5",
    }
