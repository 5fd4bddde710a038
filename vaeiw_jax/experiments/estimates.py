"""How long jobs take: at most, before they are run; as expected, while they are."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from vaeiw_jax import durable, features
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments.jobs import PLAY, Job
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig
from vaeiw_jax.vae.config import RANDOM, TrainConfig

if TYPE_CHECKING:
    from vaeiw_jax.experiments.online_config import OnlineConfig

ACTION_SECONDS = 0.003
"""Seconds an action takes where nothing is planned."""
START_SECONDS = 5.0
"""Seconds a worker takes to load the libraries and compile."""
IMAGE_SECONDS = 0.13
"""Seconds of training an image takes on one core; a GPU takes a hundredth."""


def at_most(jobs: Sequence[Job], cpus: int = 1) -> dict[str, float]:
    """The seconds of each job, by name, if its games go on to the limit on actions.

    Args:
      jobs: all of them.
      cpus: cores that each job has.
    """
    screens = {
        job.name: job.config.num_screens for job in jobs if isinstance(job.config, CollectConfig)
    }

    def seconds(job: Job) -> float:
        if isinstance(job.config, TrainConfig):
            return training(job.config, sum(screens[need] for need in job.needs), cpus)
        if isinstance(job.config, CollectConfig):
            return collecting(job.config)
        if isinstance(job.config, PlayConfig):
            return playing(job.config.episode)
        return learning_online(job.config, cpus)

    return {job.name: seconds(job) for job in jobs}


def collecting(config: CollectConfig) -> float:
    decisions = math.ceil(config.num_screens / (config.root_screens + config.drawn_screens))
    return START_SECONDS + decisions * _decision(config.episode)


def training(config: TrainConfig, num_screens: int, cpus: int) -> float:
    images = num_screens * (1 - config.validation_share) * config.epochs
    return START_SECONDS + images * IMAGE_SECONDS / cpus


def playing(config: EpisodeConfig) -> float:
    """At most: a game may end before the limit on actions."""
    return START_SECONDS + config.most_actions * _decision(config)


def learning_online(config: "OnlineConfig", cpus: int) -> float:
    """Without an accelerator, if every game goes on to its limit."""
    episode = config.play.episode
    nodes = episode.planner.budget_nodes or config.simulator_calls
    longest = min(config.simulator_calls, nodes * episode.most_actions)
    rounds = math.ceil(config.simulator_calls / min(longest, config.episode_calls or longest))
    sizes = [min(config.max_screens, config.added_screens * n) for n in range(1, rounds + 1)]
    measured = 0 if config.choose_by == RANDOM else config.simulator_calls / 2
    if config.candidates:
        measured = min(measured, rounds * config.candidates)
    forward = IMAGE_SECONDS / 3 / cpus  # where training goes back as well
    return (
        config.simulator_calls * features.lookup("vae").node_seconds
        + measured * forward
        + sum(training(config.train, size, cpus) for size in sizes)
        + config.evaluations * playing(episode)
    )


def _decision(config: EpisodeConfig) -> float:
    if not config.planner.search.looks_ahead:
        return ACTION_SECONDS
    limits = [config.planner.budget_seconds or math.inf]
    if config.planner.budget_nodes:
        node_seconds = features.lookup(config.features.features).node_seconds
        limits.append(config.planner.budget_nodes * node_seconds)
    return ACTION_SECONDS + min(limits)


def wall_clock(jobs: Sequence[Job], seconds: Mapping[str, float], at_once: int) -> float:
    """Seconds at most, with `at_once` jobs at once, if no place stays idle while a job is ready.

    Graham's bound: whenever a place is idle, the longest chain of jobs that need one another gets shorter.
    """
    ends: dict[str, float] = {}
    for job in jobs:  # those others need come first, or are done
        waits = max((ends.get(need, 0.0) for need in job.needs), default=0.0)
        ends[job.name] = waits + seconds[job.name]
    chain = max(ends.values(), default=0.0)
    return (sum(seconds[job.name] for job in jobs) - chain) / at_once + chain


def taken(job: Job) -> float | None:
    """The seconds a finished job took, as its host file says."""
    try:
        host = durable.read_json(job.host)
        spent = host.get("seconds")
        if spent:  # by its decisions, those before an interruption included
            return float(spent)
        began, ended = (datetime.fromisoformat(host[name]) for name in ("started", "ended"))
        return max(1.0, (ended - began).total_seconds())
    except (UserError, FileNotFoundError, KeyError, TypeError, ValueError):
        return None


def expected(jobs: Sequence[Job], done: set[str], at_once: int) -> float:
    """Seconds left, if the jobs left take as long as the finished ones of their kind and method."""
    limits = at_most(jobs)
    spent: dict[str, list[float]] = {}
    left: list[Job] = []
    for job in jobs:
        if job.name not in done:
            left.append(job)
        elif (seconds := taken(job)) is not None:
            spent.setdefault(_group(job), []).append(seconds)
    means = {group: sum(values) / len(values) for group, values in spent.items()}
    return sum(means.get(_group(job), limits[job.name]) for job in left) / max(1, at_once)


def _group(job: Job) -> str:
    """Jobs that take about as long."""
    return job.method if job.kind == PLAY else job.kind


def duration(seconds: float) -> str:
    """Seconds in words, such as `3.5 hours`."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return (
                f"{seconds / length:,.0f} {unit}"
                if seconds >= 10 * length
                else f"{seconds / length:.1f} {unit}"
            )
    return f"{seconds:.0f} seconds"
