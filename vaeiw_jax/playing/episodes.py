"""The plan-act loop: simulator + features + planner -> one episode and its record."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vaeiw_jax import atari, configs, features
from vaeiw_jax.atari import Atari, AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, bprost
from vaeiw_jax.planning import (
    Decision,
    PlainWorld,
    Planner,
    PlannerConfig,
    Statistics,
    Transition,
    World,
)
from vaeiw_jax.planning.world import Atoms
from vaeiw_jax.playing.emulators import EmulatorPool, PooledWorld, Prefetch

LATE_SECONDS = 0.02
"""A decision may end so long after its budget of seconds without being counted as late."""

BACKGROUND_STEPS = 100
"""Steps of random play over which a pixel must keep its colour to belong to the background."""


@dataclass(frozen=True)
class EpisodeConfig:
    """All that decides how a game is played, but for the seed."""

    atari: AtariConfig
    planner: PlannerConfig = field(default_factory=PlannerConfig)
    features: FeaturesConfig = field(default_factory=FeaturesConfig)
    max_actions: int = field(
        default=15_000, metadata={"help": "an episode ends after this many actions"}
    )
    max_emulator_frames: int | None = field(
        default=None,
        metadata={"help": "an episode ends after this many emulator frames, idle ones aside"},
    )

    def __post_init__(self) -> None:
        features.check(self.features)
        if self.max_actions < 1:
            raise UserError(f"max_actions must be at least 1, not {self.max_actions}")
        if self.max_emulator_frames is not None and self.max_emulator_frames < 1:
            raise UserError(
                f"max_emulator_frames must be at least 1, not {self.max_emulator_frames}"
            )

    def identified(self) -> "EpisodeConfig":
        """The same config, saying the same on every machine."""
        features_ = features.identified(self.features, self.atari.game)
        return dataclasses.replace(self, features=features_)

    @property
    def most_actions(self) -> int:
        """The number of actions at which the episode ends in any case."""
        if self.max_emulator_frames is None:
            return self.max_actions
        return min(self.max_actions, -(-self.max_emulator_frames // self.atari.frameskip))


PROTOCOLS: dict[str, dict[str, Any]] = {
    "vae_iw": {},  # the paper's own, which the defaults are
    "rollout_iw": {  # that of Bandres, Bonet and Geffner (AAAI 2018), whose scores the paper prints
        "discount": 1.0,
        "full_action_set": True,
        "background_mask": True,
        "noop_max": 30,
        "max_emulator_frames": 18_000,
    },
}
"""The settings, by flag, in which the two ways to play differ from the defaults."""


class Episode:
    """One game being played: a function of its config and seed, as far as the budget is in nodes.

    Args:
      config: how to play.
      seed: of all that is random.
      emulators: processes that step the game; 0 steps it in this one. They change nothing but the time it takes.
    """

    def __init__(self, config: EpisodeConfig, seed: int, emulators: int = 0):
        start_rng, background_rng, planner_rng = _generators(seed)
        self.config = config
        self.seed = seed
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self.statistics: list[Statistics] = []
        self.simulator = Atari(config.atari)
        self.background = (
            bprost.background(_random_screens(self.simulator, background_rng))
            if config.features.background_mask
            else None
        )
        self.snapshot = self.simulator.start(start_rng)
        self._first_frame = self.snapshot.frame
        self._prefetch: Prefetch | None = None
        num_features, atoms = self._features()
        self.planner = Planner(
            config.planner,
            self._world(atoms, emulators),
            num_actions=self.simulator.num_actions,
            num_features=num_features,
            snapshot=self.snapshot,
            lives=self.snapshot.lives,
            rng=planner_rng,
        )

    def _features(self) -> tuple[int, Atoms]:
        if self.config.planner.planner == "random":  # blind, so nothing need be looked at
            return 0, lambda snapshot, previous: np.zeros(0, np.int32)
        setting = features.Setting(
            self.config.atari.game, self.simulator.screen_shape, self.background
        )
        chosen = features.create(self.config.features, setting)
        self._prefetch = getattr(chosen, "prefetch", None)
        return chosen.num_features, chosen.atoms

    def _world(self, atoms: Atoms, emulators: int) -> World:
        if not emulators:
            return PlainWorld(self.simulator.step, atoms)
        return PooledWorld(EmulatorPool(self.config.atari, emulators), atoms, self._prefetch)

    def advance(self) -> Decision:
        """Makes a decision and acts on it."""
        decision = self.planner.decide()
        self.act(decision)
        return decision

    def act(self, decision: Decision) -> None:
        transition = self.planner.act(decision.action)
        self.snapshot = transition.snapshot
        self.actions.append(decision.action)
        self.rewards.append(transition.reward)
        self.statistics.append(decision.statistics)

    @property
    def score(self) -> int:
        return int(sum(self.rewards))

    @property
    def emulator_frames(self) -> int:
        """Frames played, those before the first action aside."""
        return self.snapshot.frame - self._first_frame

    @property
    def stop(self) -> str | None:
        """Why the episode is over, if it is."""
        if self.snapshot.terminal:
            return "game_over"
        if len(self.actions) >= self.config.max_actions:
            return "action_limit"
        if (
            self.config.max_emulator_frames is not None
            and self.emulator_frames >= self.config.max_emulator_frames
        ):
            return "frame_limit"
        return None

    def record(self) -> dict[str, Any]:
        """The result. Nothing in it depends on the machine, if the budget is in nodes."""
        return {
            "game": self.config.atari.game,
            "seed": self.seed,
            "score": self.score,
            "actions": len(self.actions),
            "emulator_frames": self.emulator_frames,
            "stop": self.stop,
            "lives": self.snapshot.lives,
            "decisions": self._summary(),
            "config": configs.settings(self.config.identified()),
        }

    def _summary(self) -> dict[str, Any]:
        """The means of the decisions' statistics, and how often each ended how."""
        columns = self.columns()
        endings, counts = np.unique(columns.pop("ended"), return_counts=True)
        return {
            "ended": dict(zip(endings.tolist(), counts.tolist(), strict=True)),
            "random_actions": int(columns.pop("random_action").sum()),
            "late": self._late(columns["seconds"]),
            **{
                f"mean_{name.removeprefix('mean_')}": float(column.mean())
                for name, column in columns.items()
                if not name.endswith("seconds")
            },
        }

    def _late(self, seconds: np.ndarray) -> int:
        """How many decisions overran their budget of seconds by more than is tolerable."""
        budget = self.config.planner.budget_seconds
        return 0 if budget is None else int((seconds > budget + LATE_SECONDS).sum())

    def seconds(self) -> dict[str, float]:
        """Where the time of the decisions went."""
        columns = self.columns()
        return {name: float(columns[name].sum()) for name in columns if name.endswith("seconds")}

    def columns(self) -> dict[str, np.ndarray]:
        """The statistics, one array per name, one entry per decision."""
        return {
            name: np.array([getattr(entry, name) for entry in self.statistics])
            for name in Statistics.names()
        }

    def decisions(self) -> dict[str, np.ndarray]:
        """Everything there is to tell about the decisions, as arrays."""
        arrays: dict[str, np.ndarray] = {
            "actions": np.array(self.actions, np.int32),
            "rewards": np.array(self.rewards, np.float64),
            **self.columns(),
        }
        return arrays if self.background is None else arrays | {"background": self.background}

    def save(self) -> dict[str, np.ndarray]:
        """All the rest of the episode depends on."""
        groups = {
            "decisions": self.decisions(),
            "planner": self.planner.to_arrays(),
            "snapshots": atari.pack(self.planner.tree.snapshots),
        }
        return {
            f"{group}.{name}": array
            for group, arrays in groups.items()
            for name, array in arrays.items()
        }

    def resume(self, saved: dict[str, np.ndarray]) -> None:
        """Goes on from what `save` gave."""
        decisions, planner, snapshots = (
            {name.removeprefix(prefix): saved[name] for name in saved if name.startswith(prefix)}
            for prefix in ("decisions.", "planner.", "snapshots.")
        )
        self.actions = decisions["actions"].tolist()
        self.rewards = decisions["rewards"].tolist()
        columns = [decisions[name].tolist() for name in Statistics.names()]
        self.statistics = [Statistics(*row) for row in zip(*columns, strict=True)]
        self.planner.restore(planner, atari.unpack(snapshots))
        self.snapshot = self.planner.tree.snapshots[0]


