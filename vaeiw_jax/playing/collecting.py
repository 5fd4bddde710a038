"""Screens to learn from: those a planner saw while it played."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import configs, durable, provenance, records, workdirs
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import generated_screens, screen_store
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig, check_emulators, check_seed, num_emulators
from vaeiw_jax.progress import Interrupted, Progress, Tell, never, silent

BATCH = 1000
"""Screens that are added to the store at once, and that a crash may cost."""


@dataclass(frozen=True)
class CollectConfig:
    """How many screens, and which. Defaults: the paper's 15,000, five a decision, with B-PROST."""

    episode: EpisodeConfig = field(metadata={"defaults": {"features": "bprost"}})
    num_screens: int = field(default=15_000, metadata={"help": "how many screens to collect"})
    root_screens: int = field(
        default=1,
        metadata={"help": "1: each decision gives the screen it starts from; 0: it does not"},
    )
    drawn_screens: int = field(
        default=4, metadata={"help": "screens drawn from the nodes each decision generates"}
    )
    drop_duplicates: bool = field(
        default=False, metadata={"help": "leave out screens that are in the store already"}
    )
    seed: int = field(default=0, metadata={"help": "of the first episode; those after it count up"})
    emulators: int | None = configs.same_as(PlayConfig, "emulators")

    def __post_init__(self) -> None:
        if self.num_screens < 1:
            raise UserError(f"num_screens must be at least 1, not {self.num_screens}; try 15000")
        if self.root_screens not in (0, 1):
            raise UserError(
                f"root_screens must be 0 or 1, not {self.root_screens}: a root has one screen"
            )
        if self.drawn_screens < 0:
            raise UserError(f"drawn_screens must be 0 or more, not {self.drawn_screens}")
        if not self.root_screens + self.drawn_screens:
            raise UserError("root_screens and drawn_screens are both 0: nothing would be collected")
        if not self.episode.planner.search.looks_ahead and not self.root_screens:
            raise UserError("random play generates no nodes to draw from; use --root_screens=1")
        check_seed(self.seed)
        check_emulators(self.emulators)


def collect(
    config: CollectConfig, workdir: Path, interrupted: Interrupted = never, tell: Tell = silent
) -> dict[str, Any] | None:
    """Collects screens into the store `workdir`, from where an earlier process left off.

    Args:
      config: how to play, and what to keep. A store may grow: another `num_screens` is no other config. What its last
        decision gave beyond the number is left out for good, so that a store that grew may hold others than one made
        at once.
      workdir: the screen store.
      interrupted: asked after every decision.
      tell: called after every decision.

    Returns:
      The record, which is not made again if it is there; None if interrupted and saved.
    """
    workdir = Path(workdir)
    identity, defaults = _identity(config), configs.defaults(CollectConfig)
    with workdirs.alone_in(workdir):
        workdirs.require_same(workdir, identity, defaults)
        record = finished(config, workdir)
        if record is not None:
            return record
        path = workdir / records.COLLECTION
        sessions = provenance.Sessions(records.host_path(path))
        collector = Collector(config, workdir)
        workdirs.claim(workdir, identity, defaults)  # now that nothing refused the config
        path.unlink(missing_ok=True)  # of fewer screens
        if not collector.run(interrupted, tell):
            sessions.write()
            return None
        record = collector.record()
        records.write(path, record, sessions.including_this())
        return record


def finished(config: CollectConfig, workdir: Path) -> dict[str, Any] | None:
    """The record of the collection, if it has as many screens as the config asks for; another config's is refused."""
    path = workdir / records.COLLECTION
    record = records.read(path)
    if record is None:
        return None
    workdirs.require_same(workdir, _identity(config), configs.defaults(CollectConfig))
    screens = record.get("screens")
    if not isinstance(screens, int):
        raise durable.DamagedFileError(path, f"it has {screens!r} screens")
    return record if screens >= config.num_screens else None


def _identity(config: CollectConfig) -> dict[str, Any]:
    """What tells collections apart; a VAE is named by its digest."""
    identity = _named_by_digest(config)
    del identity["num_screens"], identity["emulators"]
    return identity


def _named_by_digest(config: CollectConfig) -> dict[str, Any]:
    return configs.settings(dataclasses.replace(config, episode=config.episode.identified()))


