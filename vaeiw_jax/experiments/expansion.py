"""Experiments become jobs: collect screens, train a VAE on them or learn one online, play with it; in this order."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vaeiw_jax.configs import settings
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.jobs import COLLECT, KINDS, ONLINE, PLAY, TRAIN, Job
from vaeiw_jax.experiments.methods import Method
from vaeiw_jax.playing.runs import PlayConfig
from vaeiw_jax.vae.config import ModelConfig


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
                seeds = range(config.seed, config.seed + experiment.runs_of(method.name))
                for job in (*chain, *_play_jobs(config, method, game, seeds, workdir, chain)):
                    jobs[job.name] = job
    return sorted(jobs.values(), key=lambda job: (KINDS.index(job.kind), job.seed))


def _vae_jobs(config: EvaluationConfig, method: Method, game: str, store: Path) -> list[Job]:
    """The jobs that make the VAE a method plays with, in order."""
    if method.vae is None or config.vae == "shipped":
        return []
    if method.online:
        learning = config.learning_online(method, game)
        return [Job(ONLINE, f"online/{game}-{_digest(learning)}", store, game, learning)]
    collecting = config.collecting(game, dict(method.learning))
    collect = Job(COLLECT, f"screens/{game}-{_digest(collecting)}", store, game, collecting)
    training = config.training(method.vae, str(collect.directory), dict(method.learning))
    portable = dataclasses.replace(training, screens=collect.name)
    name = f"vaes/{game}-{_describe(method.vae)}-{_digest(portable)}"
    return [collect, Job(TRAIN, name, store, game, training, needs=(collect.name,))]


def _play_jobs(
    config: EvaluationConfig,
    method: Method,
    game: str,
    seeds: Sequence[int],
    workdir: Path,
    chain: list[Job],
) -> list[Job]:
    features = f"vae:{chain[-1].directory}" if chain else None
    episode = config.episode(method, game, features)
    needs = tuple(job.name for job in chain[-1:])
    names = {seed: f"runs/{method.name}/{game}/seed-{seed}" for seed in seeds}
    return [
        Job(PLAY, names[seed], workdir, game, PlayConfig(episode, seed), needs) for seed in seeds
    ]


def _describe(model: ModelConfig) -> str:
    return f"{model.latent}-{model.latent_kind}-beta{model.beta:g}"


def _digest(config: Any) -> str:
    return hashlib.sha256(json.dumps(settings(config), sort_keys=True).encode()).hexdigest()[:8]
