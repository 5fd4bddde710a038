"""Experiments become jobs: collect frames, train a VAE on them, play with it; each with what it needs first.

A job's name is where its files are, below its home: the work directory, or for frames and VAEs the store, which several
work directories may share.

    frames/<game>-<digest>                       a frame store
    vaes/<game>-<latents>-<digest>               a training run
    runs/<method>/<game>/                        a work directory of launch.play, with one record per seed
    logs/ locks/ running/ failed/                by job: what it said, who has it, how far it is, why it failed
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaeiw_jax import durable
from vaeiw_jax.collecting import CollectConfig
from vaeiw_jax.episodes import EpisodeConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import catalogue
from vaeiw_jax.experiments.catalogue import Method
from vaeiw_jax.experiments.evaluation import EvaluationConfig, from_settings
from vaeiw_jax.runs import Run, settings
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.steps import TrainConfig

COLLECT, TRAIN, PLAY = "collect", "train", "play"
KINDS = (COLLECT, TRAIN, PLAY)
_CONFIGS: dict[str, type] = {COLLECT: CollectConfig, TRAIN: TrainConfig, PLAY: EpisodeConfig}


@dataclass(frozen=True)
class Job:
    """A piece of work that one process does from beginning to end, or from where another left off."""

    kind: str
    name: str
    home: Path
    game: str
    config: CollectConfig | TrainConfig | EpisodeConfig
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
        if isinstance(self.config, TrainConfig):
            return False
        episode = self.config.episode if isinstance(self.config, CollectConfig) else self.config
        return episode.planner.planner != "random" and episode.planner.budget_seconds is not None

    def to_json(self) -> str:
        values = {
            "kind": self.kind,
            "name": self.name,
            "home": str(self.home),
            "game": self.game,
            "config": settings(self.config),
            "seed": self.seed,
        }
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str) -> "Job":
        values = json.loads(text)
        config = from_settings(_CONFIGS[values["kind"]], values.pop("config"))
        return cls(**values | {"home": Path(values["home"]), "config": config})


def expand(config: EvaluationConfig, workdir: Path, store: Path | None = None) -> list[Job]:
    """All jobs of an evaluation, each once, however many experiments ask for it.

    Those others wait for come first; of those that play, first seeds come first, so that early reports cover all games.
    """
    workdir, store = workdir.absolute(), (store or workdir).absolute()
    jobs: dict[str, Job] = {}
    for experiment in config.experiments():
        for game in experiment.games:
            for method in experiment.methods:
                chain = _vae_jobs(config, method, game, store)
                for seed in range(config.seed, config.seed + experiment.runs):
                    play = _play_job(config, method, game, seed, workdir, chain)
                    jobs |= {job.name: job for job in (*chain, play)}
    return sorted(jobs.values(), key=lambda job: (KINDS.index(job.kind), job.seed))


def _vae_jobs(config: EvaluationConfig, method: Method, game: str, store: Path) -> list[Job]:
    """The jobs that make the VAE a method plays with, in order."""
    if method.vae is None or config.vae == "shipped":
        return []
    collect_config = _collect_config(config, game)
    collect = Job(COLLECT, f"frames/{game}-{_digest(collect_config)}", store, game, collect_config)
    train_config = TrainConfig(
        frames=str(collect.directory),
        model=method.vae,
        epochs=config.epochs,
        batch_size=config.batch_size,
    )
    portable = dataclasses.replace(train_config, frames=collect.name)
    name = f"vaes/{game}-{_describe(method.vae)}-{_digest(portable)}"
    return [collect, Job(TRAIN, name, store, game, train_config, needs=(collect.name,))]


def _collect_config(config: EvaluationConfig, game: str) -> CollectConfig:
    """The paper's way: RolloutIW(1) with B-PROST features."""
    nodes = config.collect_nodes or (config.nodes[0] if config.nodes else None)
    budget = {} if nodes is None else {"budget_nodes": nodes, "budget_seconds": None}
    play = from_settings(
        EpisodeConfig, dict(catalogue.ROLLOUT_IW_RA.settings) | budget | {"game": game}
    )
    return CollectConfig(play, num_frames=config.num_frames)


def _play_job(
    config: EvaluationConfig, method: Method, game: str, seed: int, workdir: Path, chain: list[Job]
) -> Job:
    features = f"vae:{chain[-1].directory}" if chain else None
    return Job(
        PLAY,
        f"runs/{method.name}/{game}/seed-{seed}",
        workdir,
        game,
        config.episode(method, game, features),
        seed,
        needs=tuple(job.name for job in chain[-1:]),
    )


def _describe(model: ModelConfig) -> str:
    return f"{model.latent}-{model.latent_kind}-beta{model.beta:g}"


def _digest(config: Any) -> str:
    return hashlib.sha256(json.dumps(settings(config), sort_keys=True).encode()).hexdigest()[:8]


def count(jobs: Iterable[Job]) -> dict[str, int]:
    """How many jobs there are of each kind."""
    kinds = [job.kind for job in jobs]
    return {kind: kinds.count(kind) for kind in KINDS}