class Collector:
    """Plays episode after episode into a screen store.

    A batch is part of the save made before it is added to the store. After a crash between the two it is added from
    there; after a crash later, it is in the store already: the number of screens tells which.

    Args:
      config: how to play, and what to keep.
      directory: of the screen store.
    """

    def __init__(self, config: CollectConfig, directory: Path):
        self.config = config
        self.directory = directory
        self.duplicates = 0
        self.scores: list[int] = []
        self._emulators = num_emulators(config.episode, config.emulators)
        self._pending: list[np.ndarray] = []
        self._seen: set[bytes] = set()
        self._start_episode()
        if self._progress.exists():
            self._resume()
        elif screen_store.count(directory):
            raise UserError(
                f"{directory} holds screens, but {self._progress.name}, with which their collection goes on, is "
                "missing; restore it, or collect into another --workdir"
            )

    @property
    def _progress(self) -> Path:
        return self.directory / "progress.npz"

    def run(self, interrupted: Interrupted = never, tell: Tell = silent) -> bool:
        """Goes on until there are enough screens; returns False if it was interrupted before."""
        stored = screen_store.count(self.directory)
        wanted = self.config.num_screens
        tell(self._report(stored))
        while stored + len(self._pending) < wanted:
            self._keep(self._play_a_decision(), wanted - stored)
            stopping = interrupted()
            if len(self._pending) >= BATCH or stopping:
                stored = self._store()
            tell(self._report(stored))
            if stopping:
                return False
        self._store()
        return True

    def _report(self, stored: int) -> Progress:
        text = (
            f"episode {len(self.scores) + 1}, score {self.episode.score:,}, "
            f"{self.duplicates:,} duplicates"
        )
        return Progress(stored + len(self._pending), self.config.num_screens, text)

    def _start_episode(self) -> None:
        seed = self.config.seed + len(self.scores)
        self.episode = Episode(self.config.episode, seed, self._emulators)

    def _play_a_decision(self) -> list[np.ndarray]:
        """The screens a decision gives: its root's, and some of those it generated."""
        rng = np.random.default_rng([self.episode.seed, len(self.episode.actions)])
        decision = self.episode.planner.decide()
        snapshots = self.episode.planner.tree.snapshots
        new = decision.statistics.new_nodes
        number = min(self.config.drawn_screens, new)
        drawn = np.sort(rng.choice(new, number, replace=False)) if number else np.zeros(0, int)
        kept = [0] * self.config.root_screens + (len(snapshots) - new + drawn).tolist()
        screens = [snapshots[node].screen for node in kept]
        self.episode.act(decision)
        if self.episode.stop:
            self.scores.append(self.episode.score)
            self._start_episode()
        return screens

    def _keep(self, screens: list[np.ndarray], room: int) -> None:
        for screen in screens:
            digest = generated_screens.digest(screen)
            duplicate = digest in self._seen
            if len(self._pending) < room and not (duplicate and self.config.drop_duplicates):
                self._seen.add(digest)
                self._pending.append(screen)
                self.duplicates += duplicate

    def _store(self) -> int:
        """Saves everything, and adds the pending screens to the store."""
        stored = screen_store.count(self.directory)
        shape = self.episode.snapshot.screen.shape
        screens = np.stack(self._pending) if self._pending else np.zeros((0, *shape), np.uint8)
        durable.write_arrays(
            self._progress,
            {
                "stored": np.array(stored),
                "pending": screens,
                "scores": np.array(self.scores, np.int64),
                "duplicates": np.array(self.duplicates),
                "seen": np.frombuffer(b"".join(sorted(self._seen)), np.uint8).reshape(-1, 16),
                **{f"episode.{name}": array for name, array in self.episode.save().items()},
            },
        )
        return self._add(screens)

    def _add(self, screens: np.ndarray) -> int:
        self._pending = []
        if not len(screens):
            return screen_store.count(self.directory)
        return screen_store.append(self.directory, self.config.episode.atari.game, screens)

    def _resume(self) -> None:
        with durable.resuming(self._progress, "restore it, or collect into another --workdir"):
            saved = durable.read_arrays(self._progress)
            self.scores = saved["scores"].tolist()
            self.duplicates = int(saved["duplicates"])
            self._seen = {digest.tobytes() for digest in saved["seen"]}
            self._start_episode()
            self.episode.resume(durable.part(saved, "episode"))
            before, pending = int(saved["stored"]), saved["pending"]
        stored = screen_store.count(self.directory)
        if stored == before:
            self._add(pending)
        elif stored != before + len(pending):
            raise UserError(
                f"{self.directory} holds {stored:,} screens, as {screen_store.MANIFEST} says, which does not fit "
                f"{self._progress.name}; collect into another --workdir"
            )

    def record(self) -> dict[str, Any]:
        """What was collected, and how."""
        settings = _named_by_digest(self.config)
        del settings["seed"], settings["emulators"]
        return {
            "game": self.config.episode.atari.game,
            "screens": screen_store.count(self.directory),
            "duplicates": self.duplicates,
            "finished_episodes": len(self.scores),
            "scores": self.scores,
            "first_seed": self.config.seed,
            "config": settings,
        }