def replay(
    config: EpisodeConfig, seed: int, actions: list[int], every_frame: bool = False
) -> Iterator[tuple[Transition, list[np.ndarray]]]:
    """Plays recorded actions again, without planning.

    Yields:
      For each action where it led, and what was shown on the way, as uint8[height, width, 3]: every emulated frame, or
      only the last.
    """
    start_rng, _, _ = _generators(seed)
    simulator = Atari(config.atari)
    snapshot = simulator.start(start_rng)
    for action in actions:
        shown: list[np.ndarray] = []
        transition = simulator.step(snapshot, action, shown.append)
        snapshot = transition.snapshot
        yield transition, shown if every_frame else shown[-1:]


def _generators(seed: int) -> list[np.random.Generator]:
    """Of the start, the background and the planner: streams of their own, so that none shifts another."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)]


def _random_screens(simulator: Atari, rng: np.random.Generator) -> np.ndarray:
    """uint8[n, height, width]: what random play shows, starting over where a game ends."""
    snapshot = simulator.start(rng)
    screens = [snapshot.screen]
    for _ in range(BACKGROUND_STEPS):
        if snapshot.terminal:
            snapshot = simulator.start(rng)
        snapshot = simulator.step(snapshot, int(rng.integers(simulator.num_actions))).snapshot
        screens.append(snapshot.screen)
    return np.stack(screens)
