"""The whole way from a game to learned play, on a real game with few frames: interrupted, resumed, repeated."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import train_process
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.playing import screen_store

FLAGS = (
    "--game=pong",
    f"--num_screens={train_process.SCREENS}",
    "--collect_nodes=8",
    "--epochs=1",
    f"--batch_size={train_process.BATCH}",
    "--checkpoint_every=2",
    "--picture_every=1",
    "--budget_nodes=8",
    "--max_actions=4",
)


@pytest.fixture(scope="module", autouse=True)
def processes_compile_soon() -> Iterator[None]:
    """A few steps need no fast code, but code soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        yield


@pytest.fixture(scope="module")
def piped(launch, processes_compile_soon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pipeline that was stopped while it trained, and then went on to the end of a second iteration."""

    def run(workdir: Path) -> None:
        workdir.mkdir()
        flags = (*FLAGS, f"--workdir={workdir}")
        command = [sys.executable, "-m", "launch.pipeline", *flags, "--runs=1"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        train_process.wait_until((workdir / "vaes/1/checkpoints/2").exists, process)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=300)
        assert process.returncode == 130
        assert "stopped and saved; to go on:" in out
        assert not (workdir / "runs").exists()
        done = launch("pipeline", *flags, "--runs=2", "--iterations=2")
        assert done.returncode == 0, done.stderr
        (workdir / "printed.txt").write_text(done.stdout)

    return train_process.once(tmp_path_factory, "pipeline", run)


def test_a_pipeline_stopped_while_it_trains_goes_on_from_there(piped: Path) -> None:
    printed = (piped / "printed.txt").read_text()
    assert "collect 12 screens with bprost: done before" in printed
    assert "next:" not in printed
    assert f" on {usable_cores()} core" in printed
    trained = json.loads((piped / "vaes/1/trained.host.json").read_text())
    assert [session["until_step"] < 5 for session in trained["sessions"]] == [True, False]
    assert screen_store.count(piped / "screens/1") == train_process.SCREENS
    page = (piped / "report.html").read_text()
    assert 'src="data:video/mp4' in page
    assert 'href="inside/1/index.html"' in page
    assert (piped / "inside/1/index.html").exists()


def test_a_second_iteration_collects_with_the_first_vae_and_starts_from_it(piped: Path) -> None:
    printed = (piped / "printed.txt").read_text()
    for number in (1, 2):
        assert f"iteration {number}: mean score" in printed
    collected = json.loads((piped / "screens" / "2" / "collection.json").read_text())
    first, second = (
        json.loads((piped / "vaes" / number / "trained.json").read_text()) for number in "12"
    )
    assert collected["config"]["features"] == f"vae:{first['model']}"
    vae = train_process.unfinished(piped) / "vaes" / "1"  # where it was at the time
    assert second["config"]["start_from"] == str(vae / "model")
    assert second["starting_model"] == first["model"] != second["model"]
    assert "<h2>Iteration 2</h2>" in (piped / "report.html").read_text()


def test_a_trained_model_is_published_with_its_card_and_found_again(
    launch, piped: Path, tmp_path: Path
) -> None:
    vae, store, to = piped / "vaes/1", piped / "screens/1", tmp_path / "published"
    done = launch("publish", f"--run={vae}", f"--screens={store}", f"--to={to}", "--note=A test.")
    assert done.returncode == 0, done.stderr
    card = (to / "README.md").read_text()
    assert "5 steps of 2 frames" in card
    assert "A test." in card
    assert "python -m launch.pipeline --game=pong" in card
    assert "12 screens" in card
    for picture in ("reconstructions.png", "learning_curve.png"):
        assert (to / picture).read_bytes().startswith(b"\x89PNG")
    played = launch(
        "play",
        "--game=Pong",
        f"--features=vae:{to}",
        "--budget_nodes=4",
        "--max_actions=2",
        f"--workdir={tmp_path / 'played'}",
    )
    assert played.returncode == 0, played.stderr
    refused = launch("publish", f"--run={store}", f"--screens={store}", f"--to={to}")
    assert "holds no model yet" in refused.stderr


def test_other_settings_are_refused_where_something_is_done_already(launch, piped: Path) -> None:
    done = launch("pipeline", *FLAGS, "--learning_rate=0.1", f"--workdir={piped}")
    assert done.returncode == 1
    assert "train.learning_rate" in done.stderr


def test_nonsense_is_refused_before_anything_is_done(launch, tmp_path: Path) -> None:
    for flag, sentence in (
        ("--preset=phone", "laptop"),
        ("--num_screens=20", "fewer than a batch of 64"),
    ):
        flags = (*flag.split(), f"--workdir={tmp_path / 'none'}")
        done = launch("pipeline", "--game=Pong", *flags)
        assert done.returncode == 1
        assert sentence in done.stderr
    assert not (tmp_path / "none").exists()
