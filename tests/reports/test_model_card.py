"""The card of a model, from the records of a training written by hand."""

import json
import shutil

import pytest
from PIL import Image

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.reports import model_card


@pytest.fixture
def training(model_of, tmp_path):
    directory = tmp_path / "training"
    shutil.copytree(model_of(), directory / "model")
    config = {
        **{"latent": "15x15x20", "latent_kind": "bernoulli", "beta": 1e-4, "batch_size": 8},
        **{"epochs": 2, "learning_rate": 1e-3, "learning_rate_end": 1e-5},
    }
    validation = {
        **{"epoch": 2, "bce": 9834.0, "excess_bce": 2.5, "mse": 0.00006, "kl": 3096.6},
        **{"features_per_frame": 3248, "features_varying": 1760},
    }
    record = {"game": "Pong", "model": "ab" * 32, "steps": 3562}
    durable.write_json(
        directory / "trained.json", record | {"config": config, "validation": validation}
    )
    command = ["/usr/bin/python", "-m", "launch.train", "--screens=a b"]
    session = {"command": command, "threads": 2, "processor": "Abacus"}
    durable.write_json(
        directory / "trained.host.json", {"seconds": 2760, "sessions": [session, session]}
    )
    lines = [{"kind": "train", "step": step, "excess_bce": 100 / step} for step in range(1, 50)]
    (directory / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (directory / "pictures").mkdir()
    Image.new("RGB", (2000, 1000)).save(directory / "pictures" / "epoch-001.png")
    return directory


@pytest.fixture
def collection(tmp_path):
    directory = tmp_path / "screens"
    record = {"screens": 15000, "duplicates": 3814, "scores": [1, 2, 3, 4]}
    durable.write_json(directory / "collection.json", record | {"config": {"features": "bprost"}})
    session = {"command": ["python", "-m", "launch.collect", "--game=Pong"]}
    durable.write_json(directory / "collection.host.json", {"seconds": 960, "sessions": [session]})
    return directory


def test_a_card_says_how_the_model_was_made_and_how_good_it_is(training, collection, tmp_path):
    model_card.publish(training, collection, tmp_path / "card", "A <note>.")
    text = (tmp_path / "card" / "README.md").read_text()
    for part in (
        "# Pong: a VAE of 15x15x20 Bernoulli latents",
        "into 4,500 features for planning",
        "\n    python -m launch.collect --game=Pong\n",
        "15,000 screens, 3,814 of them seen before, from 5 episodes of the planner with `bprost`",
        "\n16 minutes.\n",
        "3,562 steps of 8 frames, of the 2 passes",
        "learning rate of 0.001, falling to 1e-05 along half a cosine (the paper: 1e-4), beta 0.0001.",
        "46 minutes on 2 cores of an Abacus. A <note>.",
        "| reconstruction | 9,834.0 nats a frame, 2.5 above the floor",
        "| features true in a frame | 3,248 of 4,500 |",
        f"SHA-256 is `{'ab' * 32}`",
    ):
        assert part in text
    assert (
        text.count("python -m launch.train '--screens=a b'") == 1
    )  # though there were two sessions
    for picture in ("reconstructions.png", "learning_curve.png"):
        assert Image.open(tmp_path / "card" / picture).width >= 900


def test_without_a_collection_there_is_no_card(training, tmp_path):
    with pytest.raises(UserError, match=r"holds no screens of launch\.collect"):
        model_card.publish(training, tmp_path, tmp_path / "card")
