"""How near planning comes to the emulator's own pace, and what else it costs: growth, memory, start.

Rates are new nodes per second, everything a decision does included. They are compared with the *emulator bound* of the
same game in the same run: what one process makes that does nothing but restore, act, clone and fetch the screen.
"""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from vaeiw_jax.benchmarks import models
from vaeiw_jax.benchmarks.config import PLANNER_PARTS, BenchmarkConfig
from vaeiw_jax.benchmarks.measurements import Results, geometric_mean
from vaeiw_jax.benchmarks.others import DISTURBED, Others
from vaeiw_jax.benchmarks.players import Player, Way
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.playing.emulators import default_emulators, default_rollouts_in_flight
from vaeiw_jax.playing.planned_episode import LATE_SECONDS

SUITE = "planner"
OPENING_NODES = 20
"""Of a decision of the opening, in which nothing is measured: many games stand still at first."""

TURNS = 4
"""How often those compared take turns."""

BOUND, ONE_EMULATOR, PARALLEL = "emulator bound", "VAE, one emulator", "VAE, parallel emulators"
BPROST, ONE_CORE = "B-PROST, one emulator", "VAE, one core"
EARLY = 200
"""The decision from which on memory should be flat."""

GROWING = (PARALLEL, BPROST)
"""What is measured in long decisions."""


def ways(game: str, vae: str) -> dict[str, Way]:
    """The ways to play that are compared."""
    cores = usable_cores()
    in_flight = default_rollouts_in_flight(cores)
    return {
        ONE_EMULATOR: Way(game, vae, in_flight, min(1, cores - 1)),
        PARALLEL: Way(game, vae, in_flight, default_emulators(in_flight, cores)),
        BPROST: Way(game, "bprost", in_flight, min(1, cores - 1)),
        ONE_CORE: Way(game, vae, default_rollouts_in_flight(1), 0, cores=1),
    }


