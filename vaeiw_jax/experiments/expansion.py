"""Experiments become jobs: collect frames, train a VAE on them, play with it; each with what it needs first."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vaeiw_jax.configs import from_settings, settings
from vaeiw_jax.experiments import catalogue
from vaeiw_jax.experiments.catalogue import Method
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.jobs import COLLECT, KINDS, PLAY, TRAIN, Job
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.steps import TrainConfig


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
                seeds = range(config.seed, config.seed + experiment.runs)
                for job in (*chain, *_play_jobs(config, method, game, seeds, workdir, chain)):
                    jobs[job.name] = job
    return sorted(jobs.values(), key=lambda job: (KINDS.index(job.kind), job.seed))


def _vae_jobs(config: EvaluationConfig, method: Method, game: str, store: Path) -> list[Job]:
    """The jobs that make the VAE a method plays with, in order."""
    if method.vae is None or config.vae == "shipped":
        return []
    collect_config = _collect_config(config, game)
    collect = Job(COLLECT, f"screens/{game}-{_digest(collect_config)}", store, game, collect_config)
    train_config = TrainConfig(
        screens=str(collect.directory),
        model=method.vae,
        epochs=config.epochs,
        batch_size=config.batch_size,
    )
    portable = dataclasses.replace(train_config, screens=collect.name)
    name = f"vaes/{game}-{_describe(method.vae)}-{_digest(portable)}"
    return [collect, Job(TRAIN, name, store, game, train_config, needs=(collect.name,))]


def _collect_config(config: EvaluationConfig, game: str) -> CollectConfig:
    """The paper's way: RolloutIW(1) with B-PROST features."""
    nodes = config.collect_nodes or (config.nodes[0] if config.nodes else None)
    budget = {} if nodes is None else {"budget_nodes": nodes, "budget_seconds": None}
    play = from_settings(
        EpisodeConfig, dict(catalogue.ROLLOUT_IW_RA.settings) | budget | {"game": game}
    )
    return CollectConfig(play, num_screens=config.num_screens)


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
    return [Job(PLAY, names[seed], workdir, game, episode, seed, needs) for seed in seeds]


def _describe(model: ModelConfig) -> str:
    return f"{model.latent}-{model.latent_kind}-beta{model.beta:g}"


def _digest(config: Any) -> str:
    return hashlib.sha256(json.dumps(settings(config), sort_keys=True).encode()).hexdigest()[:8]
