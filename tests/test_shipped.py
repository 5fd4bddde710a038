"""The shipped VAEs: complete, small, described, and good at screens they were not trained on."""

import json

import numpy as np
import pytest

from tests.random_play import random_screens
from vaeiw_jax import atari, models
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.inspection import reconstructions
from vaeiw_jax.models import SHIPPED
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.reports import model_card

GAMES = sorted(path.name for path in SHIPPED.iterdir())


def test_the_games_that_every_user_meets_are_there():
    assert {"MsPacman", "SpaceInvaders"} <= set(GAMES)


@pytest.mark.parametrize("game", GAMES)
def test_a_model_is_small_and_its_card_is_about_it(game):
    directory = SHIPPED / game
    assert sum(path.stat().st_size for path in directory.iterdir()) <= model_card.MOST_BYTES
    description = models.model_description(directory)
    assert description["about"]["game"] == game
    card = (directory / "README.md").read_text()
    assert description["weights"]["sha256"] in card
    described = json.loads(card.partition("```json")[2].partition("```")[0])
    assert (described["latent"], described["latent_kind"]) == ("15x15x20", "bernoulli")
    for picture in ("reconstructions.png", "learning_curve.png"):
        assert (directory / picture).read_bytes().startswith(b"\x89PNG")
        assert picture in card


@pytest.mark.parametrize("game", GAMES)
def test_what_moves_on_a_new_screen_is_drawn_and_makes_other_features_true(game):
    directory = SHIPPED / game
    model, variables = models.load_model(directory)
    screens = random_screens(atari.rom_id(game), 40, seed=7)[10:]
    frames = ScreenSet.of(game, screens)
    encoded = reconstructions.encode(model, FeaturesConfig("vae"), frames)
    moved = (screens[1:] != screens[:-1]).any(axis=(1, 2))
    became_true = (encoded.bits[1:] & ~encoded.bits[:-1]).any(axis=1)
    assert moved.sum() >= 10
    assert became_true[moved].mean() >= 0.8  # where something only vanishes, features become false
    decoded = reconstructions.decode(model, variables, encoded, np.arange(len(screens)))
    still = encoded.frames.mean(axis=0)  # all that does not move, and nothing else
    assert decoded.squared_error(encoded.frames) < 0.5 * np.square(encoded.frames - still).mean()
