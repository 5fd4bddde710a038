"""Records written by hand, so that what a report must say is known."""

from collections.abc import Callable
from pathlib import Path

from vaeiw_jax import durable
from vaeiw_jax.configs import settings
from vaeiw_jax.experiments import online
from vaeiw_jax.experiments.evaluation import EvaluationConfig, claim
from vaeiw_jax.experiments.expansion import expand
from vaeiw_jax.experiments.jobs import ONLINE, PLAY, TRAIN
from vaeiw_jax.provenance import host

Score = Callable[[str, str, int], float | None]
"""Of a method, a game and a seed; None for a run that is not finished."""


def write(
    workdir: Path,
    config: EvaluationConfig,
    score: Score,
    capped: Callable[[str, str], bool] = lambda method, game: False,
    steps: int = 22_200,
    nodes: Callable[[str, str], float] = lambda method, game: 100.0,
    atoms: Callable[[str, str], float] = lambda method, game: 500.0,
) -> None:
    """An evaluation that is finished, but for the runs without a score."""
    claim(config, workdir)
    for job in expand(config, workdir):
        if job.kind == TRAIN:
            made = {"game": job.game, "model": "ab" * 32, "steps": steps, "validation": None}
            durable.write_json(job.record, made | {"config": settings(job.config)})
        elif job.kind == ONLINE:
            line = dict.fromkeys(online.COLUMNS, 1) | {"features": "bprost", "stop": "game_over"}
            curve = [line, line | {"round": 2, "simulator_calls": 2}]
            learned = {"game": job.game, "curve": curve, "config": settings(job.config)}
            durable.write_json(job.record, learned)
        elif job.kind != PLAY:
            collected = {"game": job.game, "screens": 15_000, "config": settings(job.config)}
            durable.write_json(job.record, collected)
        else:
            method = job.name.split("/")[1]
            points = score(method, job.game, job.seed)
            if points is None:
                continue
            decisions = {
                "mean_new_nodes": nodes(method, job.game),
                "mean_expanded_nodes": nodes(method, job.game),
                "mean_max_rollout_length": 20.0,
                "mean_atoms_per_node": atoms(method, job.game),
            }
            durable.write_json(
                job.record,
                {
                    "game": job.game,
                    "seed": job.seed,
                    "score": points,
                    "actions": 1000,
                    "emulator_frames": 15_000,
                    "stop": "action_limit" if capped(method, job.game) else "game_over",
                    "decisions": decisions,
                    "config": settings(job.config.episode),
                },
            )
            durable.write_json(job.host, host(0.0))
