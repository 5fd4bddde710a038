"""What rewards are worth to the planner, and which action promises most."""

import numpy as np

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


def returns(tree: Tree, discount: float) -> np.ndarray:
    """float64[size]: a node's utility plus the discounted return of its best child, if it has any."""
    value = tree.utility[: tree.size].copy()
    best = np.full(tree.size, -np.inf)
    by_depth = np.argsort(tree.depth[: tree.size], kind="stable")
    level_starts = np.searchsorted(
        tree.depth[by_depth], np.arange(tree.depth[by_depth[-1]] + 1)
    ).tolist()
    for level in reversed(np.split(by_depth, level_starts[1:])):
        has_children = best[level] > -np.inf
        value[level] += np.where(has_children, discount * best[level], 0.0)
        if level[0] != ROOT:
            np.maximum.at(best, tree.parent[level], value[level])
    return value


def action_values(tree: Tree, discount: float) -> np.ndarray:
    """float64[num_actions]: the return of the root's child by each action; NaN where there is none."""
    children = tree.children[ROOT]
    return np.where(children == NO_NODE, np.nan, returns(tree, discount)[children])


def best_action(values: np.ndarray, rng: np.random.Generator) -> int:
    """An action of the highest value, ties broken uniformly; any action, if none has a value."""
    known = ~np.isnan(values)
    if not known.any():
        return int(rng.integers(len(values)))
    best = np.flatnonzero(known & (values == values[known].max()))
    return int(best[rng.integers(len(best))])
