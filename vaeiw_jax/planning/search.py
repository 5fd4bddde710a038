"""What every search is given: the tree it grows, the budget it may spend, and the record it leaves."""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vaeiw_jax.planning.config import PlannerConfig
from vaeiw_jax.planning.novelty import NO_KEY, NoveltyTable
from vaeiw_jax.planning.returns import utility
from vaeiw_jax.planning.simulator import Atoms, Step
from vaeiw_jax.planning.tree import Tree

SECONDS = "seconds"
NODES = "nodes"
SOLVED = "solved"
TREE_NODES = "tree_nodes"
NO_SEARCH = "no_search"
ENDINGS = (SOLVED, SECONDS, NODES, TREE_NODES, NO_SEARCH)
"""Why a decision ended: nothing was left to find, the budget was spent, the tree was full, there was no search."""


@dataclass(frozen=True)
class Statistics:
    """The record of one decision. Names ending in `seconds` depend on the machine."""

    new_nodes: int
    kept_nodes: int
    """Nodes, the root aside, kept from the decision before."""
    expanded_nodes: int
    """Nodes that got a new child."""
    rollouts: int
    mean_rollout_length: float
    max_rollout_length: int
    depth: int
    """Of the deepest node in the tree."""
    atoms_per_node: float
    """Mean number of true atoms over the new nodes."""
    ended: str
    random_action: bool
    """Whether the action was drawn blindly, no child of the root being known."""
    seconds: float
    emulator_seconds: float
    features_seconds: float
    novelty_seconds: float

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls)]


class Search:
    """One decision in the making: grows the tree by what simulator and features tell, and keeps count."""

    def __init__(
        self,
        config: PlannerConfig,
        tree: Tree,
        table: NoveltyTable,
        step: Step,
        atoms: Atoms,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self.config = config
        self.tree = tree
        self.table = table
        self.rng = rng
        self.rollout_lengths: list[int] = []
        self._step = step
        self._atoms = atoms
        self._clock = clock
        self._start = clock()
        self._kept = tree.size
        self._expanded: set[int] = set()
        self._atom_count = 0
        self._emulator_seconds = 0.0
        self._features_seconds = 0.0
        self._novelty_seconds = 0.0

    @property
    def new_nodes(self) -> int:
        return self.tree.size - self._kept

    def spent(self) -> str | None:
        """What the decision has run out of, if anything."""
        config = self.config
        if config.budget_nodes is not None and self.new_nodes >= config.budget_nodes:
            return NODES
        if config.max_tree_nodes is not None and self.tree.size >= config.max_tree_nodes:
            return TREE_NODES
        if config.budget_seconds is not None:
            return SECONDS if self._clock() - self._start >= config.budget_seconds else None
        return None

    def expand(self, parent: int, action: int) -> int:
        """Generates the child by an action not yet tried."""
        tree, config = self.tree, self.config
        before = self._clock()
        transition = self._step(tree.snapshots[parent], action)
        stepped = self._clock()
        atoms = self._atoms(transition.snapshot, tree.snapshots[parent])
        self._emulator_seconds += stepped - before
        self._features_seconds += self._clock() - stepped
        self._atom_count += len(atoms)
        self._expanded.add(parent)
        lost_life = transition.lives < tree.lives[parent]
        value = utility(transition.reward, lost_life, config.risk_averse, config.risk_alpha)
        return tree.add(parent, action, transition, atoms, value)

    def admit(self, node: int, depth: int) -> bool:
        """Whether a node not yet in the novelty table brings something new at `depth`; it is noted there."""
        before = self._clock()
        self.tree.witness[node] = self.table.admit(self.table.keys(self.tree.atoms[node]), depth)
        self._novelty_seconds += self._clock() - before
        return bool(self.tree.witness[node] != NO_KEY)

    def still_novel(self, node: int, depth: int) -> bool:
        """Whether a node met again still has a key that was not seen above `depth`.

        Depths in the table only fall within a decision, so while the key that last answered this still holds, no other
        need be looked at.
        """
        tree = self.tree
        witness = tree.witness[node]
        if witness != NO_KEY and self.table.holds(witness, depth):
            return True
        before = self._clock()
        tree.witness[node] = self.table.find(self.table.keys(tree.atoms[node]), depth)
        self._novelty_seconds += self._clock() - before
        return bool(tree.witness[node] != NO_KEY)

    def statistics(self, ended: str, random_action: bool) -> Statistics:
        lengths = self.rollout_lengths
        return Statistics(
            new_nodes=self.new_nodes,
            kept_nodes=self._kept - 1,
            expanded_nodes=len(self._expanded),
            rollouts=len(lengths),
            mean_rollout_length=sum(lengths) / len(lengths) if lengths else 0.0,
            max_rollout_length=max(lengths, default=0),
            depth=int(self.tree.depth[: self.tree.size].max()),
            atoms_per_node=self._atom_count / self.new_nodes if self.new_nodes else 0.0,
            ended=ended,
            random_action=random_action,
            seconds=self._clock() - self._start,
            emulator_seconds=self._emulator_seconds,
            features_seconds=self._features_seconds,
            novelty_seconds=self._novelty_seconds,
        )
