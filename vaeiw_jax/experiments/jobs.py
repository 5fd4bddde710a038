"""A job: collect frames, train a VAE on them, or play with it.

A job's name is where its files are, below its home: the work directory, or for frames and VAEs the store, which several
work directories may share.

    screens/<game>-<digest>           a screen store
    vaes/<game>-<latents>-<digest>    a training run
    runs/<method>/<game>/             a work directory of launch.play, with one record per seed
    logs/ locks/ running/ failed/     by job: what it said, who has it, how far it is, why it failed
"""

import json
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vaeiw_jax import configs, durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import Run

if TYPE_CHECKING:
    from vaeiw_jax.playing.collecting import CollectConfig
    from vaeiw_jax.vae.steps import TrainConfig

Config = TypeVar("Config")

COLLECT, TRAIN, PLAY = "collect", "train", "play"
KINDS = (COLLECT, TRAIN, PLAY)


@dataclass(frozen=True)
class Job:
    """A piece of work that one process does from beginning to end, or from where another left off."""

    kind: str
    name: str
    home: Path
    game: str
    config: "CollectConfig | TrainConfig | EpisodeConfig"
    seed: int = 0
    needs: tuple[str, ...] = ()
    """The names of the jobs that must be done before."""

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
        """Written last, at once: where it is, the job is done."""
        if self.kind == PLAY:
            return self.run.record
        return self.directory / {COLLECT: "collection.json", TRAIN: "trained.json"}[self.kind]

    @property
    def host(self) -> Path:
        """What depends on the machine."""
        return self.record.with_name(f"{self.record.stem}.host.json")

    def beside(self, folder: str, suffix: str) -> Path:
        """A file about the job, in one of the folders for such."""
        return self.home / folder / f"{self.name}{suffix}"

    def is_done(self) -> bool:
        """Whether its record is there, and whole."""
        try:
            return isinstance(durable.read_json(self.record), dict)
        except (UserError, FileNotFoundError):
            return False

    @property
    def timed(self) -> bool:
        """Whether its result depends on having its cores for itself."""
        episode: EpisodeConfig | None = getattr(self.config, "episode", None)
        if self.kind == PLAY:
            episode = typing.cast(EpisodeConfig, self.config)
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
            "seed": self.seed,
        }
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> "Job":
        values = json.loads(text)
        config: Any = configs.from_settings(_config_class(values["kind"]), values.pop("config"))
        return cls(**values | {"home": Path(values["home"]), "config": config})


def _config_class(kind: str) -> type:
    """What the job's config is; those who only play need not wait for JAX."""
    if kind == COLLECT:
        from vaeiw_jax.playing.collecting import CollectConfig

        return CollectConfig
    if kind == TRAIN:
        from vaeiw_jax.vae.steps import TrainConfig

        return TrainConfig
    return EpisodeConfig


def count(jobs: Iterable[Job]) -> dict[str, int]:
    """How many jobs there are of each kind."""
    kinds = [job.kind for job in jobs]
    return {kind: kinds.count(kind) for kind in KINDS}
