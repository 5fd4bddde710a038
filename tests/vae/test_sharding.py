"""Many devices and many processes give the numbers of one."""

import socket
from pathlib import Path

import numpy as np
import pytest

from tests import train_process
from tests.random_play import random_screens
from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import screen_store
from vaeiw_jax.training import metrics
from vaeiw_jax.vae import sharding

FLAGS = ("--epochs=1", "--batch_size=8", "--picture_every=0", "--validation_share=0.2")
NAMES = ("loss", "bce", "kl", "mse")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty screens of two games: two batches of eight to train on, a partial batch to validate on."""
    directory = tmp_path_factory.mktemp("stores")
    screen_store.append(directory / "Pong", "Pong", random_screens("pong", 15))
    screen_store.append(directory / "Alien", "Alien", random_screens("alien", 5))
    return directory


@pytest.fixture(scope="module")
def on_one_device(stores: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def run(workdir: Path) -> None:
        code, _, err = train_process.finish(train_process.start(stores, workdir, *FLAGS))
        assert code == 0, err

    return train_process.once(tmp_path_factory, "on_one_device", run)


def assert_same_losses(workdir: Path, expected: Path) -> None:
    ours, theirs = (metrics.read(d / metrics.FILE) for d in (workdir, expected))
    assert [line["kind"] for line in ours] == ["train"] * 2 + ["validation"]
    for name in NAMES:
        np.testing.assert_allclose(
            [line[name] for line in ours],
            [line[name] for line in theirs],
            rtol=2e-3 if name == "kl" else 1e-4,
            err_msg=name,
        )


def test_eight_devices_of_two_processes_give_the_losses_of_one(
    stores: Path, on_one_device: Path, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    processes = [
        train_process.start(
            stores,
            tmp_path,
            *FLAGS,
            f"--coordinator={address}",
            "--num_processes=2",
            f"--process_id={number}",
            devices=4,
        )
        for number in range(2)
    ]
    for process in processes:
        code, _, err = train_process.finish(process)
        assert code == 0, err
    assert_same_losses(tmp_path, on_one_device)
    models.load_model(tmp_path / "model")


def test_incomplete_addresses_are_refused() -> None:
    with pytest.raises(UserError, match="need --coordinator"):
        sharding.connect(None, 2, 0)
    with pytest.raises(UserError, match="needs --num_processes and --process_id"):
        sharding.connect("localhost:1", None, None)
    with pytest.raises(UserError, match="--process_id must be from 0 to 1"):
        sharding.connect("localhost:1", 2, 2)
