"""Runs on disk: where an episode's files are, playing it to the end, and going on after a crash."""

import contextlib
import dataclasses
import fcntl
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from vaeiw_jax import atari, durable
from vaeiw_jax.episodes import Episode, EpisodeConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import Decision

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
    """
    how = settings(config.identified())
    del how["game"]  # games may share a work directory
    claim(run.workdir, how)
    if run.record.exists():
        return durable.read_json(run.record)
    started = time.time()
    episode = Episode(config, run.seed, emulators)
    resumed_at = _resume(episode, run)
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
        host(command, started)
        | {"emulators": emulators, "resumed_at_decision": resumed_at}
        | episode.seconds(),
    )
    record = episode.record()
    durable.write_json(run.record, record)
    run.progress.unlink(missing_ok=True)
    return record


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


def claim(workdir: Path, mine: dict[str, Any]) -> None:
    """Marks a work directory as that of these settings, or refuses one that is another's."""
    path = workdir / "config.json"
    if not path.exists():
        durable.write_json(path, mine)
        return
    theirs = durable.read_json(path)
    for name in mine | theirs:
        if mine.get(name) != theirs.get(name):
            raise UserError(
                f"{workdir} holds results with {name}={theirs.get(name)}, and this run has "
                f"{name}={mine.get(name)}; choose another --workdir"
            )


@contextlib.contextmanager
def alone_in(workdir: Path) -> Iterator[None]:
    """Refuses a work directory that another process works in; however this one ends, it is free again."""
    workdir.mkdir(parents=True, exist_ok=True)
    with (workdir / ".working").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another process is working in {workdir}; wait for it, or choose another --workdir"
            ) from None
        yield


def settings(config: Any) -> dict[str, Any]:
    """A config dataclass by flag name, those of the configs inside it included."""
    flat: dict[str, Any] = {}
    for name in (entry.name for entry in dataclasses.fields(config)):
        value = getattr(config, name)
        flat |= settings(value) if dataclasses.is_dataclass(value) else {name: value}
    return flat


def host(command: list[str] | None, started: float) -> dict[str, Any]:
    """Where, when, how and with what something was made."""
    return {
        "command": command,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": platform.node(),
        "platform": platform.platform(),
        "processor": processor(),
        "threads": usable_cores(),
        "versions": {"python": platform.python_version()}
        | {name: metadata.version(name) for name in ("vaeiw_jax", "ale-py", "numpy", "numba")},
    }


def note_session(path: Path, command: list[str] | None, started: float, **about: Any) -> None:
    """Adds this process to those that worked on something, in a file that tells the seconds of all of them."""
    before = durable.read_json(path)["sessions"] if path.exists() else []
    seconds = {"seconds": round(time.time() - started, 1)}
    sessions = [*before, host(command, started) | seconds | about]
    total = round(sum(session["seconds"] for session in sessions), 1)
    durable.write_json(path, {"seconds": total, "sessions": sessions})


def usable_cores() -> int:
    """How many cores this process may keep busy: those of its affinity, or fewer if its cgroup is rationed."""
    affine = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    ration = Path("/sys/fs/cgroup/cpu.max")
    if ration.exists():
        quota, _, period = ration.read_text().partition(" ")
        if quota != "max":
            return max(1, min(affine, int(quota) // int(period)))
    return affine


def processor() -> str:
    """The processor's name, as well as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
