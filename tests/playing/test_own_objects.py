"""An episode takes a feature set and a search as they are; its record names them."""

import json

import numpy as np
import pytest

from vaeiw_jax import configs
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, create
from vaeiw_jax.planning.iw import iw
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig, replay
from vaeiw_jax.playing.runs import PlayConfig, Run, play

CONFIG = EpisodeConfig.of("Asterix", features="ram", budget_nodes=10, max_actions=5)


class Halves:
    """Feature s is true: something on half s of the screen is not black."""

    num_features = 2

    def atoms(self, seen, previous):
        return np.flatnonzero([seen.screen[:, :80].any(), seen.screen[:, 80:].any()]).astype("i4")


class Featureless:
    pass


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            f"{__name__}:Featureless",
            "has no num_features; a feature set has num_features and atoms",
        ),
        (
            f"{__name__}:finish",
            "called without arguments or with .config, setting., and it requires 1",
        ),
        ("os:sep", "os:sep is neither a feature set nor a function that makes one"),
    ],
)
def test_what_is_no_feature_set_is_refused_and_claims_no_directory(tmp_path, name, sentence):
    config = EpisodeConfig.of("Asterix", features=name, budget_nodes=10, max_actions=5)
    with pytest.raises(UserError, match=sentence):
        play(PlayConfig(config), tmp_path / "run")
    assert play(PlayConfig(CONFIG), str(tmp_path / "run"))["actions"] == 5


def test_an_object_that_is_no_feature_set_is_refused():
    with pytest.raises(UserError, match="Featureless has no num_features"):
        Episode(CONFIG, 0, features=Featureless())


def test_a_protocol_and_settings_that_override_it_make_a_config():
    config = EpisodeConfig.of("Pong", protocol="recommended", budget_nodes=10, zero_ties="uniform")
    assert (config.features.literals, config.planner.action_choice) == ("either", "top_two")
    assert config.planner.rules.zero_ties == "uniform"
    with pytest.raises(UserError, match="did you mean 'recommended'"):
        EpisodeConfig.of("Pong", protocol="recomended")


def finish(episode):
    while not episode.stop:
        episode.advance()
    return episode


def test_the_same_set_and_search_given_as_objects_play_alike():
    named = finish(Episode(EpisodeConfig.of("Asterix", **settings(planner="iw")), seed=1))
    ram = create(FeaturesConfig("ram"), Setting("Asterix", (210, 160)))
    given = finish(Episode(CONFIG, seed=1, features=ram, search=iw))
    assert given.actions == named.actions
    mine, theirs = given.record(), named.record()
    names = mine.pop("config"), theirs.pop("config")
    assert mine == theirs
    assert names[0] == names[1] | {
        "features": "vaeiw_jax.features.ram:RAM",
        "planner": "vaeiw_jax.planning.iw:iw",
    }


def settings(**others):
    return {"features": "ram", "budget_nodes": 10, "max_actions": 5} | others


def test_a_run_on_disk_takes_them_and_its_config_can_be_read_and_replayed(tmp_path):
    config, run = PlayConfig(CONFIG), Run(tmp_path, "Asterix", 0)
    record = play(config, tmp_path, features=Halves(), search=lambda search: iw(search))
    assert record["config"]["features"] == f"{__name__}:Halves"
    assert record["config"]["planner"].endswith("replayed.<locals>.<lambda>")
    read = configs.from_settings(EpisodeConfig, json.loads(run.record.read_text())["config"])
    actions = [0] * record["actions"]
    assert len(list(replay(read, 0, actions))) == 5
    with pytest.raises(UserError, match="holds results with"):
        play(config, tmp_path)


def test_random_play_needs_no_features():
    config = EpisodeConfig.of("Asterix", planner="random", max_actions=2)
    assert finish(Episode(config, seed=0, features=Halves())).record()["actions"] == 2


def test_a_config_from_settings_by_flag_name():
    config = EpisodeConfig.of("ms_pacman", features="vae", budget_nodes=7, frameskip=4)
    assert (config.atari.game, config.atari.frameskip) == ("MsPacman", 4)
    assert (config.planner.budget_nodes, config.planner.budget_seconds) == (7, None)
    assert EpisodeConfig.of("Pong").planner.budget_seconds == 0.5
    with pytest.raises(UserError, match="unknown setting 'budget_node'; did you mean 'budget_no"):
        EpisodeConfig.of("Pong", budget_node=7)
