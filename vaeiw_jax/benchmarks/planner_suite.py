"""Planning speed relative to the emulator's own, and its growth with the budget, memory and start-up time.

Rates are new nodes per second, everything a decision does included. They are compared with the *emulator bound* of the
same game in the same run: the steps per second of one process that only restores, acts, clones and fetches the screen.
"""

import contextlib
import functools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm import tqdm

from vaeiw_jax.benchmarks.config import BenchmarkConfig
from vaeiw_jax.benchmarks.machine_load import MachineLoad
from vaeiw_jax.benchmarks.measurements import Measurements
from vaeiw_jax.benchmarks.players import Player, Setup
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.models import UNIVERSAL, model_directory
from vaeiw_jax.playing.emulators import default_emulators, default_rollouts_in_flight
from vaeiw_jax.playing.episodes import PROTOCOLS
from vaeiw_jax.playing.planned_episode import LATE_SECONDS

SUITE = "planner"
OPENING_NODES = 20
"""Nodes per decision of the opening, which is not measured: many games stand still at first."""

TURNS = 4
"""How often each setup is measured, in turn."""

BOUND, ONE_EMULATOR, PARALLEL = "emulator bound", "VAE, one emulator", "VAE, parallel emulators"
BPROST, ONE_CORE = "B-PROST, one emulator", "VAE, one core"
EARLY = 200
"""The decision from which on memory should be flat."""

PAIRS, HAND_MADE, RECOMMENDED = "pairs of unusual bits", "B-PROST", "recommended"
SYMBOLS: dict[str, dict[str, Any]] = {
    HAND_MADE: {"features": "bprost"},
    RECOMMENDED: PROTOCOLS["recommended"],
    "true bits": {},
    "true bits, noise": {"noise": True},
    "either value, changes": {"literals": "either", "changes": True},
    PAIRS: {"literals": "unusual", "width": 2},
}
"""Notions of an atom that are compared on one core, with the universal VAE, and the protocol that is recommended."""

SEARCHES: dict[str, dict[str, Any]] = {
    "uniform": {},
    "longest ties": {"zero_ties": "longest"},
    "top-two Thompson": {"action_choice": "top_two"},
    "UCB1": {"action_choice": "ucb1"},
    "policy": {"policy_share": 0.5},
}
"""Ways to search with true bits that are compared on one core. What a policy learns between decisions is not timed."""

ON_ONE_CORE = {"symbols": SYMBOLS, "searches": SEARCHES}
"""The parts that compare settings with the first of them."""

VAE = "vae"
"""The features that are measured against B-PROST: the VAE that ships for the game."""

GROWING = (PARALLEL, BPROST)
"""What is measured in long decisions."""


def setups(game: str) -> dict[str, Setup]:
    """The setups that are compared."""
    cores = usable_cores()
    in_flight = default_rollouts_in_flight(cores)
    return {
        ONE_EMULATOR: Setup(game, VAE, in_flight, min(1, cores - 1)),
        PARALLEL: Setup(game, VAE, in_flight, default_emulators(in_flight, cores)),
        BPROST: Setup(game, "bprost", in_flight, min(1, cores - 1)),
        ONE_CORE: Setup(game, VAE, default_rollouts_in_flight(1), 0, cores=1),
    }


def measure(config: BenchmarkConfig, results: Measurements) -> None:
    """Measures the parts asked for that are not in the results yet, game by game."""
    parts: dict[str, Callable[[BenchmarkConfig, str], dict[str, Any]]] = {
        "rates": _rates,
        **{
            part: functools.partial(_on_one_core, compared)
            for part, compared in ON_ONE_CORE.items()
        },
        "bprost": _bprost,
        "growth": _growth,
        "memory": _memory,
        "start": _start,
    }
    wanted = [
        (part, game)
        for part in config.parts.split(",")
        for game in results.missing(SUITE, part, config.game_names)
    ]
    with tqdm(wanted, unit=" measurements", desc="planner") as bar:
        for part, game in bar:
            bar.set_postfix_str(f"{part} of {game}")
            load = MachineLoad()
            measured = parts[part](config, game)
            model = UNIVERSAL if part in ON_ONE_CORE else model_directory(VAE, game).name
            results.put(SUITE, part, game, measured | {"vae": model, "others": load.by_others()})


