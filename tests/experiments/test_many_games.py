from pathlib import Path

import pytest

from vaeiw_jax import atari
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import many_games


def test_all_are_the_games_with_a_screen_of_the_usual_size_and_the_others_are_named():
    games, left_out = many_games.games("ALL")
    assert len(games) == 91
    assert {"Pong", "Qbert", "MontezumaRevenge"} <= {*games}
    assert {"Combat", "Warlords"} <= {*left_out}  # which the emulator does not support
    assert not {*games} & {*left_out}
    assert len(games) + len(left_out) == len(atari.game_names()) + len(atari.UNUSABLE)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("Pong,Alien,pong", "Pong is named twice"),
        ("Pong,AirRaid", "the screens of Pong and AirRaid differ in size"),
        ("Pong,pnog", "unknown game 'pnog'"),
    ],
)
def test_games_that_cannot_be_collected_together_are_refused(given, sentence):
    with pytest.raises(UserError, match=sentence):
        many_games.games(given)


def test_every_game_gets_a_job_and_a_store_of_its_own(tmp_path: Path):
    settings = {"num_screens": 20, "budget_nodes": 5, "budget_seconds": None, "features": "ram"}
    jobs = many_games.jobs(["Pong", "Alien"], settings, tmp_path)
    assert [job.directory for job in jobs] == [tmp_path / "Pong", tmp_path / "Alien"]
    assert [job.config.episode.atari.game for job in jobs] == ["Pong", "Alien"]
    assert all(job.config.num_screens == 20 for job in jobs)
