"""The converter as a user starts it."""

import subprocess
import sys

import numpy as np
import torch

from tests.vae import pairs
from vaeiw_jax import models


def convert(*flags: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "launch.convert_torch", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_weights_go_into_a_model_and_back(tmp_path) -> None:
    config = pairs.MODELS["published_gaussian"]
    model = pairs.reference(config)
    torch.save(model.state_dict(), tmp_path / "given.pt")
    there = convert(
        f"--from_torch={tmp_path / 'given.pt'}",
        f"--to_checkpoint={tmp_path / 'model'}",
        "--variant=published",
        "--latent=15x15x5",
        "--latent_kind=gaussian",
    )
    assert there.returncode == 0, there.stderr
    assert models.load_model(tmp_path / "model")[0] == config

    back = convert(f"--from_checkpoint={tmp_path / 'model'}", f"--to_torch={tmp_path / 'back.pt'}")
    assert back.returncode == 0, back.stderr
    given, returned = model.state_dict(), torch.load(tmp_path / "back.pt", weights_only=True)
    assert given.keys() == returned.keys()
    for name in given:
        np.testing.assert_array_equal(given[name], returned[name])


def test_wrong_weights_end_with_a_sentence_and_no_model(tmp_path) -> None:
    torch.save(pairs.reference(pairs.MODELS["4x4"]).state_dict(), tmp_path / "given.pt")
    result = convert(
        f"--from_torch={tmp_path / 'given.pt'}", f"--to_checkpoint={tmp_path / 'model'}"
    )
    assert result.returncode == 1
    assert "error: tensor 'encoder.0.weight' has shape [64, 1, 3, 3]" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "model").exists()


def test_half_a_direction_is_refused(tmp_path) -> None:
    result = convert(f"--from_torch={tmp_path / 'given.pt'}")
    assert result.returncode == 1
    assert "give --from_torch=FILE and --to_checkpoint=DIR" in result.stderr
