"""The card of a model, from the records of a training written by hand."""

import json
import shutil

import pytest
from PIL import Image

from vaeiw_jax import configs, durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import EpisodeConfig
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
        **{"step": 3200, "epoch": 2, "bce": 9834.0, "excess_bce": 2.5, "mse": 0.00006},
        **{"kl": 3096.6, "features_per_frame": 3248, "features_varying": 1760},
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
        "with the weights of step 3,200, which validated best:",
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


def test_a_card_of_an_unfinished_training_is_about_its_best_validation(
    training, collection, tmp_path
):
    record = durable.read_json(training / "trained.json")
    (training / "trained.json").unlink()
    durable.write_json(
        training / "config.json", {"train": record["config"] | {"screens": "some/screens"}}
    )
    validation = record["validation"] | {"kind": "validation", "features_histogram": {}}
    lines = [
        validation | {"step": step, "loss": loss} for step, loss in ((10, 3), (20, 1), (30, 2))
    ]
    with (training / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    model_card.publish(training, collection, tmp_path / "card")
    text = (tmp_path / "card" / "README.md").read_text()
    assert "20 steps of 8 frames" in text
    assert "with the weights of step 20, which validated best" in text


def test_without_a_collection_there_is_no_card(training, tmp_path):
    with pytest.raises(UserError, match=r"holds no screens of launch\.collect"):
        model_card.publish(training, tmp_path, tmp_path / "card")


@pytest.fixture
def stores(tmp_path):
    """The records of collecting from two games with one command."""
    folder = tmp_path / "stores"
    for game, duplicates in (("Alien", 28), ("Pong", 100)):
        episode = EpisodeConfig.of(game, features="bprost", budget_nodes=50, max_actions=400)
        config = configs.settings(CollectConfig(episode, num_screens=500, drawn_screens=2))
        record = {"game": game, "screens": 500, "duplicates": duplicates, "scores": []}
        durable.write_json(folder / game / "collection.json", record | {"config": config})
        session = {"command": ["python", "-m", "worker"]}
        host = {"seconds": 30, "sessions": [session]}
        durable.write_json(folder / game / "collection.host.json", host)
    return folder


@pytest.fixture
def trained_on_both(training):
    record = durable.read_json(training / "trained.json")
    record |= {"game": "", "games": {"Alien": 500, "Pong": 500}}
    values = {"mse": 0.001, "features_per_frame": 2000.4}
    record["validation"]["games"] = {
        "Alien": values | {"excess_bce": 123.44},
        "Pong": values | {"excess_bce": 1234.56},
    }
    durable.write_json(training / "trained.json", record)
    return training


def test_a_card_of_many_games_tells_how_each_is_reconstructed(trained_on_both, stores, tmp_path):
    model_card.publish(trained_on_both, stores, tmp_path / "card")
    text = (tmp_path / "card" / "README.md").read_text()
    for part in (
        "# One VAE of 15x15x20 Bernoulli latents for every game",
        "\n    python -m launch.collect --game=Alien,Pong --num_screens=500 --budget_nodes=50 --max_actions=400"
        " --drawn_screens=2 --workdir=runs/screens\n",
        "1,000 screens of 2 games, 128 of them seen before in their game, with `bprost` features;\n1 minutes",
        "the mean over games",
        "| Pong | 500 | 1,234.6 | 0.00100 | 2,000 |\n| Alien | 500 | 123.4 |",  # the worst first
    ):
        assert part in text


def test_a_card_says_which_games_were_left_out(trained_on_both, stores, tmp_path):
    record = durable.read_json(trained_on_both / "trained.json")
    record["config"]["leave_out"] = "Enduro,Amidar"
    durable.write_json(trained_on_both / "trained.json", record)
    card = tmp_path / "card"
    model_card.publish(trained_on_both, stores, card)
    text = (card / "README.md").read_text()
    assert "Bernoulli latents, trained without Enduro, Amidar\n" in text
    assert f"python -m launch.play --game=Enduro --features=vae:{card}\n" in text
    assert "launch.collect --game=Alien,Amidar,Enduro,Pong --num_screens=500" in text


def test_games_that_were_collected_differently_have_no_card_together(
    trained_on_both, stores, tmp_path
):
    path = stores / "Pong" / "collection.json"
    record = durable.read_json(path)
    record["config"]["budget_nodes"] = 60
    durable.write_json(path, record)
    with pytest.raises(UserError, match="Pong was collected otherwise than Alien"):
        model_card.publish(trained_on_both, stores, tmp_path / "card")
