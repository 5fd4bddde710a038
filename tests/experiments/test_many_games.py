import resource
from functools import partial
from pathlib import Path

import pytest

from vaeiw_jax import atari
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import many_games
from vaeiw_jax.playing import screen_store


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
        (" ,", "' ,' names no game; give some"),
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


def test_a_disk_that_fills_is_said_for_each_game_and_what_was_collected_is_kept(
    launch, tmp_path: Path
):
    games = "Pong,Alien,Freeway,Qbert"
    flags = ("--features=ram", "--num_screens=60", "--budget_nodes=5", f"--workdir={tmp_path}")
    flags = (f"--game={games}", *flags)
    # Files may not grow beyond 60 kB, as if the disk were full; Pong's screens take less.
    full = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (60_000, 60_000))
    done = launch("collect", *flags, preexec_fn=full)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "next:" not in done.stdout
    assert screen_store.count(tmp_path / "Pong") == 60
    for game in ("Alien", "Freeway"):
        assert f"{game} failed: no space left to write {tmp_path / game}" in done.stderr
        assert not (tmp_path / game / "collection.json").exists()
    again = launch("collect", *flags)
    assert again.returncode == 0, again.stderr
    assert [screen_store.count(tmp_path / game) for game in games.split(",")] == [60] * 4
    other = launch("collect", *flags, "--seed=7")
    assert other.returncode == 1
    assert (
        "holds results with seed=0, as its config.json says, and this run has seed=7"
        in other.stderr
    )
