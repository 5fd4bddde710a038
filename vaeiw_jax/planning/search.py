"""What every search is given: the tree it grows, the budget it may spend, and the record it leaves."""

import dataclasses
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vaeiw_jax.planning.action_choice import ActionChoice, action_choice
from vaeiw_jax.planning.config import PlannerConfig
from vaeiw_jax.planning.novelty import NO_KEY, NO_REWARD_GROUP, Novelty, NoveltyTable, reward_group
from vaeiw_jax.planning.policy import Policy, PolicyChoice, with_leaf_values
from vaeiw_jax.planning.returns import loses_life, utility
from vaeiw_jax.planning.rules import PUBLISHED
from vaeiw_jax.planning.tree import ROOT, Tree
from vaeiw_jax.planning.world import World

SECONDS = "seconds"
NODES = "nodes"
SOLVED = "solved"
TREE_NODES = "tree_nodes"
NO_SEARCH = "no_search"
BRANCH = "branch"
ENDINGS = (SOLVED, SECONDS, NODES, TREE_NODES, NO_SEARCH, BRANCH)
"""Why a decision ended: nothing was left to find, the budget was spent, the tree was full, there was no search, the
action was chosen before as part of a branch."""


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
    widened: int
    """How often novelty was widened."""
    seconds: float
    emulator_seconds: float
    features_seconds: float
    novelty_seconds: float

    @classmethod
    def names(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls)]


def no_search(search: "Search") -> str:
    """Looks at nothing: no child is known, so the action is drawn blindly."""
    return NO_SEARCH


