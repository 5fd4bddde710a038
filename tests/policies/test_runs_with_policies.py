"""Runs that learn a policy: interrupted, repeated, and handed on."""

import dataclasses
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig, generators
from vaeiw_jax.playing.runs import PlayConfig, Run, play
from vaeiw_jax.policies import files

SETTINGS = {
    "features": "ram",
    "budget_nodes": 12,
    "max_actions": 12,
    "policy_share": 0.7,
    "policy_batch_size": 4,
    "policy_value": True,
    "policy_hidden": 3,
    "policy_learning_rate": 0.05,
}


def config(seed=0, **settings):
    return PlayConfig(EpisodeConfig.of("Breakout", **SETTINGS | settings), seed=seed)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The work directory of a run that nothing interrupted."""
    workdir = tmp_path_factory.mktemp("policy") / "whole"
    assert play(config(), workdir)
    return workdir


def stop_after(number):
    asked = 0

    def interrupted():
        nonlocal asked
        asked += 1
        return asked > number

    return interrupted


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.policies.test_runs_with_policies import config
from vaeiw_jax.playing.runs import play
def die(progress):
    if progress.done == 10:
        os.kill(os.getpid(), signal.SIGKILL)
play(config(), Path(sys.argv[1]), tell=die)
"""


def test_a_run_that_was_interrupted_and_killed_learned_the_same(played, tmp_path):
    assert play(config(), tmp_path, stop_after(3)) is None  # before the first step of learning
    assert play(config(), tmp_path, stop_after(6)) is None
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert play(config(), tmp_path)  # from decision 9 on
    mine, whole = Run(tmp_path, "Breakout", 0), Run(played, "Breakout", 0)
    assert mine.record.read_bytes() == whole.record.read_bytes()
    for name in ("policy.npz", "policy.json"):
        assert (mine.policy / name).read_bytes() == (whole.policy / name).read_bytes()
    losses = [durable.read_arrays(run.decisions)["policy_loss"] for run in (mine, whole)]
    np.testing.assert_array_equal(*losses)
    assert np.isfinite(losses[0][:9]).any()  # before the last interruption, and after it
    assert np.isfinite(losses[0][9:]).any()


def test_the_policy_draws_from_a_stream_of_its_own():
    episode = Episode(config(policy_hidden=0).episode, seed=0)  # for which nothing is drawn yet
    drawn = {rng.integers(2**63) for rng in (episode._learner._rng, *generators(0))}
    assert len(drawn) == 1 + len(generators(0))


def test_without_a_share_nothing_changes():
    settings = {n: v for n, v in SETTINGS.items() if not n.startswith("policy")}
    plain = Episode(EpisodeConfig.of("Breakout", **settings), seed=0)
    zero = Episode(EpisodeConfig.of("Breakout", **settings, policy_share=0.0), seed=0)
    for _ in range(3):
        plain.advance()
        zero.advance()
    assert plain.record() == zero.record()
    assert plain.save().keys() == zero.save().keys()


def test_a_policy_is_given_to_another_run(played, tmp_path):
    given = {"policy": str(played), "max_actions": 8}
    started = Episode(config(seed=1, **given).episode, seed=1)
    learned = durable.read_arrays(Run(played, "Breakout", 0).policy / "policy.npz")
    for name, array in started._learner.policy.parameters.items():
        np.testing.assert_array_equal(array, learned[name])
    record = play(config(seed=1, **given), tmp_path / "first")
    moved = tmp_path / "moved"
    shutil.copytree(Run(played, "Breakout", 0).policy, moved)
    again = play(config(seed=1, **given | {"policy": str(moved)}), tmp_path / "second")
    assert again == record
    assert record["config"]["policy"].startswith("sha256:")
    after = files.load(str(tmp_path / "first"), "Breakout", {})
    assert any((after[name] != learned[name]).any() for name in learned)


def test_what_does_not_fit_is_refused_in_a_sentence(played, tmp_path):
    policy = str(played)
    for settings, sentence in (
        ({"features": "basic"}, "is for features=ram, and this run has features=basic"),
        ({"full_action_set": True}, "is for actions="),
        ({"policy_hidden": 0}, "is for policy_hidden=3, and this run has policy_hidden=0"),
    ):
        with pytest.raises(UserError, match=sentence):
            Episode(config(policy=policy, **settings).episode, seed=0)
    with pytest.raises(UserError, match="holds no policy for Pong"):
        files.find(policy, "Pong")
    with pytest.raises(UserError, match="how a record names a policy"):
        files.find("sha256:abc", "Breakout")
    several = tmp_path / "several"
    for seed in (0, 1):
        shutil.copytree(Run(played, "Breakout", 0).policy, Run(several, "Breakout", seed).policy)
    with pytest.raises(UserError, match="holds several policies for Breakout"):
        files.find(str(several), "Breakout")
    damaged = Run(several, "Breakout", 1).policy
    arrays = durable.read_arrays(damaged / "policy.npz")
    durable.write_arrays(damaged / "policy.npz", arrays | {"bias": arrays["bias"] + 1})
    with pytest.raises(durable.DamagedFileError, match="its digest is not the one"):
        files.load(str(damaged), "Breakout", {})


WITHOUT_LEARNING = """
import sys
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
config = EpisodeConfig.of("Breakout", features="ram", budget_nodes=12, max_actions=2, policy=sys.argv[1],
                          policy_share=0.7, policy_value=True, policy_hidden=3, policy_learns=False)
episode = Episode(config, seed=0)
while not episode.stop:
    episode.advance()
print(len(episode.actions), "jax" in sys.modules)
"""


def test_a_policy_that_learns_no_more_needs_no_jax(played):
    command = [sys.executable, "-c", WITHOUT_LEARNING, str(played)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]


def test_a_policy_that_learns_no_more_stays_as_it_is(played):
    given = {
        n: v for n, v in SETTINGS.items() if n not in ("policy_batch_size", "policy_learning_rate")
    }
    fixed = EpisodeConfig.of("Breakout", **given, policy=str(played), policy_learns=False)
    episode = Episode(dataclasses.replace(fixed, max_actions=3), seed=0)
    before = files.digest(episode._learner.policy.parameters)
    while not episode.stop:
        episode.advance()
    assert files.digest(episode._learner.policy.parameters) == before
    resumed = Episode(dataclasses.replace(fixed, max_actions=3), seed=0)
    resumed.resume(episode.save())
    assert resumed.record() == episode.record()
