"""What each feature set costs per screen: one never seen before, and one seen again.

A VAE's encoders are measured apart: `patches`, screen by screen in the order of the lookahead, for what it costs
depends on the screens before; and `xla` in batches, for what it costs depends on their size.
"""

import time
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from vaeiw_jax import features
from vaeiw_jax.atari import AtariConfig, Snapshot
from vaeiw_jax.benchmarks.config import BenchmarkConfig
from vaeiw_jax.benchmarks.measurements import Measurements, geometric_mean
from vaeiw_jax.features import FeaturesConfig, FeatureSetEntry, Setting, encoders
from vaeiw_jax.features.encoders import ScreenEncoder
from vaeiw_jax.models import load_model, model_directory
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.vae import codes

SUITE, PART, ENCODERS = "features", "milliseconds", "encoders"
XLA_BATCHES = 4
"""Batches of the largest size that `xla` is timed with."""


def measure(config: BenchmarkConfig, results: Measurements) -> None:
    """Measures the games that are not in the results yet."""
    with tqdm(results.missing(SUITE, PART, config.game_names), desc=SUITE, unit=" games") as bar:
        for game in bar:
            bar.set_postfix_str(game)
            pairs = _lookahead(game, config.decisions)
            measured = {entry.name: _milliseconds(game, entry.name, pairs) for entry in _sets()}
            model = model_directory("vae", game).name
            results.put(SUITE, PART, game, measured | {"screens": len(pairs), "vae origin": model})
    _measure_encoders(config, results)


def _measure_encoders(config: BenchmarkConfig, results: Measurements) -> None:
    """Milliseconds per new screen of both encoders, `xla` with every batch size it is compiled for."""
    with tqdm(results.missing(SUITE, ENCODERS, config.game_names), ENCODERS, unit=" games") as bar:
        for game in bar:
            bar.set_postfix_str(game)
            screens = np.stack([seen.screen for seen, _ in _lookahead(game, config.decisions)])
            model, variables = load_model(model_directory("vae", game))
            arguments = model, variables, screens[0].shape, codes.edges(model)
            some = screens[: encoders.BATCH_SIZES[-1] * XLA_BATCHES]
            xla = encoders.XLAEncoder(*arguments)
            measured = {
                "patches": {"1": _per_screen(encoders.PatchEncoder(*arguments), screens, 1)}
            }
            measured["xla"] = {
                str(size): _per_screen(xla, some, size)
                for size in encoders.BATCH_SIZES
                if size <= len(some)
            }
            results.put(SUITE, ENCODERS, game, measured | {"device": jax.devices()[0].device_kind})


def _per_screen(encoder: ScreenEncoder, screens: np.ndarray, size: int) -> float:
    """Milliseconds per screen, uint8[n, rows, columns], in batches of a size; a first batch is not timed."""
    batches = [screens[i : i + size] for i in range(0, len(screens) - size + 1, size)]
    encoder.features(batches[-1])  # whatever is compiled is compiled now
    start = time.perf_counter()
    for batch in batches[:-1] or batches:
        encoder.features(batch)
    return 1e3 * (time.perf_counter() - start) / (size * max(1, len(batches) - 1))


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


def encoder_means(results: Measurements) -> dict[str, dict[str, float]]:
    """By encoder and batch size, the geometric means over the games of the milliseconds per new screen."""
    games: dict[str, Any] = results.of(SUITE, ENCODERS)
    if not games:
        return {}
    first, *others = games.values()
    return {
        name: {
            size: geometric_mean(game[name][size] for game in games.values())
            for size in first[name]
            if all(size in game[name] for game in others)
        }
        for name in ("patches", "xla")
    }
