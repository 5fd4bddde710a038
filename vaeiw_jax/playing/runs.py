"""Runs on disk: where an episode's files are, playing it to the end, and going on after a crash."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaeiw_jax import atari, configs, durable, provenance, workdirs
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeatureSet
from vaeiw_jax.planning import Decision, SearchFunction
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig

SAVE_SECONDS = 30.0


@dataclass(frozen=True)
class Run:
    """One seed of a game in a work directory, and the files it leaves there."""

    workdir: Path
    game: str
    seed: int

    def _path(self, folder: str, suffix: str) -> Path:
        return self.workdir / folder / self.game / f"seed-{self.seed}{suffix}"

    @property
    def record(self) -> Path:
        """The result. It is written last: where it is, the run is finished."""
        return self._path("episodes", ".json")

    @property
    def host(self) -> Path:
        """What depends on the machine."""
        return self._path("episodes", ".host.json")

    @property
    def decisions(self) -> Path:
        return self._path("decisions", ".npz")

    @property
    def progress(self) -> Path:
        """The last save of a run that is not finished."""
        return self._path("progress", ".npz")

    @property
    def video(self) -> Path:
        return self._path("videos", ".mp4")


def find(workdir: Path, game: str | None, seed: int) -> Run:
    """The finished run asked for, of the only game there is unless one is named."""
    games = sorted(path.name for path in workdir.glob("episodes/*"))
    if not games:
        raise UserError(
            f"{workdir} holds no recorded episodes; play some with `python -m launch.play`"
        )
    if game is None and len(games) > 1:
        raise UserError(f"{workdir} holds several games, {', '.join(games)}; say which")
    run = Run(workdir, atari.game_name(atari.rom_id(game)) if game else games[0], seed)
    if not run.record.exists():
        seeds = sorted(path.stem for path in run.record.parent.glob("seed-*[0-9].json"))
        raise UserError(
            f"there is no finished run {run.record}; there is {', '.join(seeds) or 'none'}"
        )
    return run


def play(
    config: EpisodeConfig,
    run: Run,
    *,
    emulators: int = 0,
    command: list[str] | None = None,
    save_seconds: float = SAVE_SECONDS,
    on_decision: Callable[[Episode, Decision | None], None] = lambda episode, decision: None,
    interrupted: Callable[[], bool] = lambda: False,
    features: FeatureSet | None = None,
    search: SearchFunction | None = None,
) -> dict[str, Any] | None:
    """Plays a run to its end, from its last save if there is one, and returns its record.

    Args:
      config: how to play. The work directory must hold no other config's results.
      run: which run, and where its files are.
      emulators: processes that step the game, or 0.
      command: how it was started, for the record.
      save_seconds: how much play a crash may cost.
      on_decision: told of the episode at the start, and of every decision.
      interrupted: asked after every decision; if it says so the run is saved and None returned.
      features, search: objects in place of those that the config names, as for `Episode`.
    """
    config = config.named_after(features, search)
    how = configs.settings(config.identified())
    del how["game"]  # games may share a work directory
    workdirs.claim(run.workdir, how)
    if run.record.exists():
        return durable.read_json(run.record)
    started = time.time()
    episode = Episode(config, run.seed, emulators, features=features, search=search)
    resumed_at = _resume(episode, run)
    settle()
    on_decision(episode, None)
    saved = time.monotonic()
    while not episode.stop:
        if interrupted():
            durable.write_arrays(run.progress, episode.save())
            return None
        on_decision(episode, episode.advance())
        if time.monotonic() - saved >= save_seconds:
            durable.write_arrays(run.progress, episode.save())
            saved = time.monotonic()
    durable.write_arrays(run.decisions, episode.decisions())
    durable.write_json(
        run.host,
        provenance.host(command, started)
        | {"emulators": emulators, "resumed_at_decision": resumed_at}
        | episode.seconds(),
    )
    record = episode.record()
    durable.write_json(run.record, record)
    run.progress.unlink(missing_ok=True)
    return record


def settle() -> None:
    """Tells the garbage collector that what is loaded by now stays.

    Otherwise it looks through all of it now and then, which takes tens of milliseconds of somebody's decision.
    """
    gc.collect()
    gc.freeze()


def _resume(episode: Episode, run: Run) -> int:
    """Takes up the last save; returns the number of the decision it was made at."""
    if not run.progress.exists():
        return 0
    try:
        episode.resume(durable.read_arrays(run.progress))
    except (UserError, KeyError) as error:
        raise UserError(
            f"the save {run.progress} is damaged ({error}); delete it to play this run from the start"
        ) from error
    return len(episode.actions)
