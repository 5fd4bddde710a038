"""The pipeline as a library: a chain of jobs, made and checked before anything is done."""

import itertools
import json
from pathlib import Path

import pytest

from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import pipeline
from vaeiw_jax.experiments.jobs import COLLECT, PLAY, TRAIN
from vaeiw_jax.vae.config import TrainConfig

HERE = Path("nowhere")


def jobs(config):
    return list(itertools.chain(*pipeline.iterations(config, HERE)))


def test_each_iteration_collects_with_the_last_vae_and_starts_from_it():
    config = pipeline.configure("pong", iterations=2, runs=2, seed=7)
    first, second = pipeline.iterations(config, HERE)
    assert [job.kind for job in first] == [COLLECT, TRAIN, PLAY, PLAY]
    assert first[0].config.episode.features.features == "bprost"
    assert second[0].config.episode.features.features == "vae:nowhere/vaes/1"
    assert [job.config.start_from for job in (first[1], second[1])] == [
        "",
        "nowhere/vaes/1/model",
    ]
    assert second[1].config.screens == str(second[0].directory) == "nowhere/screens/2"
    assert {job.config.episode.features.features for job in second[2:]} == {"vae:nowhere/vaes/2"}
    assert [job.seed for job in (*first, *second)] == [1007, 7, 7, 8, 2007, 7, 7, 8]


def test_the_papers_settings_but_for_rollouts_that_keep_the_cores_busy():
    config = pipeline.configure("Pong")
    assert config.train == TrainConfig(screens="")
    assert config.collect.num_screens == 15_000
    assert config.play.episode.planner.budget_seconds == 0.5
    assert (config.runs, config.iterations) == (10, 1)


def test_a_laptop_starts_from_the_universal_vae_unless_told_otherwise():
    first, second = pipeline.iterations(pipeline.configure("Pong", "laptop", iterations=2), HERE)
    assert first[1].config.start_from == "universal"
    assert second[1].config.start_from == "nowhere/vaes/1/model"
    other = pipeline.configure("Pong", "laptop", start_from="", latent="4x4x200")
    assert jobs(other)[1].config.start_from == ""


def test_settings_go_to_every_job_that_has_them():
    config = pipeline.configure(
        "Pong", "laptop", budget_nodes=9, max_actions=4, batch_size=3, emulators=0
    )
    assert config.collect.episode.planner.budget_nodes == 100  # as the preset says
    assert config.play.episode.planner.budget_nodes == 9
    assert config.play.episode.planner.budget_seconds is None
    assert config.play.episode.max_actions == 4
    assert config.collect.episode.max_actions == 15_000
    assert (config.train.batch_size, config.train.epochs) == (3, 3)
    assert config.collect.emulators == config.play.emulators == 0
    assert config.runs == 3


def test_a_background_is_masked_only_while_collecting_with_hand_made_features():
    given = pipeline.configure("Pong", "laptop", iterations=2, background_mask=True)
    protocol = pipeline.configure("Pong", "laptop", "rollout_iw", iterations=2)
    for config, name in ((given, "background_mask"), (protocol, "background_subtract")):
        episodes = [job.config.episode for job in jobs(config) if job.kind != TRAIN]
        assert [getattr(episode.features, name) for episode in episodes] == [True] + 7 * [False]


def test_what_is_an_atom_of_learned_features_is_so_wherever_they_are_used():
    config = pipeline.configure(
        "Pong", "laptop", iterations=2, literals="either", changes=True, widen=True
    )
    episodes = [job.config.episode for job in jobs(config) if job.kind != TRAIN]
    assert [episode.features.literals for episode in episodes] == ["true"] + 7 * ["either"]
    assert [episode.features.changes for episode in episodes] == [False] + 7 * [True]
    assert [episode.planner.widen for episode in episodes] == [False] + 7 * [True]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"iterations": 0}, "iterations must be 1 or more"),
        ({"runs": 0}, "runs must be 1 or more"),
        ({"preset": "phone"}, "unknown preset 'phone'"),
        ({"protocol": "vae"}, "unknown protocol 'vae'"),
        ({"epoch": 3}, "did you mean 'epochs'"),
        ({"epochs": 0}, "epochs=0 trains nothing"),
        ({"epochs": "3"}, "epochs must be of type int, not '3'"),
        ({"collect_nodes": 0}, "budget_nodes must be at least 1"),
        ({"background_mask": True, "features": "ram"}, "changes nothing for --features=ram"),
        ({"num_screens": 50}, "fewer than a batch of 64"),
        ({"threshold": 1.5}, "threshold must be above 0 and below 1"),
        ({"sample_features": True, "latent_kind": "gaussian"}, "needs Bernoulli latents"),
        ({"noise": True, "latent_kind": "gaussian"}, "needs Bernoulli latents"),
        ({"widen": True}, "a wider notion than true bits"),
        ({"width": 2, "latent": "15x15x50"}, "at most 10,000 features"),
        ({"variant": "published", "latent": "4x4x20"}, "have 15x15xC latents"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_done(given, sentence):
    with pytest.raises(UserError, match=sentence):
        pipeline.configure("Pong", **given)


def test_the_laptop_preset_is_estimated_at_less_than_two_hours_and_the_paper_at_days():
    hours = {
        p: pipeline.at_most(pipeline.configure("Pong", p), HERE) / 3600 for p in pipeline.PRESETS
    }
    assert hours["laptop"] < 2
    assert hours["paper"] > 24


def test_a_work_directory_of_other_settings_is_refused_but_more_of_the_same_is_not(tmp_path):
    pipeline.claim(pipeline.configure("Pong"), tmp_path)
    pipeline.claim(pipeline.configure("Pong", runs=20, iterations=3, emulators=0), tmp_path)
    pipeline.claim(pipeline.configure("Pong", picture_every=1, save_seconds=1.0), tmp_path)
    with pytest.raises(UserError, match=r"train\.learning_rate=0\.0001, .*=0\.1"):
        pipeline.claim(pipeline.configure("Pong", learning_rate=0.1), tmp_path)


def test_the_work_directory_of_an_older_version_is_gone_on_with(tmp_path):
    """One that knew no widening, and held that pictures make a difference."""
    pipeline.claim(pipeline.configure("Pong"), tmp_path)
    path = tmp_path / "config.json"
    older = json.loads(path.read_text()) | {"train.picture_every": 5}
    del older["play.widen"], older["collect.widen"], older["train.validate_every"]
    path.write_text(json.dumps(older))
    pipeline.claim(pipeline.configure("Pong", picture_every=1), tmp_path)
    with pytest.raises(UserError, match=r"play\.widen=False, .*=True"):
        pipeline.claim(pipeline.configure("Pong", literals="either", widen=True), tmp_path)


def test_jobs_know_where_they_are_however_the_work_directory_is_spelled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    homes = []
    config = pipeline.configure("Pong", "laptop", budget_nodes=4)
    done = pipeline.run(
        config, Path("here"), lambda: True, before_job=lambda job: homes.append(job.home)
    )
    assert (done, homes) == (None, [tmp_path / "here"])
