"""How the pace of planning changes with emulators, rollouts in flight and the length of a decision."""

import contextlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tqdm import tqdm

from vaeiw_jax.benchmarks import planner_suite
from vaeiw_jax.benchmarks.config import BenchmarkConfig
from vaeiw_jax.benchmarks.measurements import Measurements
from vaeiw_jax.benchmarks.planner_suite import VAE
from vaeiw_jax.benchmarks.players import Player, Setup
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.models import model_directory

SUITE = "scaling"
SECONDS = (0.1, 0.5, 2.0, 8.0, 32.0)


def measure(config: BenchmarkConfig, results: Measurements) -> None:
    """Measures what is not in the results yet: emulators and rollouts first, then budgets."""
    wanted = [
        (part, game)
        for part in ("emulators", "budgets")
        for game in results.missing(SUITE, part, config.game_names)
    ]
    with tqdm(wanted, desc=SUITE, unit=" measurements") as bar:
        for part, game in bar:
            bar.set_postfix_str(f"{part} of {game}")
            measured = (_emulators if part == "emulators" else _budgets)(config, game)
            results.put(SUITE, part, game, measured | {"vae": model_directory(VAE, game).name})


def _emulators(config: BenchmarkConfig, game: str) -> dict[str, Any]:
    """Nodes per second, by "EMULATORS x ROLLOUTS IN FLIGHT", and of as many emulators that do nothing else."""
    decisions = max(1, config.decisions // 2)
    rates = {}
    for emulators in range(usable_cores() + 2):
        for in_flight in config.numbers_in_flight:
            if emulators > in_flight:
                continue  # some would be idle
            with Player(Setup(game, VAE, in_flight, emulators)) as player:
                player.play(config.opening, budget_nodes=planner_suite.OPENING_NODES)
                rates[f"{emulators}x{in_flight}"] = rate(player, decisions, config.seconds)
    return {
        "rates": rates,
        "alone": _alone(config, game),
        "seconds_a_decision": config.seconds,
    }


def _alone(config: BenchmarkConfig, game: str) -> dict[str, float]:
    """Steps per second of some emulators together, without a planner, by their number: the machine's limit."""
    numbers = range(1, usable_cores() + 2)
    with contextlib.ExitStack() as stack:
        players = [stack.enter_context(Player(Setup(game, VAE))) for _ in numbers]
        for player in players:
            player.play(config.opening, budget_nodes=planner_suite.OPENING_NODES)
        with ThreadPoolExecutor(len(players)) as threads:
            return {
                str(n): sum(threads.map(lambda p: p.bound(4 * config.seconds), players[:n]))
                for n in numbers
            }


def _budgets(config: BenchmarkConfig, game: str) -> dict[str, Any]:
    """Nodes per second, by seconds a decision may take."""
    budgets = [each for each in SECONDS if each <= config.long_seconds]
    with Player(planner_suite.setups(game)[planner_suite.PARALLEL]) as player:
        player.play(config.opening, budget_nodes=planner_suite.OPENING_NODES)
        rates = [rate(player, max(1, round(4 / each)), each) for each in budgets]
    return {"seconds": budgets, "rates": rates}


def rate(player: Player, decisions: int, seconds: float) -> float:
    played = player.play(decisions, budget_seconds=seconds)
    return float(sum(played["nodes"]) / sum(played["seconds"]))


def axes(rates: Iterable[str]) -> tuple[list[int], list[int]]:
    """The numbers of emulators, and of rollouts in flight, that were tried, by "EMULATORSxIN_FLIGHT"."""
    pairs = [tuple(map(int, key.split("x"))) for key in rates]
    return sorted({pair[0] for pair in pairs}), sorted({pair[1] for pair in pairs})
