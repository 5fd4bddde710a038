"""A job: collect screens, train a VAE on them, learn one online, or play with it.

A job's name is where its files are, below its home: the work directory, or for screens and VAEs the store, which
several work directories may share.

    screens/<game>-<digest>           a screen store
    vaes/<game>-<latents>-<digest>    a training run
    online/<game>-<digest>            a VAE that learned while it played
    runs/<method>/<game>/             a work directory of games, with one record per seed
    logs/ running/ failed/            by job: what it printed, how far it is, why it failed
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from vaeiw_jax import configs, records
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing.runs import PlayConfig, Run
from vaeiw_jax.progress import Interrupted, Tell, never, silent

if TYPE_CHECKING:
    from vaeiw_jax.experiments.online_config import OnlineConfig
    from vaeiw_jax.playing.collecting import CollectConfig
    from vaeiw_jax.vae.config import TrainConfig

    Config: TypeAlias = CollectConfig | TrainConfig | OnlineConfig | PlayConfig

KINDS = COLLECT, TRAIN, ONLINE, PLAY = "collect", "train", "online", "play"

Record = dict[str, Any]


class Kind(NamedTuple):
    """What jobs of a kind have in common."""

    config_class: type[Any]
    do: Callable[[Any, Path, Interrupted, Tell], Record | None]
    """(config, workdir, interrupted, tell) -> record, or None if interrupted and saved."""
    finished: Callable[[Any, Path], Record | None]
    """(config, workdir) -> record, if it is there and whole; a damaged one is refused."""


def _collect() -> Kind:
    from vaeiw_jax.playing import collecting

    return Kind(collecting.CollectConfig, collecting.collect, collecting.finished)


def _train() -> Kind:
    from vaeiw_jax.training import loop
    from vaeiw_jax.vae.config import TrainConfig

    return Kind(TrainConfig, loop.train, loop.finished)


def _learn_online() -> Kind:
    from vaeiw_jax.experiments import online, online_config

    return Kind(online_config.OnlineConfig, online.learn, online.finished)


def _play() -> Kind:
    from vaeiw_jax.playing import runs

    return Kind(PlayConfig, runs.play, runs.finished)


_KINDS = {COLLECT: _collect, TRAIN: _train, ONLINE: _learn_online, PLAY: _play}
"""Loaded when a job of the kind is done: only training loads JAX, which takes seconds."""

_RECORDS = {COLLECT: records.COLLECTION, TRAIN: records.TRAINING, ONLINE: records.ONLINE}


@dataclass(frozen=True)
class Job:
    """A piece of work that one process does from beginning to end, or from where another left off."""

    kind: str
    name: str
    home: Path
    game: str
    config: "Config"
    needs: tuple[str, ...] = ()
    """The names of the jobs that must be done before."""

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def method(self) -> str:
        """Of a job that plays."""
        return self.name.split("/")[1]

    @property
    def directory(self) -> Path:
        """Where it works."""
        path = self.home / self.name
        return path.parent if self.kind == PLAY else path

    @property
    def run(self) -> Run:
        """Of a job that plays."""
        return Run(self.directory, self.game, self.seed)

    @property
    def record(self) -> Path:
        """Written last, at once: where it is, and is whole, the job is done."""
        if self.kind == PLAY:
            return self.run.record
        return self.directory / _RECORDS[self.kind]

    @property
    def host(self) -> Path:
        """What depends on the machine, and the digest of the record."""
        return records.host_path(self.record)

    @property
    def disposable(self) -> tuple[Path, ...]:
        """Files without which the job comes to the same record, if only later."""
        return (self.record, self.run.progress) if self.kind == PLAY else (self.record,)

    def beside(self, folder: str, suffix: str) -> Path:
        """A file about the job, in one of the folders for such."""
        return self.home / folder / f"{self.name}{suffix}"

    def do(self, interrupted: Interrupted = never, tell: Tell = silent) -> Record | None:
        """Does the job, from where an earlier process left off; None if interrupted and saved."""
        return _KINDS[self.kind]().do(self.config, self.directory, interrupted, tell)

    def is_done(self) -> bool:
        """Whether its record is there, and whole."""
        if not self.record.exists():
            return False
        try:
            return _KINDS[self.kind]().finished(self.config, self.directory) is not None
        except (UserError, FileNotFoundError):
            return False

    @property
    def trains(self) -> bool:
        """Whether it wants an accelerator, if there is one."""
        return self.kind in (TRAIN, ONLINE)

    @property
    def timed(self) -> bool:
        """Whether its result depends on having its cores for itself."""
        playing = getattr(self.config, "play", self.config)  # what learns online plays as well
        episode = getattr(playing, "episode", None)
        if episode is None or not episode.planner.search.looks_ahead:
            return False
        return episode.planner.budget_seconds is not None

    def to_json(self) -> str:
        values = {
            "kind": self.kind,
            "name": self.name,
            "home": str(self.home),
            "game": self.game,
            "config": configs.settings(self.config),
        }
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> "Job":
        values = json.loads(text)
        config_class = _KINDS[values["kind"]]().config_class
        config = configs.from_settings(config_class, values.pop("config"))
        return cls(**values | {"home": Path(values["home"]), "config": config})


def count(jobs: Iterable[Job]) -> dict[str, int]:
    """How many jobs there are of each kind."""
    kinds = [job.kind for job in jobs]
    return {kind: kinds.count(kind) for kind in KINDS}
