"""The command `launch.inspect`, as a user types it."""

import json
import os

import numpy as np
import pytest
from PIL import Image

from tests.inspection.conftest import random_variables
from vaeiw_jax import models
from vaeiw_jax.playing import screen_store
from vaeiw_jax.vae.config import ModelConfig

GAUSSIAN = ModelConfig("15x15x5", "gaussian")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    directory = tmp_path_factory.mktemp("training")
    about = {"game": "Pong"}
    models.save_model(directory / "model", GAUSSIAN, random_variables(GAUSSIAN), about)
    return directory


def refusal(done):
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_training_run_is_looked_into_with_the_frames_of_a_store(
    launch, model, real_screens, tmp_path
):
    screen_store.append(tmp_path / "frames", "Pong", real_screens("Pong", 12))
    done = launch(
        "inspect",
        f"--checkpoint={model}",
        f"--screens={tmp_path / 'frames'}",
        "--num_screens=9",
        "--shown_screens=2",
        "--quantisation_bits=6",
        "--literals=either",
        "--changes",
        f"--workdir={tmp_path / 'inside'}",
    )
    assert done.returncode == 0, done.stderr
    assert "6,750 features over 9 frames of Pong" in done.stdout
    assert f"page: {tmp_path / 'inside' / 'index.html'}" in done.stdout
    found = json.loads((tmp_path / "inside" / "findings.json").read_text())
    assert found["quality"]["features"] == 6750
    assert found["decision"] is None
    assert found["atoms"]["atoms"] == 4 * 6750
    assert "27,000 atoms" in done.stdout
    names = {path.name for path in (tmp_path / "inside" / "pictures").iterdir()}
    assert names >= {"reconstructions.png", "positions.png", "features.png", "firing.png"}
    for name in names:
        picture = np.asarray(Image.open(tmp_path / "inside" / "pictures" / name).convert("L"))
        assert min(picture.shape) > 300
        assert picture.std() > 5
    page = (tmp_path / "inside" / "index.html").read_text()
    assert "Inside a VAE of Pong" in page
    assert 'src="http' not in page


def test_what_cannot_be_looked_at_is_refused_in_a_sentence(launch, model, tmp_path):
    screen_store.append(tmp_path / "frames", "Breakout", np.zeros((2, 210, 160), np.uint8))
    given = (f"--checkpoint={model}", f"--screens={tmp_path / 'frames'}")
    said = refusal(launch("inspect", *given, f"--workdir={tmp_path / 'inside'}"))
    assert "frames of Breakout, and the model was trained on Pong" in said
    assert "--workdir is missing" in refusal(launch("inspect"))
    assert "--checkpoint is missing" in refusal(launch("inspect", f"--workdir={tmp_path / 'in'}"))


@pytest.mark.skipif(os.getuid() != 0, reason="needs /proc, where not even root may write")
def test_a_work_directory_that_cannot_be_written_is_said_at_once(launch, model):
    said = refusal(launch("inspect", f"--checkpoint={model}", "--workdir=/proc/inside"))
    assert "/proc/inside" in said


def test_the_shipped_model_that_a_run_was_played_with_is_found(launch, tmp_path):
    run = ("--game=kangaroo", "--budget_nodes=5", "--max_actions=3", f"--workdir={tmp_path}")
    played = launch("play", *run)
    assert played.returncode == 0, played.stderr
    assert "features: the universal VAE in" in played.stdout
    looked = ("--num_screens=9", "--shown_screens=2", f"--workdir={tmp_path / 'inside'}")
    done = launch("inspect", f"--run={tmp_path}", "--fresh_tree", *looked)
    assert done.returncode == 0, done.stderr
    assert "4,500 features over 9 frames of Kangaroo" in done.stdout
    assert "of 3 decisions of" in done.stdout
    assert "Inside a VAE of 91 games" in (tmp_path / "inside" / "index.html").read_text()
