"""What an evaluation has recorded so far, put in order for a report."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaeiw_jax import configs, durable, models
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import status
from vaeiw_jax.experiments.catalogue import Experiment, Method
from vaeiw_jax.experiments.evaluation import EvaluationConfig, of_workdir
from vaeiw_jax.experiments.expansion import expand
from vaeiw_jax.experiments.jobs import PLAY, TRAIN, Job
from vaeiw_jax.playing.episodes import EpisodeConfig

PAPER_STEPS = 14_250 // 64 * 100
"""Steps of training in the paper: 100 epochs of 14,250 screens in batches of 64."""


@dataclass(frozen=True)
class Played:
    """One finished run: its record, and what depends on the machine."""

    method: str
    game: str
    seed: int
    job: Job
    record: dict[str, Any]
    host: dict[str, Any]

    @property
    def score(self) -> float:
        return self.record["score"]

    @property
    def capped(self) -> bool:
        """Whether it was still going on when it reached the limit on actions."""
        return self.record["stop"] == "action_limit"

    @property
    def config(self) -> EpisodeConfig:
        return configs.from_settings(EpisodeConfig, self.record["config"])


@dataclass(frozen=True)
class Trained:
    """One trained VAE."""

    game: str
    directory: Path
    record: dict[str, Any]
    host: dict[str, Any]

    @property
    def short(self) -> bool:
        """Whether it was trained for much less than the paper's were."""
        return self.record["steps"] < 0.9 * PAPER_STEPS


class EvaluationResults:
    """Everything in a work directory.

    Args:
      workdir: of an evaluation, finished or not.
    """

    def __init__(self, workdir: Path):
        self.workdir = workdir
        config, store = of_workdir(workdir)
        self.config: EvaluationConfig = config
        self.store: Path | None = store
        self.experiments: list[Experiment] = config.experiments()
        self.jobs: Sequence[Job] = expand(config, workdir, store)
        self.status = status.of_jobs(self.jobs)
        self.played = [_played(job) for job in self._done(PLAY)]
        self.trained = {
            job.name: Trained(job.game, job.directory, durable.read_json(job.record), _host(job))
            for job in self._done(TRAIN)
        }
        self._by_method: dict[tuple[str, str], list[Played]] = {}
        for run in self.played:
            self._by_method.setdefault((run.method, run.game), []).append(run)

    def _done(self, kind: str) -> list[Job]:
        return [job for job in self.jobs if job.kind == kind and job.name in self.status.done]

    @property
    def games(self) -> list[str]:
        """Every game of every experiment, in order."""
        return sorted({game for experiment in self.experiments for game in experiment.games})

    @functools.cached_property
    def methods(self) -> dict[str, Method]:
        return {method.name: method for e in self.experiments for method in e.methods}

    def runs(self, method: str, game: str) -> list[Played]:
        """By seed."""
        return sorted(self._by_method.get((method, game), []), key=lambda run: run.seed)

    def vae_of(self, run: Played) -> Trained | None:
        """The VAE a run was played with, trained here or shipped."""
        if run.job.needs:
            return self.trained.get(run.job.needs[0])
        return _shipped(run.game) if run.record["config"]["features"].startswith("vae") else None

    def of(self, experiment: Experiment) -> "ExperimentResults":
        return ExperimentResults(self, experiment)


@dataclass(frozen=True)
class ExperimentResults:
    """What was recorded for one experiment: as many runs of its methods and games as it asks for."""

    evaluation: EvaluationResults
    experiment: Experiment

    def runs(self, method: str, game: str) -> list[Played]:
        """By seed."""
        last = self.evaluation.config.seed + self.experiment.runs_of(method)
        return [run for run in self.evaluation.runs(method, game) if run.seed < last]

    def scores(self, method: str, game: str) -> list[float]:
        return [run.score for run in self.runs(method, game)]

    def means(self, method: str) -> dict[str, float]:
        """The mean score of each game that has any."""
        scores = {game: self.scores(method, game) for game in self.experiment.games}
        return {game: sum(values) / len(values) for game, values in scores.items() if values}

    def statistic(self, method: str, game: str, name: str) -> float | None:
        """The mean over runs of a mean over decisions, such as `mean_expanded_nodes`."""
        runs = self.runs(method, game)
        if not runs:
            return None
        return sum(run.record["decisions"][name] for run in runs) / len(runs)


@functools.cache
def _shipped(game: str) -> Trained | None:
    """The VAE of a game that comes with the project; its steps are those to its best validation."""
    try:
        directory = models.model_directory("vae", game)
        description = models.model_description(directory)
        steps = (description["about"].get("validation") or {}).get("step", 0)
    except (UserError, KeyError):
        return None
    record = {
        "steps": steps,
        "model": description["weights"]["sha256"],
        "config": description["model"],
    }
    return Trained(game, directory, record, {})


def _played(job: Job) -> Played:
    method = job.name.split("/")[1]
    return Played(method, job.game, job.seed, job, durable.read_json(job.record), _host(job))


def _host(job: Job) -> dict[str, Any]:
    try:
        return durable.read_json(job.host)
    except (UserError, FileNotFoundError):
        return {}
