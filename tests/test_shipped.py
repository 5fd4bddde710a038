"""The shipped VAEs: complete, small, described, and good at screens they were not trained on."""

import json
import re

import jax
import numpy as np
import pytest

from tests.paper_games import GAMES
from tests.random_play import random_screens
from vaeiw_jax import atari, models
from vaeiw_jax.experiments import catalogue
from vaeiw_jax.features import FeaturesConfig, Setting, bprost, create
from vaeiw_jax.inspection import reconstructions
from vaeiw_jax.models import SHIPPED, UNIVERSAL, model_directory
from vaeiw_jax.playing import screen_store
from vaeiw_jax.playing.collecting import CollectConfig, collect
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.reports import model_card
from vaeiw_jax.vae import sampling, steps
from vaeiw_jax.vae.config import TrainConfig

PLAYED_WITH_THE_UNIVERSAL_ONE = ["Kangaroo", "Freeway", "Qbert"]


def test_the_games_that_every_user_meets_are_there():
    assert {"MsPacman", "SpaceInvaders"} <= set(models.shipped_games())
    assert UNIVERSAL in models.shipped_models()


@pytest.mark.parametrize("name", models.shipped_models())
def test_a_model_is_small_and_its_card_is_about_it(name):
    directory = SHIPPED / name
    assert sum(path.stat().st_size for path in directory.iterdir()) <= model_card.MOST_BYTES
    description = models.model_description(directory)
    games = models.trained_on(directory)
    if name == UNIVERSAL:
        assert len(games) == 91  # those of `--game=all`
        assert {*games} <= {*atari.game_names()}
    elif name == "left_out":
        assert {*games} == {*models.trained_on(SHIPPED / UNIVERSAL)} - {*catalogue.LEFT_OUT_8}
    else:
        assert games == [name]
    card = (directory / "README.md").read_text()
    assert description["weights"]["sha256"] in card
    described = json.loads(card.partition("```json")[2].partition("```")[0])
    assert (described["latent"], described["latent_kind"]) == ("15x15x20", "bernoulli")
    for picture in ("reconstructions.png", "learning_curve.png"):
        assert (directory / picture).read_bytes().startswith(b"\x89PNG")
        assert picture in card


@pytest.mark.parametrize("game", [*models.shipped_games(), *PLAYED_WITH_THE_UNIVERSAL_ONE])
def test_what_moves_on_a_new_screen_is_drawn_and_makes_other_features_true(game):
    directory = model_directory("vae", game)
    assert (directory.name == UNIVERSAL) == (game in PLAYED_WITH_THE_UNIVERSAL_ONE)
    model, variables = models.load_model(directory)
    screens = random_screens(atari.rom_id(game), 40, seed=7)[10:]
    frames = ScreenSet.of(game, screens)
    encoded = reconstructions.encode(model, FeaturesConfig("vae"), frames)
    moved = (screens[1:] != screens[:-1]).any(axis=(1, 2))
    became_true = (encoded.bits[1:] & ~encoded.bits[:-1]).any(axis=1)
    assert moved.sum() >= 10
    assert became_true[moved].mean() >= 0.8  # where something only vanishes, features become false
    decoded = reconstructions.decode(model, variables, encoded, np.arange(len(screens)))
    error = decoded.squared_error(encoded.frames)
    if directory.name == UNIVERSAL:  # which draws walls and floors, and small things as smudges
        assert error < 0.15 * encoded.frames.var()
    else:
        still = encoded.frames.mean(axis=0)  # all that does not move, and nothing else
        assert error < 0.5 * np.square(encoded.frames - still).mean()


def test_the_universal_cards_numbers_are_those_of_its_weights(tmp_path):
    """Collects a game's screens as the card says, and validates the weights on those kept for that."""
    game, directory = "Pong", SHIPPED / UNIVERSAL
    card = (directory / "README.md").read_text()
    command = re.search(r"launch\.collect --game=all (.*)--workdir", card)[1]
    settings = dict(flag.removeprefix("--").split("=") for flag in command.split())
    settings = {name: int(value) for name, value in settings.items()}
    num_screens, drawn = settings.pop("num_screens"), settings.pop("drawn_screens")
    episode = EpisodeConfig.of(game, features="bprost", **settings)
    collect(CollectConfig(episode, num_screens=num_screens, drawn_screens=drawn), tmp_path)

    description = models.model_description(directory)
    counts = description["about"]["games"]
    train = json.loads(card.partition("```json")[2].partition("```")[0])
    held_back = sampling.split(list(counts.values()), train["validation_share"], train["seed"])[1]
    position = list(counts).index(game)
    rows = held_back[position] - sum(list(counts.values())[:position])
    screens = screen_store.load(tmp_path).screens[rows]

    config, variables = models.load_model(directory)
    found = jax.device_get(
        jax.jit(steps.eval_step, static_argnums=0)(
            TrainConfig(screens="", model=config),
            variables,
            screens,
            np.arange(len(screens)),
            np.ones(len(screens), bool),
            0,
        )
    )
    _, _, excess, mse, features = map(
        str.strip, re.search(rf"\| {game} \|.*\|", card)[0].strip("|").split("|")
    )
    terms = found.terms
    assert float(excess) == pytest.approx((terms.bce - terms.entropy).mean(), rel=0.05)
    assert float(mse) == pytest.approx(terms.mse.mean(), rel=0.05)
    assert float(features.replace(",", "")) == pytest.approx(found.features.mean(), rel=1e-3)


def test_every_game_is_played_with_the_universal_vae_and_those_of_the_paper_have_bprost_atoms():
    features = create(FeaturesConfig("vae:universal"), Setting("", (210, 160)))
    known = models.trained_on(SHIPPED / UNIVERSAL)
    assert set(GAMES) <= set(known)
    for game in known:
        config = EpisodeConfig.of(game, budget_nodes=3, max_actions=2)
        episode = Episode(config, seed=0, features=features)
        while not episode.stop:
            episode.advance()
        assert len(episode.actions) == 2, game
        assert all(decision.new_nodes > 0 for decision in episode.statistics), game
        assert len(bprost.atoms(episode.snapshot.screen)) > (100 if game in GAMES else 0), game
