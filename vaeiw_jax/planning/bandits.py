"""Rollouts that learn within a decision (Ayton and Asai, ICAPS 2022): every node is a bandit, its actions the arms.

What an arm pays is the return of a rollout through it: the discounted sum of the utilities (rewards as the planner
values them) or of the rewards of the steps from the node to where the rollout ended, the step by the arm itself
included. A rollout ends at a node that is pruned or terminal. Such a node returns 0: nothing is added for what might
lie beyond.
"""

from collections.abc import Callable

import numpy as np

from vaeiw_jax.planning.tree import ROOT, Tree

UTILITY, REWARD = "utility", "reward"
RETURNS = (UTILITY, REWARD)
"""What is summed up: `Tree` has an array of either name."""

PRIOR_BETA = 0.1
"""Of the Normal-Gamma prior of every arm, whose other parameters are mu 0, lambda 0 and alpha 1/2."""

RESAMPLES = 4
"""How often top-two sampling looks for an arm other than the best."""


class Arms:
    """What is known of the arms of every node, one row for each node of a tree.

    The posterior of an arm's mean and precision is Normal-Gamma with mu = `mean`, lambda = `count`,
    alpha = (1 + `count`) / 2, beta = `beta`.

    Attributes:
      count: float64[capacity, num_actions], how many rollouts took the arm.
      mean: float64[capacity, num_actions], the mean of their returns.
      beta: float64[capacity, num_actions].
      lowest, highest: float64[capacity, num_actions], of their returns; infinite where there are none.
    """

    ARRAYS = (
        ("count", 0.0),
        ("mean", 0.0),
        ("beta", PRIOR_BETA),
        ("lowest", np.inf),
        ("highest", -np.inf),
    )

    count: np.ndarray
    mean: np.ndarray
    beta: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    def __init__(self, capacity: int, num_actions: int):
        for name, value in self.ARRAYS:
            setattr(self, name, np.full((capacity, num_actions), value))

    def grow(self, capacity: int) -> None:
        for name, value in self.ARRAYS:
            array = getattr(self, name)
            more = np.full((capacity - len(array), array.shape[1]), value)
            setattr(self, name, np.concatenate([array, more]))

    def update(self, nodes: np.ndarray, actions: np.ndarray, returned: np.ndarray) -> None:
        """Adds a return to each of some arms, no two of which are the same.

        Args:
          nodes, actions: int[n], the arms.
          returned: float64[n].
        """
        arms = nodes, actions
        count, mean = self.count[arms], self.mean[arms]
        off = returned - mean
        self.beta[arms] += count * off**2 / (2 * (count + 1))
        self.mean[arms] = mean + off / (count + 1)
        self.count[arms] = count + 1
        self.lowest[arms] = np.minimum(self.lowest[arms], returned)
        self.highest[arms] = np.maximum(self.highest[arms], returned)


Rule = Callable[[Arms, int, np.ndarray, np.random.Generator], int]
"""(arms, node, int[n]: its open actions, all of which were tried, generator) -> the index of one of the actions."""


def predictions(
    arms: Arms, node: int, actions: np.ndarray, number: int, rng: np.random.Generator
) -> np.ndarray:
    """float64[number, n]: returns that each of the n actions might have next, drawn from its posterior.

    Drawing tau ~ Gamma(alpha, rate beta), a mean ~ N(mu, 1 / (lambda tau)) and a return ~ N(mean, 1 / tau) is drawing
    mu + s t, where s^2 = beta (lambda + 1) / (alpha lambda), which is 2 beta / lambda with these alphas, and t is of
    Student's distribution with 2 alpha degrees of freedom.
    """
    count = arms.count[node][actions]
    scale = np.sqrt(2 * arms.beta[node][actions] / count)
    return arms.mean[node][actions] + scale * rng.standard_t(count + 1, (number, len(actions)))


def top_two(arms: Arms, node: int, actions: np.ndarray, rng: np.random.Generator) -> int:
    """The best of a sample or, as often, the best of another sample, of up to four, that is not the same."""
    number = 1 if rng.random() < 0.5 else 1 + RESAMPLES
    best = predictions(arms, node, actions, number, rng).argmax(axis=1)
    return int(best[(best != best[0]).argmax()])  # the first that differs, or else best[0] itself


def thompson(arms: Arms, node: int, actions: np.ndarray, rng: np.random.Generator) -> int:
    """The best of a sample."""
    return int(predictions(arms, node, actions, 1, rng).argmax())


def ucb1(arms: Arms, node: int, actions: np.ndarray, rng: np.random.Generator) -> int:
    """The highest upper confidence bound (Auer, Cesa-Bianchi and Fischer, 2002), ties broken uniformly.

    Returns are scaled so that the lowest and the highest of all rollouts through the node are 0 and 1.
    """
    lowest, highest = arms.lowest[node].min(), arms.highest[node].max()
    count = arms.count[node][actions]
    mean = (arms.mean[node][actions] - lowest) / ((highest - lowest) or 1.0)
    return _any_highest(mean + np.sqrt(2 * np.log(arms.count[node].sum()) / count), rng)


def maximum(arms: Arms, node: int, actions: np.ndarray, rng: np.random.Generator) -> int:
    """The highest return that any rollout had, ties broken uniformly."""
    return _any_highest(arms.highest[node][actions], rng)


def _any_highest(values: np.ndarray, rng: np.random.Generator) -> int:
    ties = np.flatnonzero(values == values.max())
    return int(ties[rng.integers(len(ties))])


RULES: dict[str, Rule] = {
    "top_two": top_two,
    "thompson": thompson,
    "ucb1": ucb1,
    "maximum": maximum,
}


class Bandits:
    """A bandit at every node of a tree. They know nothing at first: each decision has its own.

    Args:
      rule: which arm to pull.
      tree: it may grow.
      discount: of what the steps of a rollout pay.
      rng: draws.
      returns: what rollouts return, one of `RETURNS`.
    """

    def __init__(
        self,
        rule: Rule,
        tree: Tree,
        discount: float,
        rng: np.random.Generator,
        returns: str = UTILITY,
    ):
        self._rule = rule
        self._tree = tree
        self._discount = discount
        self._rng = rng
        self._returns = returns
        self.arms = Arms(len(tree.parent), tree.num_actions)

    def choose(self, node: int, actions: list[int]) -> int:
        """One of the actions: any that no rollout took yet, or else by the rule."""
        self._grow()
        if len(actions) == 1:
            return actions[0]
        count = self.arms.count[node].tolist()
        untried = [action for action in actions if not count[action]]
        if untried:
            return untried[self._rng.integers(len(untried))]
        return actions[self._rule(self.arms, node, np.array(actions), self._rng)]

    def learn(self, end: int) -> None:
        """Adds what a rollout from the root to `end` returned to the arms it took."""
        self._grow()
        tree, path = self._tree, []
        while end != ROOT:
            path.append(end)
            end = int(tree.parent[end])
        returned, returns = 0.0, []
        for paid in getattr(tree, self._returns)[path].tolist():  # from the end to the root
            returned = paid + self._discount * returned
            returns.append(returned)
        self.arms.update(tree.parent[path], tree.action[path], np.array(returns))

    def _grow(self) -> None:
        """Makes arms for nodes that the tree has got since; their choices need not have been asked for here."""
        capacity = len(self._tree.parent)
        if capacity > len(self.arms.count):
            self.arms.grow(capacity)
