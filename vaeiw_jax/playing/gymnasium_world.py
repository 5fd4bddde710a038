"""Planning in the environments of Gymnasium (extra `gymnasium`), those of ALE among them."""

import copy
from typing import Any, NamedTuple

import numpy as np

from vaeiw_jax import atari, configs
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, FeatureSet, Setting, create
from vaeiw_jax.object_names import object_name
from vaeiw_jax.planning import PlainWorld, Planner, PlannerConfig, SearchFunction, Transition
from vaeiw_jax.planning.novelty import Notion
from vaeiw_jax.playing.episodes import generators
from vaeiw_jax.playing.planned_episode import PlannedEpisode

try:
    import gymnasium
    from gymnasium.spaces import Discrete
except ImportError as error:
    raise UserError("Gymnasium is not installed; pip install '.[gymnasium]' brings it") from error


class EnvironmentSnapshot(NamedTuple):
    """A state of an environment with what it shows. Feature sets look at it."""

    state: Any
    """A copy of the environment, or what its `clone_state` gave."""
    observation: Any
    lives: int
    """As `info["lives"]` has it; 0 where it is missing."""
    terminal: bool
    screen: np.ndarray | None = None
    """uint8[height, width] palette colours, of ALE only."""
    ram: np.ndarray | None = None
    """uint8[128], of ALE only."""


class GymnasiumWorld(PlainWorld):
    """A world of an environment with discrete actions.

    An environment that has `clone_state` and `restore_state`, as ALE's have, is stepped itself, without its wrappers,
    whose state those do not hold. Any other is copied for each step, wrappers and all: its random numbers with it, so
    that the planner foresees them.

    Args:
      env: the environment. A planner needs the same step from the same state: for ALE, make it with
        `repeat_action_probability=0.0` and a fixed `frameskip`.
      features: says what is true in an `EnvironmentSnapshot`; for ALE, the name of a set will do, such as `vae`.
    """

    def __init__(self, env: gymnasium.Env, features: FeatureSet | str):
        if not isinstance(env.action_space, Discrete):
            raise UserError(f"planning needs discrete actions, and those of {env} are not")
        self.features_name = features if isinstance(features, str) else object_name(features)
        self.features = _created(features, env) if isinstance(features, str) else features
        super().__init__(self.step, self.features.atoms)
        self.env = env
        self.num_actions = int(env.action_space.n)
        self._first_action = int(env.action_space.start)
        base: Any = env.unwrapped
        self._restorable = base if hasattr(base, "restore_state") else None
        self._emulator = getattr(base, "ale", None)

    def start(self, seed: int) -> EnvironmentSnapshot:
        """The first state of an episode."""
        observation, info = self.env.reset(seed=seed)
        if self._restorable is None:
            return self._snapshot(copy.deepcopy(self.env), observation, info, False)
        if self._emulator is None:
            return self._snapshot(None, observation, info, False)
        # In some games a reset leaves memory of the console as it was; loading the game again does not.
        ale = self._restorable
        ale.load_game()
        snapshot = self._snapshot(None, ale._get_obs(), ale._get_info(), False)
        ale.step(0)  # an emulator that never ran a frame may restore a state wrongly
        return snapshot

    def step(self, snapshot: EnvironmentSnapshot, action: int) -> Transition:
        """Where an action, counted from 0, leads."""
        if self._restorable is None:
            env = copy.deepcopy(snapshot.state)
        else:
            env = self._restorable
            env.restore_state(snapshot.state)
        observation, reward, terminated, truncated, info = env.step(action + self._first_action)
        after = self._snapshot(env, observation, info, bool(terminated or truncated))
        return Transition(after, float(reward), after.lives, after.terminal)

    def _snapshot(
        self, copied: Any, observation: Any, info: dict[str, Any], terminal: bool
    ) -> EnvironmentSnapshot:
        return EnvironmentSnapshot(
            state=copied if self._restorable is None else self._restorable.clone_state(),
            observation=observation,
            lives=int(info.get("lives", 0)),
            terminal=terminal,
            screen=self._emulator.getScreen() if self._emulator else None,
            ram=self._emulator.getRAM() if self._emulator else None,
        )


def _created(features: str, env: gymnasium.Env) -> FeatureSet:
    """A feature set of this package, for an environment of ALE."""
    emulator = getattr(env.unwrapped, "ale", None)
    if emulator is None or env.spec is None:
        raise UserError(
            f"the feature set {features!r} looks at the screen or the memory of an Atari console, which {env} has not; "
            "give an object with num_features and atoms(seen, previous)"
        )
    game = atari.game_name(atari.rom_id(env.spec.id))
    return create(FeaturesConfig(features), Setting(game, emulator.getScreenDims()))


class GymnasiumEpisode(PlannedEpisode):
    """One episode of an environment: a function of config and seed, as far as the budget is in nodes.

    Args:
      world: the environment, and what is true in its states.
      config: which search, and its budget.
      seed: of all that is random.
      max_actions: the episode ends after this many actions.
      search: a search, in place of the one that the config names.
    """

    def __init__(
        self,
        world: GymnasiumWorld,
        config: PlannerConfig,
        seed: int,
        max_actions: int = 15_000,
        search: SearchFunction | None = None,
    ):
        self.world = world
        self.seed = seed
        self.max_actions = max_actions
        snapshot = world.start(seed)
        _, _, planner_rng, _ = generators(seed)  # as in `Episode`, so that equal seeds decide alike
        planner = Planner(
            config,
            world,
            num_actions=world.num_actions,
            num_features=world.features.num_features,
            snapshot=snapshot,
            lives=snapshot.lives,
            rng=planner_rng,
            search=search,
            notions=[Notion(*notion) for notion in getattr(world.features, "notions", ())],
        )
        super().__init__(planner, snapshot)

    @property
    def score(self) -> float:
        return sum(self.rewards)

    @property
    def stop(self) -> str | None:
        """Why the episode is over, if it is."""
        if self.snapshot.terminal:
            return "game_over"
        return "action_limit" if len(self.actions) >= self.max_actions else None

    def record(self) -> dict[str, Any]:
        """The result, as `Episode.record` has it."""
        spec = self.world.env.spec
        return {
            "game": spec.id if spec else object_name(self.world.env.unwrapped),
            "seed": self.seed,
            "score": self.score,
            "actions": len(self.actions),
            "stop": self.stop,
            "lives": self.snapshot.lives,
            "decisions": self.summary(),
            "config": configs.settings(self.planner.config)
            | {"features": self.world.features_name, "max_actions": self.max_actions},
        }
