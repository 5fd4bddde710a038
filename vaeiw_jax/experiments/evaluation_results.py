"""What an evaluation has recorded so far, put in order for a report."""

import dataclasses
import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vaeiw_jax import configs, durable, models
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import results_table, status
from vaeiw_jax.experiments.catalogue import Experiment
from vaeiw_jax.experiments.evaluation import EvaluationConfig, of_workdir
from vaeiw_jax.experiments.expansion import expand
from vaeiw_jax.experiments.jobs import ONLINE, PLAY, TRAIN, Job
from vaeiw_jax.experiments.methods import Method
from vaeiw_jax.planning.search import SOLVED
from vaeiw_jax.playing.runs import PlayConfig

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
        """Whether it was still going on when it reached the limit on actions or emulator frames."""
        return self.record["stop"] in ("action_limit", "frame_limit")


@dataclass(frozen=True)
class Trained:
    """One trained VAE."""

    game: str
    directory: Path
    record: dict[str, Any]
    host: dict[str, Any]

    @property
    def short(self) -> bool:
        """Whether it was trained for much less than the paper's were. The paper has none for many games."""
        of_many = len(self.record.get("games", ())) > 1
        return not of_many and self.record["steps"] < 0.9 * PAPER_STEPS


@dataclass(frozen=True)
class EvaluationResults:
    """What an evaluation came to: everything in its work directory, or what was published of it."""

    workdir: Path
    """Of the evaluation, finished or not."""
    config: EvaluationConfig
    store: Path | None
    """Of screens and VAEs, if that is elsewhere."""
    status: status.Status
    played: list[Played]
    trained: dict[str, Trained]
    """By the job's name."""
    learned: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The curves of learning while playing, by the job's name; `online.COLUMNS` tells what a line has."""

    @classmethod
    def of_workdir(cls, workdir: Path) -> "EvaluationResults":
        config, store = of_workdir(workdir)
        now = status.of_jobs(expand(config, workdir, store))
        done = {
            kind: [job for job in now.jobs if job.kind == kind and job.name in now.done]
            for kind in (PLAY, TRAIN, ONLINE)
        }
        trained = {
            job.name: Trained(job.game, job.directory, durable.read_json(job.record), _host(job))
            for job in done[TRAIN]
        }
        learned = {job.name: durable.read_json(job.record)["curve"] for job in done[ONLINE]}
        played = [_played(job) for job in done[PLAY]]
        return cls(workdir, config, store, now, played, trained, learned)

    @classmethod
    def published(
        cls, directory: Path, config: EvaluationConfig, workdir: Path
    ) -> "EvaluationResults":
        """Of the results that come with the project.

        Args:
          directory: where they are.
          config: of the evaluation they are of.
          workdir: where runs are played again, for films.
        """
        wanted = expand(config, workdir)
        keys = {results_table.key_of(job) for job in wanted if job.kind == PLAY}
        lines = [line for line in results_table.read(directory) if line.key in keys]
        jobs = results_table.jobs_again(directory, lines, workdir)
        played = [
            Played(*line.key, job, *_record(line, job))
            for line, job in zip(lines, jobs, strict=True)
        ]
        done = {run.job.name for run in played}
        now = status.Status(wanted, done, running={}, failed={})
        return cls(workdir, config, None, now, played, {})

    @functools.cached_property
    def experiments(self) -> list[Experiment]:
        return self.config.experiments()

    @functools.cached_property
    def _by_method(self) -> dict[tuple[str, str], list[Played]]:
        found: dict[tuple[str, str], list[Played]] = {}
        for run in self.played:
            found.setdefault((run.method, run.game), []).append(run)
        return found

    @property
    def games(self) -> list[str]:
        """Every game of every experiment, in order."""
        return sorted({game for experiment in self.experiments for game in experiment.games})

    @functools.cached_property
    def methods(self) -> dict[str, Method]:
        return {method.name: method for e in self.experiments for method in e.methods}

    @functools.cached_property
    def titles(self) -> dict[str, str]:
        """Of the methods, by name; with the name where experiments give several methods one title."""
        titles = [method.title for method in self.methods.values()]
        return {
            name: f"{method.title} ({name})" if titles.count(method.title) > 1 else method.title
            for name, method in self.methods.items()
        }

    def runs(self, method: str, game: str) -> list[Played]:
        """By seed."""
        return sorted(self._by_method.get((method, game), []), key=lambda run: run.seed)

    def vae_of(self, run: Played) -> Trained | None:
        """The VAE a run was played with, trained here or shipped."""
        if run.job.needs:
            return self.trained.get(run.job.needs[0])
        return _shipped(run.record["config"]["features"])

    def curve_of(self, run: Played) -> list[dict[str, Any]] | None:
        """How the VAE learned that a run was played with, if it did while it played."""
        return self.learned.get(run.job.needs[0]) if run.job.needs else None

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

    def begun(self) -> "ExperimentResults":
        """Of those methods alone that have runs, so that what is not yet complete can be read."""
        methods = tuple(each for each in self.experiment.methods if self.means(each.name))
        return dataclasses.replace(
            self, experiment=dataclasses.replace(self.experiment, methods=methods)
        )

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
def _shipped(features: str) -> Trained | None:
    """The VAE that comes with the project and that features name, if they do; its steps are those to its best
    validation."""
    name = models.shipped_by_digest().get(features.partition(":")[2])
    if name is None:
        return None
    directory = models.SHIPPED / name
    description = models.model_description(directory)
    steps = (description["about"].get("validation") or {}).get("step", 0)
    record = {
        "steps": steps,
        "games": models.trained_on(directory),
        "model": description["weights"]["sha256"],
        "config": description["model"],
    }
    return Trained(name, directory, record, {})


def _record(line: results_table.Line, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record and the host file of a published run, as far as its line tells.

    Args:
      line: of the run.
      job: that plays it again.
    """
    assert isinstance(job.config, PlayConfig)
    values = dataclasses.asdict(line)
    means = {name: value for name, value in values.items() if name.startswith("mean_")}
    identified = job.config.episode.identified()
    decisions = means | {"ended": {SOLVED: line.solved}}
    record = values | {"decisions": decisions, "config": configs.settings(identified)}
    versions = {"vaeiw_jax": line.version}
    return record, {"processor": line.processor, "seconds": line.seconds, "versions": versions}


def _played(job: Job) -> Played:
    return Played(job.method, job.game, job.seed, job, durable.read_json(job.record), _host(job))


def _host(job: Job) -> dict[str, Any]:
    try:
        return durable.read_json(job.host)
    except (UserError, FileNotFoundError):
        return {}
