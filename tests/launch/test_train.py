"""Training from the command line: interrupted in every way, it ends as if it had not been."""

import json
import resource
import signal
from pathlib import Path

import numpy as np
import pytest

from tests import train_process
from tests.random_play import random_screens
from vaeiw_jax import models
from vaeiw_jax.playing import screen_store
from vaeiw_jax.training import metrics
from vaeiw_jax.vae.architecture import variable_shapes

STEPS = 10
FLAGS = (
    "--epochs=2",
    f"--batch_size={train_process.BATCH}",
    "--checkpoint_every=2",
    "--picture_every=0",
    "--keep=2",
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("frames")
    screen_store.append(directory, "breakout", random_screens("breakout", train_process.SCREENS))
    return directory


@pytest.fixture(scope="module")
def whole_run(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory of a run that nothing interrupts."""

    def run(workdir: Path) -> None:
        process = train_process.start(store, workdir, *FLAGS, "--picture_every=2")
        code, out, err = train_process.finish(process)
        assert code == 0, err
        assert f"trained for {STEPS} steps" in out

    return train_process.once(tmp_path_factory, "whole_run", run)


def test_a_run_leaves_everything_in_its_work_directory(whole_run: Path) -> None:
    assert {path.name for path in whole_run.iterdir()} == {
        ".working",
        "checkpoints",
        "config.json",
        "metrics.jsonl",
        "model",
        "pictures",
        "tensorboard",
        "trained.host.json",
        "trained.json",
    }
    lines = metrics.read(whole_run / "metrics.jsonl")
    trained = [line["step"] for line in lines if line["kind"] == "train"]
    assert trained == list(range(1, STEPS + 1))
    assert [line["step"] for line in lines if line["kind"] == "validation"] == [5, 10]
    assert lines[0].keys() >= {"loss", "bce", "excess_bce", "kl", "mse", "gradient_norm"}
    assert lines[-1].keys() >= {"features_per_frame", "features_varying", "features_histogram"}
    assert (whole_run / "pictures" / "epoch-0002.png").read_bytes().startswith(b"\x89PNG")
    config = json.loads((whole_run / "config.json").read_text())
    assert config["game"] == "breakout"
    assert config["train"]["batch_size"] == 2


def test_the_model_is_that_of_the_best_validation(whole_run: Path) -> None:
    best = min(metrics.validations(whole_run), key=lambda line: line["loss"])
    about = models.model_description(whole_run / "model")["about"]
    assert about["validation"]["step"] == best["step"]
    assert about["game"] == "breakout"


def assert_same_run(workdir: Path, expected: Path) -> None:
    """Parameters bit for bit, metrics line by line."""
    (config, ours), (_, theirs) = (models.load_model(d / "model") for d in (workdir, expected))
    for name in variable_shapes(config):
        ours_leaf, theirs_leaf = ours, theirs
        for part in name.split("/"):
            ours_leaf, theirs_leaf = ours_leaf[part], theirs_leaf[part]
        np.testing.assert_array_equal(ours_leaf, theirs_leaf, err_msg=name)
    digests = [
        json.loads((d / "checkpoints" / str(STEPS) / "about" / "metadata").read_text())["sha256"]
        for d in (workdir, expected)
    ]
    assert digests[0] == digests[1]
    lines = [(d / "metrics.jsonl").read_text() for d in (workdir, expected)]
    assert lines[0] == lines[1]


def test_a_run_killed_then_stopped_ends_like_one_never_interrupted(
    store: Path, whole_run: Path, tmp_path: Path
) -> None:
    killed = train_process.start(store, tmp_path, *FLAGS)
    train_process.wait_until((tmp_path / "checkpoints" / "4").exists, killed)
    killed.send_signal(signal.SIGKILL)
    assert train_process.finish(killed)[0] == -signal.SIGKILL
    before = set(tmp_path.glob("tensorboard/*"))

    stopped = train_process.start(store, tmp_path, *FLAGS, "--checkpoint_every=1000")
    train_process.wait_until(lambda: set(tmp_path.glob("tensorboard/*")) != before, stopped)
    stopped.send_signal(signal.SIGTERM)
    code, out, err = train_process.finish(stopped)
    assert code == 130, err
    done = metrics.read(tmp_path / "metrics.jsonl")[-1]["step"]
    assert 4 < done < STEPS
    assert "stopped and saved; to go on: " in out
    assert (tmp_path / "checkpoints" / str(done)).exists()

    code, _, err = train_process.finish(train_process.start(store, tmp_path, *FLAGS))
    assert code == 0, err
    assert_same_run(tmp_path, whole_run)


def test_a_run_is_gone_on_with_only_if_that_is_wanted(store: Path, whole_run: Path) -> None:
    process = train_process.start(store, whole_run, *FLAGS, "--noresume")
    code, _, err = train_process.finish(process)
    assert code == 1
    assert "holds a run already" in err
    process = train_process.start(store, whole_run, *FLAGS)
    code, out, err = train_process.finish(process)
    assert code == 0, err
    assert f"trained for {STEPS} steps" in out  # as its record says


def test_a_full_disk_is_said_in_a_sentence(store: Path, tmp_path: Path) -> None:
    process = train_process.start(store, tmp_path, *FLAGS)
    train_process.wait_until((tmp_path / "checkpoints" / "2").exists, process)
    # Files may not grow beyond 100 kB, as if the disk were full: checkpoints are larger.
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100_000, 100_000))
    code, _, err = train_process.finish(process)
    assert code == 1
    assert "no space left to write" in err
    assert "Traceback" not in err


def test_mistakes_are_said_in_a_sentence(tmp_path: Path) -> None:
    process = train_process.start(tmp_path, tmp_path / "run")
    code, _, err = train_process.finish(process)
    assert code == 1
    assert err.strip() == (
        f"error: {tmp_path} holds neither a screen store (manifest.json) nor PNG files;"
        " collect screens into it first"
    )
