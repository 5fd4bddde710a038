"""The plan-act loop: simulator + features + planner -> one episode and its record."""

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import atari, configs, durable
from vaeiw_jax.atari import Atari, AtariConfig
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.features import FeaturesConfig, FeatureSet, Setting, registry
from vaeiw_jax.planning import (
    Decision,
    PlainWorld,
    Planner,
    PlannerConfig,
    SearchFunction,
    Statistics,
    Transition,
    World,
)
from vaeiw_jax.planning.novelty import Notion
from vaeiw_jax.planning.planner import named_after
from vaeiw_jax.planning.world import Atoms
from vaeiw_jax.playing import noise_seeds
from vaeiw_jax.playing.emulators import EmulatorPool, PooledWorld, Prefetch
from vaeiw_jax.playing.planned_episode import PlannedEpisode
from vaeiw_jax.playing.random_screens import (
    background_to_mask,
    background_to_subtract,
    random_screens,
)
from vaeiw_jax.playing.step_memory import StepMemory, remembering
from vaeiw_jax.policies import PolicyConfig, PolicyLearner, files
from vaeiw_jax.progress import Progress

_POLICY_STREAM = 1000
"""The spawn key of the policy's random numbers."""

_RECENT_DECISIONS = 50
"""Decisions over which the nodes shown while playing are averaged."""


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
    policy: PolicyConfig = field(default_factory=PolicyConfig)

    def __post_init__(self) -> None:
        registry.check(self.features)
        if self.policy.policy_share > 0 and self.planner.planner != "rollout_iw":
            raise UserError(
                f"policy_share={self.policy.policy_share} is for the planner rollout_iw, whose rollouts choose "
                f"actions, not for {self.planner.planner}"
            )
        if self.max_actions < 1:
            raise UserError(f"max_actions must be at least 1, not {self.max_actions}")
        if self.max_emulator_frames is not None and self.max_emulator_frames < 1:
            raise UserError(
                f"max_emulator_frames must be at least 1, not {self.max_emulator_frames}"
            )

    @classmethod
    def of(cls, game: str, *, protocol: str = "vae_iw", **settings: Any) -> "EpisodeConfig":
        """The config with settings named as the flags are: `of("Pong", features="ram", budget_nodes=100)`.

        As with the flags, a budget in nodes that is given alone is the only budget, and settings come before those of
        the protocol, one of `PROTOCOLS`.
        """
        from vaeiw_jax.playing import protocols  # which is about this class

        known = configs.names(cls)
        for name in settings:
            if name not in known:
                raise unknown("setting", name, known)
        if settings.get("budget_nodes") is not None:
            settings.setdefault("budget_seconds", None)
        settings = protocols.settings(protocol, settings) | settings
        return configs.from_settings(cls, {"game": game} | settings, partial=True)

    def named_after(
        self, features: FeatureSet | None = None, search: SearchFunction | None = None
    ) -> "EpisodeConfig":
        """The config with the names of what is given as an object."""
        config = self
        if features is not None:
            named = registry.named_after(self.features, features)
            config = dataclasses.replace(config, features=named)
        if search is not None:
            config = dataclasses.replace(config, planner=named_after(self.planner, search))
        return config

    def identified(self) -> "EpisodeConfig":
        """The same config, saying the same on every machine."""
        identified = registry.identified(self.features, self.atari.game)
        policy = self.policy
        if policy.policy is not None:
            named = files.identity(policy.policy, self.atari.game)
            policy = dataclasses.replace(policy, policy=named)
        return dataclasses.replace(self, features=identified, policy=policy)

    @property
    def most_actions(self) -> int:
        """The number of actions at which the episode ends in any case."""
        if self.max_emulator_frames is None:
            return self.max_actions
        return min(self.max_actions, -(-self.max_emulator_frames // self.atari.frameskip))


PROTOCOLS: dict[str, dict[str, Any]] = {
    "vae_iw": {},  # the paper's own, which the defaults are
    "recommended": {  # symbols and a search that won more games: docs/symbols.md, docs/searches.md
        "literals": "either",
        "action_choice": "top_two",
        "zero_ties": "longest",
    },
    "rollout_iw": {  # that of Bandres, Bonet and Geffner (AAAI 2018), whose scores the paper prints
        "features": "bprost",
        "discount": 1.0,
        "full_action_set": True,
        "background_subtract": True,
        "noop_actions": 30,
        "max_emulator_frames": 18_000,
        "untried_as_zero": True,
        "zero_ties": "longest",
        "follow_repeats": 2,  # of 15 frames each; `protocols.settings` counts those of another frame skip
        "rule_out_known": True,
        "terminals_write": False,
    },
    "published": {  # the paper's own, as the planner that its authors published plays it
        "losses": "published",
        "noise": True,
    },
}
"""The settings, by flag, in which the ways to play differ from the defaults."""


class Episode(PlannedEpisode):
    """One game being played: a function of its config and seed, as far as the budget is in nodes.

    Args:
      config: how to play.
      seed: of all that is random.
      emulators: processes that step the game; 0 steps it in this one. They change nothing but the time it takes.
      features: a feature set, in place of the one that the config names; the record then names its class.
      search: a search, in place of the one that the config names; the record then names the function.
    """

    def __init__(
        self,
        config: EpisodeConfig,
        seed: int,
        emulators: int = 0,
        *,
        features: FeatureSet | None = None,
        search: SearchFunction | None = None,
    ):
        config = config.named_after(features, search)
        start_rng, background_rng, planner_rng, noise_rng = generators(seed)
        self.config = config
        self.seed = seed
        self.simulator = Atari(config.atari)
        self.background: np.ndarray | None = None
        if config.features.background_mask:
            self.background = background_to_mask(self.simulator, background_rng)
        if config.features.background_subtract:
            self.background = background_to_subtract(self.simulator, background_rng)
        self._background_rng = background_rng
        self._chosen: FeatureSet | None = None
        start = self.simulator.start(start_rng)
        if config.features.noise:
            start = start._replace(noise_seed=noise_seeds.first_seed(noise_rng))
        self._first_frame = start.frame
        self._prefetch: Prefetch | None = None
        num_features, atoms = self._features(features)
        self._learner = self._policy(num_features)
        planner = Planner(
            config.planner,
            self._world(atoms, emulators),
            num_actions=self.simulator.num_actions,
            num_features=num_features,
            snapshot=start,
            lives=start.lives,
            rng=planner_rng,
            search=search,
            notions=[Notion(*notion) for notion in getattr(self._chosen, "notions", ())],
            policy=None if self._learner is None else self._learner.policy,
        )
        super().__init__(planner, start)

    def _features(self, given: FeatureSet | None) -> tuple[int, Atoms]:
        if not self.config.planner.search.looks_ahead:
            return 0, lambda snapshot, previous: np.zeros(0, np.int32)
        if given is not None:
            chosen = registry.require_feature_set(given)
        else:
            shape = self.simulator.screen_shape
            seen_in_random_play = functools.partial(
                random_screens, self.simulator, self._background_rng
            )
            setting = Setting(self.config.atari.game, shape, self.background, seen_in_random_play)
            chosen = registry.create(self.config.features, setting)
        self._prefetch = getattr(chosen, "prefetch", None)
        self._chosen = chosen
        return chosen.num_features, chosen.atoms

    def _world(self, atoms: Atoms, emulators: int) -> World:
        if not emulators:
            step = remembering(self.simulator.step, StepMemory())
            return PlainWorld(noise_seeds.seeding(step), atoms)
        return PooledWorld(EmulatorPool(self.config.atari, emulators), atoms, self._prefetch)

    def _policy(self, num_features: int) -> PolicyLearner | None:
        config, num_actions = self.config.policy, self.simulator.num_actions
        if config.policy_share == 0:
            return None
        given = None
        if config.policy is not None:
            purpose = self._policy_purpose(num_features)
            given = files.load(config.policy, self.config.atari.game, purpose)
        return PolicyLearner(config, num_features, num_actions, _policy_generator(self.seed), given)

    def _policy_purpose(self, num_features: int) -> dict[str, Any]:
        """What a policy must have in common with an episode to make sense in it."""
        game = self.config.atari.game
        features = configs.settings(registry.identified(self.config.features, game))
        del features["encoder"]  # both ways to run one give the same atoms
        return {
            **features,
            "num_features": num_features,
            "actions": self.simulator.action_names,
            "policy_hidden": self.config.policy.policy_hidden,
            "policy_value": self.config.policy.policy_value,
        }

    def act(self, decision: Decision) -> None:
        if self._learner is not None:
            self._learner.learn(self.planner.root_atoms, decision.values)
        super().act(decision)

    def save_policy(self, directory: Path) -> None:
        """Writes the policy as it is now, if there is one."""
        if self._learner is not None:
            policy = self._learner.policy
            files.save(directory, policy, self._policy_purpose(policy.num_features))

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

    def progress(self) -> Progress:
        """How far the episode is."""
        recent = [entry.new_nodes for entry in self.statistics[-_RECENT_DECISIONS:]]
        nodes = f", {np.mean(recent):.0f} nodes a decision" if recent else ""
        return Progress(len(self.actions), self.config.most_actions, f"score {self.score:,}{nodes}")

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
            "decisions": self.summary(),
            "config": configs.settings(self.config.identified()),
        }

    def decisions(self) -> dict[str, np.ndarray]:
        frozen = {"background": self.background, "usual": getattr(self._chosen, "usual", None)}
        if self._learner is not None:
            frozen["policy_loss"] = np.array(self._learner.losses)
        known = {name: array for name, array in frozen.items() if array is not None}
        return super().decisions() | known

    def save(self) -> dict[str, np.ndarray]:
        """All the rest of the episode depends on."""
        groups = {
            "decisions": self.decisions(),
            "planner": self.planner.to_arrays(),
            "snapshots": atari.pack(self.planner.tree.snapshots),
            "policy": {} if self._learner is None else self._learner.to_arrays(),
        }
        return {
            f"{group}.{name}": array
            for group, arrays in groups.items()
            for name, array in arrays.items()
        }

    def resume(self, saved: dict[str, np.ndarray]) -> None:
        """Goes on from what `save` gave."""
        decisions, planner, snapshots, policy = (
            durable.part(saved, group) for group in ("decisions", "planner", "snapshots", "policy")
        )
        if self._learner is not None:
            self._learner.restore(policy)
        if "usual" in decisions:
            self._chosen.usual = decisions["usual"]  # type: ignore[union-attr]
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
    start_rng, *_ = generators(seed)
    simulator = Atari(config.atari)
    snapshot = simulator.start(start_rng)
    for action in actions:
        shown: list[np.ndarray] = []
        transition = simulator.step(snapshot, action, shown.append)
        snapshot = transition.snapshot
        yield transition, shown if every_frame else shown[-1:]


def generators(seed: int) -> list[np.random.Generator]:
    """Of the start, the background, the planner and noise: streams of their own, so that none shifts another."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4)]


def _policy_generator(seed: int) -> np.random.Generator:
    """A stream of its own, however many `generators` makes: those have the first spawn keys."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_POLICY_STREAM,)))