class Search:
    """One decision in the making: grows the tree by what the world answers, and keeps count."""

    def __init__(
        self,
        config: PlannerConfig,
        tree: Tree,
        root_atoms: np.ndarray,
        novelty: Novelty,
        world: World,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.perf_counter,
        policy: Policy | None = None,
    ):
        self.config = config
        self.tree = tree
        self.novelty = novelty
        self.rng = rng
        self.choice: ActionChoice = action_choice(
            config.action_choice, tree, config.discount, rng, config.choice_returns
        )
        self._policy = policy
        if policy is not None:
            self.choice = PolicyChoice(policy, self.choice, self._atoms_of, rng)
        self._last_atoms: tuple[int, np.ndarray] = ROOT, root_atoms
        self.rollout_lengths: list[int] = []
        self._root_atoms = root_atoms
        self._world = world
        self._clock = clock
        self._start = clock()
        self._kept = tree.size
        if not novelty.keys_persist:
            tree.witness[: tree.size] = NO_KEY
        self._asked: deque[tuple[int, int]] = deque()
        self._expanded: set[int] = set()
        self._path_rewards = [0.0]
        self._atom_count = 0
        self._emulator_seconds = 0.0
        self._features_seconds = 0.0
        self._novelty_seconds = 0.0

    @property
    def in_flight(self) -> int:
        """Children asked for and not yet here."""
        return len(self._asked)

    @property
    def may_ask(self) -> bool:
        return self.in_flight < self.config.rollouts_in_flight

    def spent(self) -> str | None:
        """What the decision has run out of, if anything, counting what is in flight."""
        config = self.config
        size = self.tree.size + self.in_flight
        if config.budget_nodes is not None and size - self._kept >= config.budget_nodes:
            return NODES
        if config.max_tree_nodes is not None and size >= config.max_tree_nodes:
            return TREE_NODES
        if config.budget_seconds is not None:
            elapsed = self._clock() - self._start
            # What is in flight will be waited for, as long as a node took on average.
            waiting = self.in_flight * elapsed / max(1, self.tree.size - self._kept)
            return SECONDS if elapsed + waiting >= config.budget_seconds else None
        return None

    def free_actions(self, node: int) -> list[int]:
        """The open actions of a node, but for those whose child is in flight."""
        actions: list[int] = self.tree.open[node].nonzero()[0].tolist()
        asked = [action for parent, action in self._asked if parent == node]
        return [action for action in actions if action not in asked] if asked else actions

    def end_rollout(self, node: int) -> None:
        """Notes that a rollout from the root ended at this node."""
        self.rollout_lengths.append(int(self.tree.depth[node]))
        self.choice.learn(node)

    def ask(self, parent: int, action: int) -> None:
        """Sends for the child by an action not yet tried."""
        self._asked.append((parent, action))
        self._expanded.add(parent)
        self._world.ask(self.tree.snapshots[parent], action)

    def receive(self, depth: int | None = None) -> tuple[int, bool]:
        """Adds the child asked for longest, and notes its atoms at `depth`, or else at its own.

        Returns:
          The child, and whether it makes some key true that was not yet seen at that depth or above; of one that
          repeats its parent's atoms, whether it may be continued.
        """
        tree, config, rules = self.tree, self.config, self.config.rules
        parent, action = self._asked.popleft()
        transition, atoms, emulator_seconds, features_seconds = self._world.answer()
        self._emulator_seconds += emulator_seconds
        self._features_seconds += features_seconds
        self._atom_count += len(atoms)
        lives_before = tree.lives[ROOT if rules.losses == PUBLISHED else parent]
        penalised = rules.penalise_game_over and transition.terminal
        lost_life = loses_life(transition.lives, lives_before, penalised)
        value = utility(transition.reward, lost_life, config.risk_averse, config.risk_alpha)
        child = tree.add(parent, action, transition, value)
        repeats = (
            rules.follow_repeats is not None
            and not transition.terminal
            and _equal_sets(atoms, self._atoms_of(parent))
        )
        self._last_atoms = child, atoms
        if repeats:
            tree.repeat(child)
            return child, self._may_repeat(child)
        return child, self._note(child, atoms, int(tree.depth[child]) if depth is None else depth)

    def note(self, node: int, depth: int) -> bool:
        """Notes the atoms of a node kept from the decision before; returns whether one of its keys is new."""
        return self._note(node, self._atoms_of(node), depth)

    def still_novel(self, node: int, depth: int) -> bool:
        """Whether a node met again has a key that was not seen above `depth`.

        Depths in the table only fall within a decision. So while the key that last answered this holds, no other need
        be looked at: which is nearly always, and why nodes do not keep their atoms but are asked for them again.
        """
        if self.tree.repeated[node]:
            return self._may_repeat(node)
        table = self._table(node)
        witness = int(self.tree.witness[node])
        if witness != NO_KEY and table.holds(witness, depth):
            return True
        atoms = self._atoms_of(node)
        before = self._clock()
        witness = table.find(self.novelty.counting(atoms), depth)
        self._novelty_seconds += self._clock() - before
        self.tree.witness[node] = witness
        return witness != NO_KEY

    def prune(self, node: int) -> None:
        """Labels a node solved that was met again and is no longer novel.

        Where such nodes are ruled out they count as minus infinity from now on. That is a verdict by what this decision
        has seen: like the label it is forgotten when the next one begins, to which the node may be novel.
        """
        if self.config.rules.rule_out_known and not self.tree.repeated[node]:
            self.tree.ruled_out[node] = True
        self.tree.solve(node)

    def path_reward(self, node: int) -> float:
        """What the steps from the root to a node are worth together."""
        known, tree = self._path_rewards, self.tree
        for each in range(len(known), node + 1):  # parents stand before their children
            known.append(known[tree.parent[each]] + float(tree.utility[each]))
        return known[node]

    def widen(self) -> bool:
        """Goes on with the next larger notion of novelty; returns whether there is one.

        The tree is kept, and its labels are forgotten. The nodes of this decision are noted again in their order: those
        that are not new by the next notion are solved. Notions of width 1 include those before them; pairs do not, of
        which changes of bits are no part.
        """
        tree = self.tree
        if not self.novelty.can_widen:
            return False
        self.novelty.level += 1
        tree.clear_labels()
        tree.witness[: tree.size] = NO_KEY
        for node in range(self._kept, tree.size):
            depth = int(tree.depth[node])
            if not self._note(node, self._atoms_of(node), depth) or depth >= self.config.max_depth:
                tree.solve(node)
        return True

    def _note(self, node: int, atoms: np.ndarray, depth: int) -> bool:
        if self.tree.terminal[node] and not self.config.rules.terminals_write:
            return False
        before = self._clock()
        witness = self._table(node).admit(self.novelty.counting(atoms), depth)
        self._novelty_seconds += self._clock() - before
        self.tree.witness[node] = witness
        return witness != NO_KEY

    def _table(self, node: int) -> NoveltyTable:
        """Where the node's atoms are noted and looked up."""
        subtables = self.config.rules.novelty_subtables
        return self.novelty.table(
            reward_group(self.path_reward(node)) if subtables else NO_REWARD_GROUP
        )

    def _may_repeat(self, node: int) -> bool:
        """Whether a node that repeats its parent's atoms is continued: it is not where too many in a row do."""
        limit, repeats, tree = self.config.rules.follow_repeats, 0, self.tree
        while node != ROOT and tree.repeated[node]:
            repeats += 1
            node = int(tree.parent[node])
        return limit is not None and repeats <= limit

    def _atoms_of(self, node: int) -> np.ndarray:
        """The atoms of a node; the root's are known, for they may depend on a parent that is gone."""
        if node == ROOT:
            return self._root_atoms
        if node == self._last_atoms[0]:
            return self._last_atoms[1]
        before = self._clock()
        snapshots = self.tree.snapshots
        atoms = self._world.atoms(snapshots[node], snapshots[self.tree.parent[node]])
        self._features_seconds += self._clock() - before
        return atoms

    def valued_tree(self) -> Tree:
        """The tree to back up: where a policy knows what leaves are worth, it has a say."""
        if self._policy is None or not self._policy.values_leaves:
            return self.tree
        return with_leaf_values(self.tree, self._policy, self._atoms_of, self.config.discount)

    def statistics(self, ended: str, random_action: bool) -> Statistics:
        lengths = self.rollout_lengths
        new_nodes = self.tree.size - self._kept
        return Statistics(
            new_nodes=new_nodes,
            kept_nodes=self._kept - 1,
            expanded_nodes=len(self._expanded),
            rollouts=len(lengths),
            mean_rollout_length=sum(lengths) / len(lengths) if lengths else 0.0,
            max_rollout_length=max(lengths, default=0),
            depth=int(self.tree.depth[: self.tree.size].max()),
            atoms_per_node=self._atom_count / new_nodes if new_nodes else 0.0,
            ended=ended,
            random_action=random_action,
            widened=self.novelty.level,
            seconds=self._clock() - self._start,
            emulator_seconds=self._emulator_seconds,
            features_seconds=self._features_seconds,
            novelty_seconds=self._novelty_seconds,
        )


def _equal_sets(atoms: np.ndarray, others: np.ndarray) -> bool:
    """Whether the atoms are the same, in whatever order."""
    if len(atoms) != len(others):
        return False
    return np.array_equal(atoms, others) or np.array_equal(np.sort(atoms), np.sort(others))
