"""Collecting from many games: one job and one screen store per game.

<workdir>/<game>/                a screen store, as collecting from one game leaves it
<workdir>/logs/ running/ failed/ by game: what its job printed, how far it is, why it failed
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vaeiw_jax import atari, configs, frames
from vaeiw_jax.atari import AtariConfig, screen_shape
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments.jobs import COLLECT, Job
from vaeiw_jax.playing.collecting import CollectConfig

ALL = "all"


def is_many(given: str | None) -> bool:
    """Whether what was given as a game stands for several."""
    return given is not None and (given.strip().lower() == ALL or "," in given)


def games(given: str) -> tuple[list[str], list[str]]:
    """The games to collect from, and those of ale-py that are left out.

    Args:
      given: `all` for every game whose screen the encoder takes beside the others'; or games, with commas.
    """
    if given.strip().lower() == ALL:
        every = atari.game_names()
        usable = [game for game in every if screen_shape(game) == frames.SCREEN_SHAPE]
        return usable, sorted({*every, *map(atari.game_name, atari.UNUSABLE)} - {*usable})
    named = [AtariConfig(part).game for part in given.split(",") if part.strip()]
    if not named:
        raise UserError(f"{given!r} names no game; give some with commas between them, or {ALL}")
    for game in named:
        if named.count(game) > 1:
            raise UserError(f"{game} is named twice; name each game once")
        if screen_shape(game) != screen_shape(named[0]):
            raise UserError(
                f"the screens of {named[0]} and {game} differ in size, and one training takes screens of one size; "
                "collect them apart"
            )
    return named, []


def are_all(names: Sequence[str]) -> bool:
    """Whether these are the games that `all` stands for."""
    return list(names) == games(ALL)[0]


def jobs(names: Sequence[str], settings: Mapping[str, Any], workdir: Path) -> list[Job]:
    """A job per game.

    Args:
      names: the games.
      settings: of `CollectConfig`, by flag name, without the game.
      workdir: where the stores go.
    """
    return [
        Job(
            COLLECT,
            game,
            workdir.absolute(),
            game,
            configs.from_settings(CollectConfig, {**settings, "game": game}, partial=True),
        )
        for game in names
    ]
