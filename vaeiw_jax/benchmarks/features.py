"""What each feature set costs per screen: one never seen before, and one seen again."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from vaeiw_jax import features
from vaeiw_jax.atari import AtariConfig, Snapshot
from vaeiw_jax.benchmarks import models
from vaeiw_jax.benchmarks.config import BenchmarkConfig
from vaeiw_jax.benchmarks.measurements import Measurements, geometric_mean
from vaeiw_jax.features import FeaturesConfig, FeatureSetEntry, Setting
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig

SUITE, PART = "features", "milliseconds"


def measure(config: BenchmarkConfig, workdir: Path, results: Measurements) -> None:
    """Measures the games that are not in the results yet."""
    with tqdm(results.missing(SUITE, PART, config.game_names), desc=SUITE, unit=" games") as bar:
        for game in bar:
            bar.set_postfix_str(game)
            vae, origin = models.find_or_train(game, workdir / "vaes")
            pairs = _lookahead(game, config.decisions)
            sets = {entry.name: vae if entry.takes_directory else entry.name for entry in _sets()}
            measured = {name: _milliseconds(game, which, pairs) for name, which in sets.items()}
            results.put(SUITE, PART, game, measured | {"screens": len(pairs), "vae origin": origin})


def _sets() -> list[FeatureSetEntry]:
    return [entry for entry in features.FEATURE_SETS.values() if entry.benchmarked]


def _lookahead(game: str, decisions: int) -> list[tuple[Snapshot, Snapshot]]:
    """Snapshots a planner generates, in order, no two screens alike, each with its parent's."""
    planner = PlannerConfig(budget_seconds=None, budget_nodes=60)
    episode = Episode(EpisodeConfig(AtariConfig(game), planner, FeaturesConfig("basic")), seed=0)
    distinct: dict[bytes, tuple[Snapshot, Snapshot]] = {}
    for _ in range(decisions):
        if episode.stop:
            break
        decision = episode.planner.decide()
        tree = episode.planner.tree
        for node in range(tree.size - decision.statistics.new_nodes, tree.size):
            seen = tree.snapshots[node]
            distinct.setdefault(seen.screen.tobytes(), (seen, tree.snapshots[tree.parent[node]]))
        episode.act(decision)
    return list(distinct.values())


def _milliseconds(game: str, name: str, pairs: list[tuple[Snapshot, Snapshot]]) -> dict[str, float]:
    chosen = features.create(FeaturesConfig(name), Setting(game, pairs[0][0].screen.shape))
    chosen.atoms(*pairs[-1])  # whatever is compiled is compiled now
    new: list[float] = []
    again: list[float] = []
    for taken in (new, again):
        for seen, previous in pairs[:-1]:
            start = time.perf_counter()
            atoms = chosen.atoms(seen, previous)
            taken.append(time.perf_counter() - start)
    return {
        "new": 1e3 * float(np.mean(new)),
        "again": 1e3 * float(np.mean(again)),
        "atoms": len(atoms),
    }


def means(results: Measurements) -> dict[str, dict[str, float]]:
    """By feature set, the geometric means over the games."""
    games: dict[str, Any] = results.of(SUITE, PART)
    return {
        name: {
            which: geometric_mean(game[name][which] for game in games.values())
            for which in ("new", "again")
        }
        for name in (entry.name for entry in _sets())
        if all(name in game for game in games.values())
    }
