"""What rewards are worth to the planner, and which action promises most."""

from typing import Any

import numpy as np

from vaeiw_jax.planning.config import PlannerConfig
from vaeiw_jax.planning.rules import LONGEST, PUBLISHED
from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree

LIFE_LOSS = 10.0
"""A lost life weighs as much as losing this many points, times alpha."""


def utility(reward: float, lost_life: bool, risk_averse: bool, alpha: float) -> float:
    """A reward as a risk-averse planner sees it: losses are magnified by `alpha`, lost lives most."""
    if not risk_averse:
        return reward
    if lost_life:
        return -LIFE_LOSS * alpha
    return alpha * reward if reward < 0 else reward


def loses_life(lives: Any, lives_before: Any, penalised_end: Any) -> Any:
    """Whether there are fewer lives than before, or the game ended with some left and that counts as losing one.

    Numbers, or arrays of them.
    """
    return (lives < lives_before) | (penalised_end & (lives > 0))


def revalue(tree: Tree, config: PlannerConfig) -> None:
    """Sets what every node below the root is worth, as of now: from its reward, its lives and those of the root."""
    reward, lives = tree.reward[: tree.size], tree.lives[: tree.size]
    rules = config.rules
    before = lives[ROOT] if rules.losses == PUBLISHED else lives[tree.parent[: tree.size]]
    value = reward
    if config.risk_averse:
        lost_life = loses_life(lives, before, rules.penalise_game_over & tree.terminal[: tree.size])
        value = np.where(reward < 0, config.risk_alpha * reward, reward)
        value = np.where(lost_life, -LIFE_LOSS * config.risk_alpha, value)
    tree.utility[1 : tree.size] = value[1:]


def returns(
    tree: Tree, discount: float, untried_as_zero: bool = False, leaf_alpha: float = 1.0
) -> np.ndarray:
    """float64[size]: a node's utility plus the discounted return of its best child; minus infinity if it is ruled out.

    Args:
      tree: what is backed up.
      discount: gamma.
      untried_as_zero: where a node has a child, actions of it that are open and were not tried return 0.
      leaf_alpha: utilities below 0 of nodes without a child are multiplied by this.
    """
    size = tree.size
    value = np.where(tree.ruled_out[:size], -np.inf, tree.utility[:size])
    untried = tree.children[:size] == NO_NODE
    has_children = ~untried.all(axis=1)
    value[~has_children & (value < 0)] *= leaf_alpha
    best = np.full(size, -np.inf)
    if untried_as_zero:
        best[(untried & tree.open[:size]).any(axis=1)] = 0.0
    by_depth = np.argsort(tree.depth[:size], kind="stable")
    level_starts = np.searchsorted(
        tree.depth[by_depth], np.arange(tree.depth[by_depth[-1]] + 1)
    ).tolist()
    for level in reversed(np.split(by_depth, level_starts[1:])):
        value[level] += np.where(has_children[level], discount * best[level], 0.0)
        if level[0] != ROOT:
            np.maximum.at(best, tree.parent[level], value[level])
    return value


def values_below(tree: Tree, node: int, value: np.ndarray, untried_as_zero: bool) -> np.ndarray:
    """float64[num_actions]: the return of a node's child by each action; NaN where there is none.

    Where untried actions count as 0, those that are open do at a node that has any child.
    """
    children = tree.children[node]
    untried = children == NO_NODE
    values = np.where(untried, np.nan, value[children])
    if untried_as_zero and not untried.all():
        values[untried & tree.open[node]] = 0.0
    return values


def best_action(
    values: np.ndarray, rng: np.random.Generator, heights: np.ndarray | None = None
) -> int:
    """An action of the highest value, ties broken uniformly; any action, if none has a value.

    With `heights`, int[num_actions], ties go to the greatest of them first.
    """
    known = ~np.isnan(values)
    if not known.any():
        return int(rng.integers(len(values)))
    best = np.flatnonzero(known & (values == values[known].max()))
    if heights is not None:
        best = best[heights[best] == heights[best].max()]
    return int(best[rng.integers(len(best))])


def best_branch(
    tree: Tree, value: np.ndarray, config: PlannerConfig, rng: np.random.Generator
) -> list[int]:
    """The actions to play before planning again: the best one, and those that its return comes from.

    There are at most `branch_actions`, and fewer where the branch ends: at a node without a child, or where the best
    that can be done was never tried. If the root's best action promises 0, the branch may be the longest of those that
    do (`zero_ties`); otherwise ties are broken uniformly.

    Args:
      tree: of the decision.
      value: float64[size], the returns of its nodes.
      config: the rules.
      rng: breaks ties.
    """
    rules = config.rules
    values = values_below(tree, ROOT, value, rules.untried_as_zero)
    longest = rules.zero_ties == LONGEST and not np.isnan(values).all() and np.nanmax(values) == 0
    height = heights(tree) if longest else None
    branch = [best_action(values, rng, _heights_below(tree, ROOT, height))]
    node = int(tree.children[ROOT, branch[0]])
    while len(branch) < rules.branch_actions and node != NO_NODE:
        values = values_below(tree, node, value, rules.untried_as_zero)
        if np.isnan(values).all():
            break
        action = best_action(values, rng, _heights_below(tree, node, height))
        node = int(tree.children[node, action])
        if node != NO_NODE:
            branch.append(action)
    return branch


def heights(tree: Tree) -> np.ndarray:
    """int[size]: how far the deepest node below each lies below it."""
    height = np.zeros(tree.size, np.int64)
    for node in range(tree.size - 1, ROOT, -1):  # children stand after their parents
        parent = tree.parent[node]
        height[parent] = max(height[parent], height[node] + 1)
    return height


def _heights_below(tree: Tree, node: int, height: np.ndarray | None) -> np.ndarray | None:
    """int[num_actions]: the heights of a node's children, 0 where there is none."""
    if height is None:
        return None
    children = tree.children[node]
    return np.where(children == NO_NODE, 0, height[children])
