"""What of a code is an atom, against obvious loops; and what is usual, frozen with the run."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, create, identified
from vaeiw_jax.features.config import LITERALS
from vaeiw_jax.features.literals import Literals, usual_values
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.training.usual_codes import usual_codes

bits = st.lists(st.booleans(), min_size=21, max_size=21)


def obvious(kind, changes, bits, usual, previous):
    """The atoms by their definition, bit for bit."""
    number, atoms = len(bits), []
    for i, bit in enumerate(bits):
        if kind == "either":
            atoms.append(i if bit else number + i)
        elif bit != (usual[i] if kind == "unusual" else False):
            atoms.append(i)
    first = number * (2 if kind == "either" else 1)
    if changes and previous is not None:
        for i, (bit, before) in enumerate(zip(bits, previous, strict=True)):
            if bit and not before:
                atoms.append(first + i)
            if before and not bit:
                atoms.append(first + number + i)
    return sorted(atoms)


@pytest.mark.parametrize("kind", LITERALS)
@pytest.mark.parametrize("changes", [False, True])
@given(bits, bits, st.none() | bits)
@settings(max_examples=30, deadline=None)
def test_atoms_are_what_they_are_said_to_be(kind, changes, code, usual, previous):
    packed_usual = np.packbits(usual) if kind == "unusual" else None
    literals = Literals(len(code), kind, changes, packed_usual)
    before = None if previous is None else np.packbits(previous)
    atoms = literals.atoms(np.packbits(code), before)
    assert atoms.tolist() == obvious(kind, changes, code, usual, previous)
    assert atoms.dtype == np.int32
    config = FeaturesConfig("vae", literals=kind, changes=changes)
    assert all(atoms < config.num_atoms(len(code)))


def test_usual_is_what_most_codes_have():
    codes = np.array([[1, 1, 0, 1, 0], [1, 0, 0, 1, 0], [1, 0, 0, 0, 1]], bool)
    usual = np.unpackbits(usual_values(np.packbits(codes, axis=1)))[:5]
    assert usual.tolist() == [1, 0, 0, 1, 0]


@pytest.mark.parametrize("kind", LITERALS)
def test_atoms_of_real_screens_come_from_the_bits_that_the_paper_calls_true(kind, real_screens):
    screens = real_screens("Pong", 30)
    setting = Setting("Pong", (210, 160), random_screens=lambda: screens[:20])
    paper = create(FeaturesConfig("vae"), setting)
    true = [np.isin(np.arange(4500), paper.atoms(SimpleNamespace(screen=s), None)) for s in screens]
    usual = np.mean(true[:20], axis=0) > 0.5
    usual_from = {"usual": "random_play"} if kind == "unusual" else {}
    features = create(FeaturesConfig("vae", literals=kind, changes=True, **usual_from), setting)
    for i in (21, 25, 29):
        seen, previous = SimpleNamespace(screen=screens[i]), SimpleNamespace(screen=screens[i - 1])
        assert features.atoms(seen, previous).tolist() == obvious(
            kind, True, true[i].tolist(), usual.tolist(), true[i - 1].tolist()
        )
        assert features.atoms(seen, None).tolist() == obvious(
            kind, True, true[i].tolist(), usual.tolist(), None
        )


def test_a_run_with_unusual_bits_is_the_same_after_it_was_interrupted():
    config = EpisodeConfig.of(
        "Freeway", literals="unusual", changes=True, budget_nodes=12, max_actions=8
    )
    whole = Episode(config, seed=3)
    while not whole.stop:
        whole.advance()
    begun = Episode(config, seed=3)
    for _ in range(4):
        begun.advance()
    saved = begun.save()
    resumed = Episode(config, seed=3)
    resumed.resume(saved)
    np.testing.assert_array_equal(resumed.decisions()["usual"], whole.decisions()["usual"])
    while not resumed.stop:
        resumed.advance()
    assert resumed.record() == whole.record()
    assert resumed.record()["config"]["literals"] == "unusual"


def test_what_a_run_began_with_stays_usual():
    config = EpisodeConfig.of("Freeway", literals="unusual", budget_nodes=5, max_actions=3)
    begun = Episode(config, seed=3)
    begun.advance()
    saved = begun.save()
    saved["decisions.usual"] = ~saved["decisions.usual"]
    resumed = Episode(config, seed=3)
    resumed.resume(saved)
    np.testing.assert_array_equal(resumed.decisions()["usual"], saved["decisions.usual"])


@pytest.mark.parametrize(
    ("given_settings", "sentence"),
    [
        ({"features": "ram", "literals": "either"}, "are for learned features, not for"),
        ({"features": "bprost", "changes": True}, "are for learned features, not for"),
        ({"literals": "ether"}, "did you mean 'either'"),
        ({"usual": "random_play"}, "changes nothing for literals=true"),
        ({"usual": "modal", "literals": "unusual"}, "did you mean 'model'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(given_settings, sentence):
    with pytest.raises(UserError, match=sentence):
        EpisodeConfig.of("Pong", **given_settings)


def test_unusual_needs_screens_to_know_what_is_usual():
    config = FeaturesConfig("vae", literals="unusual", usual="random_play")
    with pytest.raises(UserError, match="needs screens of the game"):
        create(config, Setting("Pong", (210, 160)))


@pytest.fixture
def model_that_knows_pong(tmp_path):
    config, variables = models.load_model(models.SHIPPED / "Pong")
    usual = {"Pong": np.arange(563, dtype=np.uint8)}
    models.save_model(tmp_path, config, variables, {"game": "Pong"}, usual)
    return tmp_path, usual["Pong"]


def test_what_is_usual_comes_with_a_model_that_knows_the_game(model_that_knows_pong):
    directory, usual = model_that_knows_pong
    config = FeaturesConfig(f"vae:{directory}", literals="unusual")
    features = create(config, Setting("Pong", (210, 160)))
    np.testing.assert_array_equal(features.usual, usual)
    digest = models.usual_digest(directory, "Pong")
    assert identified(config, "Pong").usual == f"model:{digest}"
    again = dataclasses.replace(config, usual=f"model:{digest}")
    np.testing.assert_array_equal(create(again, Setting("Pong", (210, 160))).usual, usual)


def test_what_is_usual_comes_from_random_play_where_the_model_does_not_know_it(
    model_that_knows_pong, real_screens
):
    directory, usual = model_that_knows_pong
    screens = real_screens("Pong", 20)
    setting = Setting("Pong", (210, 160), random_screens=lambda: screens)
    for other in ({"usual": "random_play"}, {"threshold": 0.7}):
        config = FeaturesConfig(f"vae:{directory}", literals="unusual", **other)
        features = create(config, setting)
        assert (features.usual != usual).any()
        assert identified(config, "Pong").usual == "random_play"
    unknown_game = FeaturesConfig(f"vae:{directory}", literals="unusual")
    assert identified(unknown_game, "Breakout").usual == "random_play"


def test_usual_values_of_another_model_are_refused(model_that_knows_pong):
    directory, _ = model_that_knows_pong
    config = FeaturesConfig(f"vae:{directory}", literals="unusual", usual="model:0123456789abcdef")
    with pytest.raises(UserError, match="not model:0123456789abcdef; give --usual=model"):
        create(config, Setting("Pong", (210, 160)))


def test_training_notes_what_most_screens_of_each_game_have(real_screens):
    config, variables = models.load_model(models.SHIPPED / "universal")
    screens = {game: real_screens(game, 12) for game in ("Pong", "Breakout")}
    together = ScreenSet(("Pong", "Breakout"), (12, 12), np.concatenate(list(screens.values())))
    usual = usual_codes(config, variables, together)
    features = create(FeaturesConfig("vae:universal"), Setting("Pong", (210, 160)))
    for game, shown in screens.items():
        atoms = np.concatenate([features.atoms(SimpleNamespace(screen=s), None) for s in shown])
        expected = np.bincount(atoms, minlength=4500) > 6
        np.testing.assert_array_equal(np.unpackbits(usual[game])[:4500], expected)
