"""Deciding, acting, and keeping the branch that was acted on."""

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vaeiw_jax.errors import UserError
from vaeiw_jax.object_names import object_name
from vaeiw_jax.planning.config import PlannerConfig
from vaeiw_jax.planning.novelty import Notion, Novelty
from vaeiw_jax.planning.policy import Policy
from vaeiw_jax.planning.returns import best_branch, returns, revalue, values_below
from vaeiw_jax.planning.search import BRANCH, ENDINGS, Search, Statistics
from vaeiw_jax.planning.searches import SearchFunction
from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree
from vaeiw_jax.planning.world import Transition, World


@dataclass(frozen=True)
class Decision:
    """What one planning phase came to."""

    action: int
    values: np.ndarray
    """float64[num_actions], the returns the actions promise; NaN where one was not tried, unless that counts as 0."""
    returns: np.ndarray
    """float64[nodes], of all nodes of the tree as it is before it is acted on."""
    statistics: Statistics


def named_after(config: PlannerConfig, search: SearchFunction) -> PlannerConfig:
    """The config with the name of a search that is given as a function."""
    return dataclasses.replace(config, planner=object_name(search))


class Planner:
    """Plays a world, one decision after another.

    Args:
      config: which search, and its budget.
      world: where actions lead, and what is true there.
      num_actions: actions are numbered from 0.
      num_features: atoms are numbered from 0, below this.
      snapshot: where to start.
      lives: lives left there.
      rng: draws actions and breaks ties.
      clock: seconds, from any zero.
      search: the search itself, in place of the one that the config names.
      notions: for a config that widens, what counts as new, from the narrowest notion to the widest.
      policy: makes a share of the choices in rollouts.
    """

    def __init__(
        self,
        config: PlannerConfig,
        world: World,
        *,
        num_actions: int,
        num_features: int,
        snapshot: Any,
        rng: np.random.Generator,
        lives: int = 0,
        clock: Callable[[], float] = time.perf_counter,
        search: SearchFunction | None = None,
        notions: Sequence[Notion] = (),
        policy: Policy | None = None,
    ):
        if search is not None:
            config = named_after(config, search)
        if config.widen and len(notions) < 2:
            raise UserError(
                "widen needs features with several notions of novelty, such as --features=vae --literals=either"
            )
        if policy is not None and config.planner != "rollout_iw":
            raise UserError(
                f"a policy is for the planner rollout_iw, whose rollouts choose actions, not for {config.planner}"
            )
        self.config = config
        self._policy = policy
        self._search = search or config.search.load()
        self._novelty = Novelty(notions if config.widen else [Notion(num_features, config.width)])
        self.world = world
        self._rng = rng
        self._clock = clock
        self._root_atoms = world.atoms(snapshot, None)
        self.tree = Tree(num_actions, snapshot, lives)
        self._chosen: list[int] = []  # by the last decision: its action and those to follow
        self._branch: list[int] = []  # those to follow, once it was acted on

    @property
    def root_atoms(self) -> np.ndarray:
        """int32[n]: what is true at the root."""
        return self._root_atoms

    def decide(self) -> Decision:
        """Searches from the root and chooses an action, or takes the next of a branch that was chosen before."""
        self._novelty.start_decision()
        if self.config.rules.revalues and not self._branch:
            revalue(self.tree, self.config)
        search = Search(
            self.config,
            self.tree,
            self._root_atoms,
            self._novelty,
            self.world,
            self._rng,
            self._clock,
            self._policy,
        )
        ended = BRANCH if self._branch else self._search(search)
        if ended not in ENDINGS:
            raise UserError(
                f"a search returns why it ended, one of {', '.join(ENDINGS)}, not {ended!r}"
            )
        if search.in_flight:
            raise UserError(
                f"a search receives all it asked for before it returns, and this one left {search.in_flight} in flight"
            )
        config, tree, untried_as_zero = self.config, self.tree, self.config.rules.untried_as_zero
        value = returns(search.valued_tree(), config.discount, untried_as_zero, config.leaf_alpha)
        values = values_below(tree, ROOT, value, untried_as_zero)
        self._chosen = self._branch or best_branch(tree, value, config, self._rng)
        blindly = not self._branch and bool(np.isnan(values).all())
        return Decision(self._chosen[0], values, value, search.statistics(ended, blindly))

    def act(self, action: int) -> Transition:
        """Takes the action: its child becomes the root, with the branch below it or, without caching, alone."""
        self._branch = self._chosen[1:] if self._chosen[:1] == [action] else []
        self._chosen = []
        tree = self.tree
        before = tree.snapshots[ROOT]
        child = int(tree.children[ROOT, action])
        if child == NO_NODE:
            self.world.ask(before, action)
            child = tree.add(ROOT, action, self.world.answer().transition, utility=0.0)
        transition = Transition(
            tree.snapshots[child],
            float(tree.reward[child]),
            int(tree.lives[child]),
            bool(tree.terminal[child]),
        )
        if self.config.caching == "partial":
            self._root_atoms = self.world.atoms(transition.snapshot, before)
            tree.reroot(child)
        else:
            self._root_atoms = self.world.atoms(transition.snapshot, None)
            self.tree = Tree(tree.num_actions, transition.snapshot, transition.lives)
        return transition

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All the next decision depends on, but for the tree's snapshots."""
        return {
            **self.tree.to_arrays(),
            "root_atoms": self._root_atoms,
            "branch": np.array(self._branch, np.int32),
            "rng": np.array(json.dumps(self._rng.bit_generator.state)),
        }

    def restore(self, arrays: dict[str, np.ndarray], snapshots: list[Any]) -> None:
        """Goes back to what `to_arrays` described."""
        self.tree = Tree.from_arrays(arrays, snapshots)
        self._root_atoms = arrays["root_atoms"]
        self._chosen, self._branch = [], arrays.get("branch", np.zeros(0, np.int32)).tolist()
        self._rng.bit_generator.state = json.loads(str(arrays["rng"]))
