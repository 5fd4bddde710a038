"""Processes that play a given number of decisions when asked to.

Each setup that is compared has a process of its own, with the cores it may use. They are measured in turn, repeatedly,
so that a slow phase of the machine affects all of them.
"""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import runs
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig


@dataclass(frozen=True)
class Setup:
    """How a player plays."""

    game: str
    features: str
    rollouts_in_flight: int = 1
    emulators: int = 0
    cores: int | None = None
    """How many it may use, or all."""
    settings: tuple[tuple[str, Any], ...] = ()
    """Other settings of the episode, by flag."""


class Player:
    """A process that plays in one setup. Use it in a `with` statement."""

    def __init__(self, setup: Setup):
        self._setup = setup
        with _on_cores(setup.cores):
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps(dataclasses.asdict(setup))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )

    def __enter__(self) -> "Player":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def play(self, decisions: int, **how: Any) -> dict[str, Any]:
        """Plays on; see `_Game.play`."""
        return self._ask("play", decisions=decisions, **how)

    def bound(self, seconds: float) -> float:
        """Steps a second of the emulator alone, from where the player has been."""
        rate: float = self._ask("bound", seconds=seconds)["rate"]
        return rate

    def atoms(self, number: int) -> list[float]:
        """Seconds per screen for computing atoms, over `number` distinct screens of the lookahead tree."""
        seconds: list[float] = self._ask("atoms", number=number)["seconds"]
        return seconds

    def memory(self) -> dict[str, float]:
        """Resident megabytes of the player and, apart from it, of its emulators."""
        return self._ask("memory")

    def _ask(self, what: str, **details: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"what": what, **details}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise UserError(
                f"the player of {self._setup} ended with code {code}; what it printed says why"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextlib.contextmanager
def _on_cores(number: int | None) -> Iterator[None]:
    """Restricts processes started inside to `number` cores, as `taskset` does."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(usable)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


class _Game:
    """Runs in the player process: one game after another, with seeds counted up."""

    def __init__(self, setup: Setup):
        self._setup = setup
        self._seed = 0
        self._episode = self._start()
        self._rng = np.random.default_rng(0)

    def _start(self) -> Episode:
        setup = self._setup
        settings = {
            "features": setup.features,
            "rollouts_in_flight": setup.rollouts_in_flight,
            **dict(setup.settings),
        }
        config = EpisodeConfig.of(setup.game, **settings)
        return Episode(config, self._seed, setup.emulators)

    def play(
        self,
        decisions: int,
        budget_seconds: float | None = None,
        budget_nodes: int | None = None,
        actions: list[int] | None = None,
    ) -> dict[str, Any]:
        """Plays on.

        Args:
          decisions: how many.
          budget_seconds, budget_nodes: of each.
          actions: what to play, whatever is decided: those of another player, to come to the same states.

        Returns:
          actions: those played.
          nodes: new ones, per decision.
          seconds: per decision, until the action was taken and the branch kept.
          planning: seconds per decision, until the action was chosen.
          overrun: seconds by which the choice of an action came after the budget of seconds, per decision.
          emulator, features, novelty: where the seconds went, in all.
        """
        played, nodes, seconds, statistics = [], [], [], []
        for index in range(decisions):
            if self._episode.stop:
                self._seed += 1
                self._episode = self._start()
            self._episode.planner.config = dataclasses.replace(
                self._episode.planner.config,
                budget_seconds=budget_seconds,
                budget_nodes=budget_nodes,
            )
            start = time.perf_counter()
            decision = self._episode.planner.decide()
            if actions is not None:
                decision = dataclasses.replace(decision, action=actions[index])
            self._episode.act(decision)
            seconds.append(time.perf_counter() - start)
            played.append(decision.action)
            statistics.append(decision.statistics)
            nodes.append(statistics[-1].new_nodes)
        return {
            "actions": played,
            "nodes": nodes,
            "seconds": seconds,
            "planning": [s.seconds for s in statistics],
            "overrun": [s.seconds - (budget_seconds or np.inf) for s in statistics],
            "emulator": sum(s.emulator_seconds for s in statistics),
            "features": sum(s.features_seconds for s in statistics),
            "novelty": sum(s.novelty_seconds for s in statistics),
        }

    def bound(self, seconds: float) -> dict[str, Any]:
        snapshots = [s for s in self._episode.planner.tree.snapshots if not s.terminal]
        rate = self._episode.simulator.bare_rate(snapshots, seconds, self._rng)
        return {"rate": rate}

    def atoms(self, number: int) -> dict[str, Any]:
        tree, atoms = self._episode.planner.tree, self._episode.planner.world.atoms
        snapshots = tree.snapshots
        nodes = {snapshots[i].screen.tobytes(): i for i in range(1, tree.size)}
        taken = []
        for node in list(nodes.values())[:number]:
            start = time.perf_counter()
            atoms(snapshots[node], snapshots[tree.parent[node]])
            taken.append(time.perf_counter() - start)
        return {"seconds": taken}

    def memory(self) -> dict[str, Any]:
        mine = Path("/proc/self/task").glob("*/children")
        children = " ".join(path.read_text() for path in mine).split()
        return {
            "player": _resident_megabytes("self"),
            "emulators": sum(map(_resident_megabytes, children)),
        }


def _resident_megabytes(process: str) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _main() -> None:
    answers = os.fdopen(os.dup(1), "w")  # whatever prints must not get among them
    os.dup2(2, 1)
    try:
        game = _Game(Setup(**json.loads(sys.argv[1])))
    except UserError as error:
        sys.exit(f"error: {error}")
    runs.freeze_garbage_collector()
    answer: dict[str, Callable[..., dict[str, Any]]] = {
        "play": game.play,
        "bound": game.bound,
        "atoms": game.atoms,
        "memory": game.memory,
    }
    for line in sys.stdin:
        question = json.loads(line)
        what = question.pop("what")
        print(json.dumps(answer[what](**question)), file=answers, flush=True)


if __name__ == "__main__":
    _main()