def _rates(config: BenchmarkConfig, game: str) -> dict[str, Any]:
    """Nodes per second in every setup, the emulator bound, and how many decisions were late."""
    turn = max(1, config.decisions // TURNS)
    bounds: list[float] = []
    played: dict[str, list[dict[str, Any]]] = {name: [] for name in setups(game)}
    with contextlib.ExitStack() as stack:
        players = {n: stack.enter_context(Player(setup)) for n, setup in setups(game).items()}
        for player in players.values():
            player.play(config.opening, budget_nodes=OPENING_NODES)
        while len(bounds) * turn < config.decisions:
            for name, player in players.items():
                played[name].append(player.play(turn, budget_seconds=config.seconds))
            bounds.append(players[ONE_EMULATOR].bound(2 * config.seconds))
    together = {
        name: {key: np.hstack([turn[key] for turn in turns]) for key in turns[0]}
        for name, turns in played.items()
    }
    rates = {
        name: float(all_["nodes"].sum() / all_["seconds"].sum()) for name, all_ in together.items()
    }
    return {
        "rates": {BOUND: float(np.mean(bounds)), **rates},
        "decisions": {name: len(all_["nodes"]) for name, all_ in together.items()},
        "late": {n: int((all_["overrun"] > LATE_SECONDS).sum()) for n, all_ in together.items()},
        "milliseconds_late": {
            name: [round(1e3 * float(late), 1) for late in all_["overrun"]]
            for name, all_ in together.items()
        },
        "milliseconds_a_node": {
            name: {
                part: float(1e3 * all_[part].sum() / all_["nodes"].sum())
                for part in ("seconds", "emulator", "features", "novelty")
            }
            for name, all_ in together.items()
        },
        "setups": {name: str(setup) for name, setup in setups(game).items()},
        "seconds_a_decision": config.seconds,
    }


def _on_one_core(
    compared: dict[str, dict[str, Any]], config: BenchmarkConfig, game: str
) -> dict[str, Any]:
    """Nodes per second and nodes a decision, on one core, by the settings of an episode.

    All play the actions that one more player chooses, whose searches are short: settings that came to states of their
    own would be compared by what these states cost, and by how much of them is remembered.
    """
    turn = max(1, config.decisions // TURNS)
    nodes: dict[str, list[int]] = {name: [] for name in compared}
    seconds: dict[str, list[float]] = {name: [] for name in compared}
    with contextlib.ExitStack() as stack:
        players = {}
        for name, settings in compared.items():
            given = {"features": f"vae:{UNIVERSAL}"} | settings
            setup = Setup(game, given.pop("features"), cores=1, settings=tuple(given.items()))
            players[name] = stack.enter_context(Player(setup))
        guide = stack.enter_context(Player(Setup(game, "bprost", cores=1)))
        actions = guide.play(config.opening, budget_nodes=OPENING_NODES)["actions"]
        for player in players.values():
            player.play(config.opening, budget_nodes=OPENING_NODES, actions=actions)
        for _ in range(0, config.decisions, turn):
            actions = guide.play(turn, budget_nodes=OPENING_NODES)["actions"]
            for name, player in players.items():
                played = player.play(turn, budget_seconds=config.seconds, actions=actions)
                nodes[name] += played["nodes"]
                seconds[name] += played["planning"]
    return {
        "rates": {name: float(sum(nodes[name]) / sum(seconds[name])) for name in nodes},
        "nodes_a_decision": {name: float(np.mean(nodes[name])) for name in nodes},
        "seconds_a_decision": config.seconds,
    }


def _bprost(config: BenchmarkConfig, game: str) -> dict[str, Any]:
    """Milliseconds that the B-PROST atoms of a new screen take, on the screens of lookahead trees."""
    seconds: list[float] = []
    with Player(Setup(game, "bprost")) as player:
        player.play(config.opening, budget_nodes=OPENING_NODES)
        for _ in range(TURNS):
            player.play(3, budget_nodes=100)
            seconds += player.atoms(50)
    return {"milliseconds": 1e3 * float(np.mean(seconds)), "screens": len(seconds)}


def _growth(config: BenchmarkConfig, game: str) -> dict[str, Any]:
    """Nodes per second in one long decision, and in short ones before and after it.

    A long decision may find everything there is to find before its time is over; how long it took is noted.
    """
    short, long = config.seconds, config.long_seconds
    measured: dict[str, Any] = {"seconds": [short, long]}
    for name in GROWING:
        with Player(setups(game)[name]) as player:
            player.play(config.opening, budget_nodes=OPENING_NODES)
            before = player.play(max(1, config.decisions // 2), budget_seconds=short)
            during = player.play(1, budget_seconds=long)
            after = player.play(max(1, config.decisions // 2), budget_seconds=short)
        nodes, seconds = before["nodes"] + after["nodes"], before["seconds"] + after["seconds"]
        measured[name] = {
            "short": sum(nodes) / sum(seconds),
            "long": sum(during["nodes"]) / sum(during["seconds"]),
            "long_seconds": sum(during["seconds"]),
            "long_nodes": sum(during["nodes"]),
        }
    return measured


def _memory(config: BenchmarkConfig, game: str) -> dict[str, Any]:
    """Resident memory while a game goes on."""
    every = max(1, config.memory_decisions // 20)
    with Player(setups(game)[PARALLEL]) as player:
        decisions, megabytes = [0], [player.memory()]
        while decisions[-1] < config.memory_decisions:
            player.play(every, budget_nodes=config.memory_nodes)
            decisions.append(decisions[-1] + every)
            megabytes.append(player.memory())
    return {
        "decisions": decisions,
        "player": [each["player"] for each in megabytes],
        "emulators": [each["emulators"] for each in megabytes],
        "nodes_a_decision": config.memory_nodes,
    }


def _start(config: BenchmarkConfig, game: str) -> dict[str, Any]:
    """Seconds from the command until its first decision is made and recorded; the second time it runs."""
    seconds = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as workdir:
            command = ["-m", "launch.play", f"--game={game}", f"--features={VAE}"]
            limits = [f"--budget_seconds={config.seconds}", "--max_actions=1"]
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *command, *limits, f"--workdir={workdir}"],
                check=True,
                capture_output=True,
            )
            seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "second": seconds[1]}


def ratios(rates: dict[str, Any], name: str) -> dict[str, float]:
    """By game: nodes per second of a method, as a share of the emulator bound."""
    return {game: each["rates"][name] / each["rates"][BOUND] for game, each in rates.items()}
