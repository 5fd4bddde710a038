"""Runs on disk: where an episode's files are, playing it to the end, and going on after a crash."""

import dataclasses
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vaeiw_jax import atari, configs, durable, provenance, records, workdirs
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeatureSet
from vaeiw_jax.planning import SearchFunction
from vaeiw_jax.playing.emulators import default_emulators
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.policies import files as policies
from vaeiw_jax.progress import Interrupted, Tell, never, silent

_EMULATORS_HELP = (
    "processes that step the game while the planner thinks, 0 for none (default: one per core, as far as there are "
    "rollouts in flight to keep them busy). They change nothing but the time it takes"
)


@dataclass(frozen=True)
class PlayConfig:
    """One run: how to play, and with which seed."""

    episode: EpisodeConfig
    seed: int = field(default=0, metadata={"help": "random seed"})
    emulators: int | None = field(default=None, metadata={"help": _EMULATORS_HELP})
    save_seconds: float = field(
        default=30.0, metadata={"help": "seconds between saves, which is what a crash may cost"}
    )

    def __post_init__(self) -> None:
        check_seed(self.seed)
        check_emulators(self.emulators)
        if not self.save_seconds >= 0:
            raise UserError(f"save_seconds must be 0 or more, not {self.save_seconds}")


TIME_ONLY = ("emulators", "save_seconds")
"""Settings of a run that change nothing but the time it takes."""


def check_seed(seed: int) -> None:
    if seed < 0:
        raise UserError(f"seed must be 0 or more, not {seed}")


def check_emulators(emulators: int | None) -> None:
    if emulators is not None and emulators < 0:
        raise UserError(f"emulators must be 0 or more, not {emulators}")


def num_emulators(config: EpisodeConfig, asked_for: int | None) -> int:
    """How many emulator processes to use."""
    if asked_for is not None:
        return asked_for
    return default_emulators(config.planner.rollouts_in_flight, usable_cores())


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
        """What depends on the machine, and the digest of the record."""
        return records.host_path(self.record)

    @property
    def decisions(self) -> Path:
        return self._path("decisions", ".npz")

    @property
    def progress(self) -> Path:
        """The last save of a run that is not finished."""
        return self._path("progress", ".npz")

    @property
    def lock(self) -> Path:
        """Held by the process that plays it."""
        return self.progress.with_name(f".seed-{self.seed}.working")

    @property
    def policy(self) -> Path:
        """The directory of the policy it learned, if it did."""
        return self._path(policies.FOLDER, "")

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
    config: PlayConfig,
    workdir: Path,
    interrupted: Interrupted = never,
    tell: Tell = silent,
    *,
    features: FeatureSet | None = None,
    search: SearchFunction | None = None,
    make_episode: Callable[..., Episode] = Episode,
) -> dict[str, Any] | None:
    """Plays a run to its end, from its last save if there is one.

    Args:
      config: how to play. The work directory must hold no other config's results.
      workdir: where the run is recorded.
      interrupted: asked after every decision.
      tell: called after every decision.
      features, search: objects in place of those that the config names, as for `Episode`.
      make_episode: makes the episode, with the arguments of `Episode`.

    Returns:
      The record, which is not made again if it is there; None if interrupted and saved.
    """
    config = dataclasses.replace(config, episode=config.episode.named_after(features, search))
    run = Run(Path(workdir), config.episode.atari.game, config.seed)
    identity = configs.settings(config.episode.identified())
    del identity["game"]  # games may share a work directory
    defaults = configs.defaults(EpisodeConfig)
    with workdirs.alone(run.lock, run.record):
        workdirs.require_same(run.workdir, identity, defaults)
        record = finished(config, run.workdir)
        if record is not None:
            return record
        started, emulators = time.time(), num_emulators(config.episode, config.emulators)
        episode = make_episode(
            config.episode, config.seed, emulators, features=features, search=search
        )
        workdirs.claim(run.workdir, identity, defaults)  # now that nothing refused the config
        return _play(config, run, episode, interrupted, tell, started, emulators)


def finished(config: PlayConfig, workdir: Path) -> dict[str, Any] | None:
    """The record of the run, if it is finished."""
    run = Run(workdir, config.episode.atari.game, config.seed)
    record = read_record(run)
    if record is not None and (record["game"], record["seed"]) != (run.game, run.seed):
        raise durable.DamagedFileError(
            run.record, f"it is of {record['game']} seed {record['seed']}"
        )
    return record


def read_record(run: Run) -> dict[str, Any] | None:
    """The record of a run, None if it is not finished; a damaged one is refused."""
    record = records.read(run.record)
    if record is None:
        return None
    for name in ("game", "seed", "score", "actions", "emulator_frames", "stop", "decisions"):
        if name not in record:
            raise durable.DamagedFileError(run.record, f"it has no {name}")
    return record


def _play(
    config: PlayConfig,
    run: Run,
    episode: Episode,
    interrupted: Interrupted,
    tell: Tell,
    started: float,
    emulators: int,
) -> dict[str, Any] | None:
    resumed_at = _resume(episode, run)
    freeze_garbage_collector()
    tell(episode.progress())
    saved = time.monotonic()
    while not episode.stop:
        if interrupted():
            durable.write_arrays(run.progress, episode.save())
            return None
        episode.advance()
        tell(episode.progress())
        if time.monotonic() - saved >= config.save_seconds:
            durable.write_arrays(run.progress, episode.save())
            saved = time.monotonic()
    durable.write_arrays(run.decisions, episode.decisions())
    episode.save_policy(run.policy)
    about = {"emulators": emulators, "resumed_at_decision": resumed_at} | episode.seconds()
    record = episode.record()
    records.write(run.record, record, provenance.host(started) | about)
    run.progress.unlink(missing_ok=True)
    return record


def freeze_garbage_collector() -> None:
    """Exempts what is loaded by now from garbage collection.

    Otherwise the collector looks through all of it now and then, which takes tens of milliseconds of a decision.
    """
    gc.collect()
    gc.freeze()


def _resume(episode: Episode, run: Run) -> int:
    """Takes up the last save; returns the number of the decision it was made at."""
    if not run.progress.exists():
        return 0
    with durable.resuming(run.progress, "delete it to play this run from the start"):
        episode.resume(durable.read_arrays(run.progress))
    return len(episode.actions)