def measure(config: BenchmarkConfig, workdir: Path, results: Results) -> None:
    """Measures the parts asked for that are not in the results yet, game by game."""
    parts: dict[str, Callable[[BenchmarkConfig, str, str], dict[str, Any]]] = {
        "rates": _rates,
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
            vae, origin = models.find_or_train(game, workdir / "vaes")
            others = Others()
            measured = parts[part](config, game, vae)
            results.put(SUITE, part, game, measured | {"vae": origin, "others": others.share()})


def _rates(config: BenchmarkConfig, game: str, vae: str) -> dict[str, Any]:
    """Nodes per second in every way, the emulator bound, and how many decisions were late."""
    turn = max(1, config.decisions // TURNS)
    bounds: list[float] = []
    played: dict[str, list[dict[str, Any]]] = {name: [] for name in ways(game, vae)}
    with contextlib.ExitStack() as stack:
        players = {n: stack.enter_context(Player(way)) for n, way in ways(game, vae).items()}
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
        "ways": {name: str(way) for name, way in ways(game, vae).items()},
        "seconds_a_decision": config.seconds,
    }


def _bprost(config: BenchmarkConfig, game: str, vae: str) -> dict[str, Any]:
    """Milliseconds that the B-PROST atoms of a new screen take, on the screens of lookahead trees."""
    seconds: list[float] = []
    with Player(Way(game, "bprost")) as player:
        player.play(config.opening, budget_nodes=OPENING_NODES)
        for _ in range(TURNS):
            player.play(3, budget_nodes=100)
            seconds += player.atoms(50)
    return {"milliseconds": 1e3 * float(np.mean(seconds)), "screens": len(seconds)}


def _growth(config: BenchmarkConfig, game: str, vae: str) -> dict[str, Any]:
    """Nodes per second in one long decision, and in short ones before and after it.

    A long decision may find everything there is to find before its time is over; how long it took is noted.
    """
    short, long = config.seconds, config.long_seconds
    measured: dict[str, Any] = {"seconds": [short, long]}
    for name in GROWING:
        with Player(ways(game, vae)[name]) as player:
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


def _memory(config: BenchmarkConfig, game: str, vae: str) -> dict[str, Any]:
    """Resident memory while a game goes on."""
    every = max(1, config.memory_decisions // 20)
    with Player(ways(game, vae)[PARALLEL]) as player:
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


def _start(config: BenchmarkConfig, game: str, vae: str) -> dict[str, Any]:
    """Seconds from the command until its first decision is made and recorded; the second time it runs."""
    seconds = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as workdir:
            command = ["-m", "launch.play", f"--game={game}", f"--features={vae}"]
            limits = [f"--budget_seconds={config.seconds}", "--max_actions=1"]
            start = time.perf_counter()
            subprocess.run(
                [sys.executable, *command, *limits, f"--workdir={workdir}"],
                check=True,
                capture_output=True,
            )
            seconds.append(time.perf_counter() - start)
    return {"first": seconds[0], "second": seconds[1]}


class Row(NamedTuple):
    """A line of the table."""

    what: str
    at_least: str
    aim: str
    measured: str


def table(results: Results) -> list[Row]:
    """What was measured beside what it should be."""
    rows = []
    rates = results.of(SUITE, "rates")
    for name, what, at_least, aim in (
        (ONE_EMULATOR, "VAE-IW, one emulator", "0.60", "0.95"),
        (PARALLEL, "VAE-IW, parallel emulators", "1.00", "1.6"),
        (BPROST, "RolloutIW with B-PROST, one emulator", "0.55", "0.9"),
        (ONE_CORE, "VAE-IW on one core", "0.30", "0.6"),
    ):
        if rates:
            ratio = geometric_mean(ratios(rates, name).values())
            rows.append(Row(f"{what}, of the emulator bound", at_least, aim, f"{ratio:.2f}"))
    if bprost := results.of(SUITE, "bprost"):
        mean = geometric_mean(each["milliseconds"] for each in bprost.values())
        rows.append(Row("B-PROST atoms of a new screen", "1.5 ms", "0.5 ms", f"{mean:.2f} ms"))
    if growth := results.of(SUITE, "growth"):
        for name in GROWING:
            mean = geometric_mean(
                each[name]["long"] / each[name]["short"] for each in growth.values()
            )
            short, long = next(iter(growth.values()))["seconds"]
            most = max(each[name]["long_nodes"] for each in growth.values())
            what = f"growth, {name}: nodes/s at {long:g} s a decision, of those at {short:g} s"
            rows.append(Row(what, "0.8", "1.0", f"{mean:.2f} (at most {most:,} nodes)"))
    if memory := results.of(SUITE, "memory"):
        rows += _memory_rows(memory)
    if start := results.of(SUITE, "start"):
        worst = max(each["second"] for each in start.values())
        rows.append(Row("start: to the end of the first decision", "10 s", "4 s", f"{worst:.1f} s"))
    if rates:
        late = sum(sum(each["late"].values()) for each in rates.values())
        number = sum(sum(each["decisions"].values()) for each in rates.values())
        what = f"decisions that end more than {1e3 * LATE_SECONDS:.0f} ms late"
        rows.append(Row(what, "1%", "", f"{late / number:.1%} of {number:,}"))
    return rows


def _memory_rows(memory: dict[str, Any]) -> list[Row]:
    last = max(each["player"][-1] + each["emulators"][-1] for each in memory.values())
    player = max(each["player"][-1] for each in memory.values())
    decisions = next(iter(memory.values()))["decisions"]
    early = 1 + min(range(len(decisions)), key=lambda i: abs(decisions[i] - EARLY))
    grown = max(max(each["player"]) - max(each["player"][:early]) for each in memory.values())
    measured = f"{player:.0f} MB, {last:.0f} MB with its emulators"
    return [
        Row(f"memory after {decisions[-1]:,} decisions", "1,000 MB", "500 MB", measured),
        Row(f"growth of its peak from decision {EARLY} on", "flat", "", f"{grown:+.0f} MB"),
    ]


def ratios(rates: dict[str, Any], name: str) -> dict[str, float]:
    """By game: nodes per second of a method, as a share of the emulator bound."""
    return {game: each["rates"][name] / each["rates"][BOUND] for game, each in rates.items()}


def report(results: Results) -> str:
    """The table, and the ratios of every game, as Markdown."""
    lines = ["| what | at least | aim | measured |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in table(results)]
    disturbed = [
        f"{part} of {game} ({each['others']:.0%})"
        for part in PLANNER_PARTS
        for game, each in results.of(SUITE, part).items()
        if each["others"] > DISTURBED
    ]
    if disturbed:
        lines += [
            "",
            f"The machine was not idle, others using a share of it, in {', '.join(disturbed)}.",
        ]
    rates = results.of(SUITE, "rates")
    if rates:
        methods = (ONE_EMULATOR, PARALLEL, BPROST, ONE_CORE)
        lines += [
            "",
            "| game | nodes/s, " + BOUND + " | " + " | ".join(methods) + " |",
            "|---" * 6 + "|",
        ]
        for game, each in rates.items():
            shares = [f"{ratios(rates, name)[game]:.2f}" for name in methods]
            lines.append(f"| {game} | {each['rates'][BOUND]:.0f} | {' | '.join(shares)} |")
    return "\n".join(lines)
