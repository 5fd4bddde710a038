import re

import numpy as np
import pytest

from tests.inspection.conftest import random_variables
from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.inspection import gathering
from vaeiw_jax.inspection.config import InspectConfig
from vaeiw_jax.inspection.findings import inspect_model
from vaeiw_jax.inspection.gathering import Gathered
from vaeiw_jax.playing import screen_store
from vaeiw_jax.vae.config import ModelConfig


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"num_screens": 1}, "num_screens must be at least 2, not 1"),
        ({"shown_screens": 0}, "shown_screens must be at least 1, not 0"),
        ({"alike_pixels": -1}, "alike_pixels must be 0 or more, not -1"),
        ({"threshold": 1.0}, "threshold must be above 0 and below 1, not 1.0"),
        ({"decision": 3}, "--decision is of a recorded run; say which with --run=WORKDIR"),
        ({"run": "here", "decision": -2}, "decision must be 0 or more, not -2"),
        ({"screens": "here", "game": "Pong"}, "give --screens or --game"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(values, said):
    with pytest.raises(UserError, match=re.escape(said)):
        InspectConfig("model", **values)


def test_a_torn_model_is_refused_by_name(tmp_path):
    config = ModelConfig("15x15x1")
    models.save_model(tmp_path, config, random_variables(config), {"game": "Pong"})
    (weights,) = tmp_path.glob("weights-*.npz")
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UserError, match=f"{weights.name} is torn"):
        inspect_model(InspectConfig(str(tmp_path)))


def test_a_model_that_names_no_game_needs_frames_or_a_game(tmp_path):
    config = ModelConfig("15x15x1")
    models.save_model(tmp_path, config, random_variables(config))
    with pytest.raises(UserError, match="give --screens or --game"):
        inspect_model(InspectConfig(str(tmp_path)))


@pytest.mark.parametrize("number", [1, 3])
def test_a_store_of_one_frame_leaves_nothing_to_compare(tmp_path, model_of, number):
    screen_store.append(tmp_path, "Pong", np.zeros((number, 210, 160), np.uint8))
    with pytest.raises(UserError, match="a single frame, over and over; at least 2 different ones"):
        inspect_model(InspectConfig(str(model_of()), screens=str(tmp_path)))


def test_a_short_game_of_one_frame_leaves_nothing_to_compare(model_of, monkeypatch):
    still = Gathered("Pong", np.zeros((3, 210, 160), np.uint8), [None, None, None])
    monkeypatch.setattr(gathering, "from_play", lambda *_: still)
    with pytest.raises(UserError, match="of a short game of Pong, are a single frame"):
        inspect_model(InspectConfig(str(model_of())))
