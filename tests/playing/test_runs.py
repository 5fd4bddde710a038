"""A run on disk: played once, gone on with after an interruption, by one process at a time."""

import dataclasses
import json

import pytest

from vaeiw_jax import durable
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.planning.rules import Rules
from vaeiw_jax.playing import runs
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig, Run, play
from vaeiw_jax.workdirs import BusyError

CONFIG = PlayConfig(
    EpisodeConfig(
        AtariConfig("Pong"),
        PlannerConfig(budget_seconds=None, budget_nodes=6),
        FeaturesConfig("ram"),
        max_actions=8,
    ),
    seed=4,
)


def test_an_interrupted_run_has_no_record_and_ends_like_an_undisturbed_one(tmp_path):
    told = []
    assert play(CONFIG, tmp_path / "cut", lambda: len(told) > 3, told.append) is None
    assert [progress.done for progress in told] == [0, 1, 2, 3]
    assert told[-1].total == 8
    assert "score 0, 6 nodes a decision" in told[-1].text
    cut, whole = (Run(tmp_path / name, "Pong", 4) for name in ("cut", "whole"))
    assert not cut.record.exists()
    resumed = play(CONFIG, tmp_path / "cut", tell=told.append)
    assert told[4].done == 3  # where it was
    assert resumed == play(CONFIG, tmp_path / "whole")
    assert cut.record.read_bytes() == whole.record.read_bytes()
    assert json.loads(cut.host.read_text())["resumed_at_decision"] == 3
    assert not cut.progress.exists()


def test_a_finished_run_is_not_played_again(tmp_path):
    record = play(CONFIG, tmp_path)
    assert play(CONFIG, tmp_path, tell=pytest.fail) == runs.finished(CONFIG, tmp_path) == record


def test_a_run_begun_before_there_were_some_settings_goes_on(tmp_path):
    told = []
    assert play(CONFIG, tmp_path / "old", lambda: len(told) > 3, told.append) is None
    config = json.loads((tmp_path / "old/config.json").read_text())
    for name in ("untried_as_zero", "branch_actions", "noop_actions"):
        del config[name]
    durable.write_json(tmp_path / "old/config.json", config)
    progress = Run(tmp_path / "old", "Pong", 4).progress
    saved = durable.read_arrays(progress)
    del saved["planner.repeated"], saved["planner.branch"]
    durable.write_arrays(progress, saved)
    assert play(CONFIG, tmp_path / "old") == play(CONFIG, tmp_path / "new")
    rules = Rules(branch_actions=2)
    other = dataclasses.replace(
        CONFIG.episode, planner=dataclasses.replace(CONFIG.episode.planner, rules=rules)
    )
    with pytest.raises(UserError, match="results with branch_actions=1"):
        play(PlayConfig(other, seed=4), tmp_path / "old")


def test_two_processes_do_not_play_one_run_but_may_play_two(tmp_path):
    def meanwhile(progress):
        if progress.done == 0:
            with pytest.raises(BusyError, match=r"working on .*seed-4\.json"):
                play(CONFIG, tmp_path)
            assert play(PlayConfig(CONFIG.episode, seed=5), tmp_path) is not None

    assert play(CONFIG, tmp_path, tell=meanwhile) is not None


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"seed": -1}, "seed must be 0 or more, not -1"),
        ({"emulators": -1}, "emulators must be 0 or more, not -1"),
        ({"save_seconds": -1.0}, "save_seconds must be 0 or more"),
    ],
)
def test_nonsense_is_refused(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        PlayConfig(CONFIG.episode, **settings)
