"""Training on several stores: which screens, validated per game, resumed to the bit."""

from pathlib import Path

import numpy as np
import pytest

from tests.random_play import random_screens
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import screen_store
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.training import loop, metrics, trainer
from vaeiw_jax.training.trainer import Trainer
from vaeiw_jax.vae import steps
from vaeiw_jax.vae.config import TrainConfig

pytestmark = pytest.mark.usefixtures("compiled_soon")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten screens of one game and five of another."""
    directory = tmp_path_factory.mktemp("stores")
    screen_store.append(directory / "Pong", "Pong", random_screens("pong", 10))
    screen_store.append(directory / "Alien", "Alien", random_screens("alien", 5))
    return directory


def test_a_folder_of_stores_and_a_list_of_them_hold_the_same(stores: Path) -> None:
    folder = screen_store.load_all(str(stores))
    listed = screen_store.load_all(f"{stores / 'Alien'}, {stores / 'Pong'}")
    assert folder.games == listed.games == ("Alien", "Pong")
    assert folder.counts == listed.counts == (5, 10)
    np.testing.assert_array_equal(folder.screens[:5], random_screens("alien", 5))
    np.testing.assert_array_equal(folder.screens[5:], random_screens("pong", 10))
    assert folder.digest() == listed.digest()
    assert folder.description() == {"game": "", "games": {"Alien": 5, "Pong": 10}}


def test_what_cannot_be_trained_on_together_is_said_in_a_sentence(
    stores: Path, tmp_path: Path
) -> None:
    screen_store.append(tmp_path / "odd", "Odd", np.zeros((3, 250, 160), np.uint8))
    screen_store.append(tmp_path / "again", "Pong", random_screens("pong", 3))
    (tmp_path / "nothing").mkdir()
    for added, sentence in (
        ("odd", "holds screens of 250x160 pixels, but .* of 210x160"),
        ("again", "are both of Pong; leave one of them out"),
        ("nothing", "nothing holds no screen store"),
    ):
        with pytest.raises(UserError, match=sentence):
            screen_store.load_all(f"{stores},{tmp_path / added}")
    for again, named in ((stores, "Alien"), (stores / "Pong", "Pong")):
        with pytest.raises(UserError, match=f"{named} is named twice; name each store once"):
            screen_store.load_all(f"{stores},{again}")
    with pytest.raises(UserError, match="holds neither a screen store"):
        screen_store.load_all(str(tmp_path / "nothing"))
    with pytest.raises(UserError, match="names no folder"):
        screen_store.load_all(" , ")


def test_games_can_be_left_out(stores: Path) -> None:
    assert screen_store.load_all(str(stores), ["Alien"]).games == ("Pong",)
    with pytest.raises(UserError, match="unknown game to leave out 'Alein'"):
        screen_store.load_all(str(stores), ["Alein"])
    with pytest.raises(UserError, match="every game is left out"):
        screen_store.load_all(str(stores), ["Alien", "Pong"])


def test_a_store_of_one_screen_is_refused() -> None:
    few = ScreenSet(("Pong", "Alien"), (20, 1), random_screens("pong", 21))
    with pytest.raises(UserError, match="there is 1 screen of Alien"):
        trainer.split(TrainConfig(screens=""), few)


def test_every_game_is_validated_as_if_alone(stores: Path) -> None:
    config = TrainConfig(screens="", batch_size=2, validation_share=0.2)
    both = screen_store.load_all(str(stores))
    state = steps.create_train_state(config)
    together = Trainer(config, both)
    validation = together.validate(together.place(state))
    assert together.validation_counts == [1, 2]
    for game in both.games:
        alone = Trainer(config, screen_store.load(stores / game))
        expected = alone.validate(alone.place(state)).metrics
        ours = validation.games[game]
        floor, expected_floor = (m["bce"] - m["excess_bce"] for m in (ours, expected))
        assert floor == pytest.approx(expected_floor, rel=1e-6)
        for name in ("kl", "features_per_frame"):  # which depend on no noise
            assert ours[name] == pytest.approx(expected[name], rel=1e-5)
    for name in ("loss", "bce", "kl", "mse"):
        means = [values[name] for values in validation.games.values()]
        assert validation.metrics[name] == pytest.approx(np.mean(means))
    worst = validation.worst_first()
    assert validation.games[worst[0]]["excess_bce"] >= validation.games[worst[1]]["excess_bce"]


@pytest.mark.parametrize(
    ("every", "validated"), [(0, [6, 12]), (4, [4, 6, 10, 12]), (2, [2, 4, 6, 8, 10, 12])]
)
def test_an_epoch_is_validated_at_its_end_and_as_often_as_asked_for(
    stores: Path, every: int, validated: list[int]
) -> None:
    config = TrainConfig(screens="", batch_size=2, validation_share=0.2, validate_every=every)
    trainer = Trainer(config, screen_store.load_all(str(stores)))
    assert sorted({trainer.next_validation(step) for step in range(12)}) == validated
    for step in range(12):
        assert trainer.next_validation(step) == min(v for v in validated if v > step)


def interrupted_after(calls: int):
    left = iter(range(calls))
    return lambda: next(left, None) is None


def test_a_run_on_many_stores_that_is_interrupted_ends_like_one_that_is_not(
    stores: Path, tmp_path: Path
) -> None:
    config = TrainConfig(
        screens=str(stores),
        batch_size=2,
        epochs=2,
        validation_share=0.2,
        validate_every=4,
        picture_every=2,
    )
    whole = loop.train(config, tmp_path / "whole")
    assert whole is not None
    assert whole["games"] == {"Alien": 5, "Pong": 10}
    assert set(whole["validation"]["games"]) == {"Alien", "Pong"}
    halves = tmp_path / "halves"
    assert loop.train(config, halves, interrupted_after(3)) is None  # which is validated
    screen_store.append(stores / "Pong", "Pong", random_screens("pong", 3))  # it may grow
    assert loop.train(config, halves) == whole
    ours, theirs = ((d / metrics.FILE).read_bytes() for d in (halves, tmp_path / "whole"))
    assert ours == theirs
    validated = metrics.validations(halves)
    assert [line["step"] for line in validated] == [4, 6, 10, 12]
    assert all(set(line["games"]) == {"Alien", "Pong"} for line in validated)
    assert (halves / "pictures" / "games-0002.png").exists()
