import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaeiw_jax.planning.returns import best_action, returns, utility, values_below
from vaeiw_jax.planning.tree import ROOT, Tree
from vaeiw_jax.planning.world import Transition


def tree_of(edges, num_actions=3):
    """A tree from (parent, action, utility) triples, in order."""
    tree = Tree(num_actions, None, lives=0)
    for parent, action, value in edges:
        tree.add(parent, action, Transition(None, value, 0, False), value)
    return tree


def action_values(tree, discount, untried_as_zero=False, leaf_alpha=1.0):
    value = returns(tree, discount, untried_as_zero, leaf_alpha)
    return values_below(tree, ROOT, value, untried_as_zero)


def test_the_returns_of_a_hand_worked_tree():
    #        root
    #   0: 1      1: 0      2: -1
    #   |         |   \
    #   0: 2      0: 4 1: 8
    #                  |
    #                  2: -16
    tree = tree_of([(0, 0, 1), (0, 1, 0), (0, 2, -1), (1, 0, 2), (2, 0, 4), (2, 1, 8), (6, 2, -16)])
    assert returns(tree, 0.5).tolist() == [1.0, 2.0, 2.0, -1.0, 2.0, 4.0, 0.0, -16.0]
    assert action_values(tree, 0.5).tolist() == [2.0, 2.0, -1.0]


def test_actions_without_a_child_have_no_value():
    values = action_values(tree_of([(0, 1, 7)]), 0.9)
    assert np.isnan(values).tolist() == [True, False, True]
    assert best_action(values, np.random.default_rng(0)) == 1


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.floats(-9, 9), st.integers(0, 2)), max_size=40),
    st.sampled_from([1.0, 0.99, 0.3]),
)
def test_returns_are_those_of_the_recursion(draws, discount):
    tree = tree_of([])
    for parent, value, action in draws:
        parent %= tree.size
        if tree.children[parent, action] < 0:
            tree.add(parent, action, Transition(None, value, 0, False), value)

    def value(node):
        children = [value(child) for child in tree.children[node] if child >= 0]
        return float(tree.utility[node]) + (discount * max(children) if children else 0.0)

    assert returns(tree, discount).tolist() == [value(node) for node in range(tree.size)]


@pytest.mark.parametrize(
    ("reward", "lost_life", "averse", "expected"),
    [
        (5.0, False, True, 5.0),
        (-2.0, False, True, -100_000.0),
        (0.0, True, True, -500_000.0),
        (30.0, True, True, -500_000.0),
        (-2.0, True, False, -2.0),
        (30.0, True, False, 30.0),
    ],
)
def test_risk_aversion_by_hand(reward, lost_life, averse, expected):
    assert utility(reward, lost_life, averse, alpha=50_000.0) == expected


def test_ties_are_broken_uniformly():
    rng = np.random.default_rng(0)
    values = np.array([1.0, 3.0, np.nan, 3.0, 3.0])
    counts = np.bincount([best_action(values, rng) for _ in range(3000)], minlength=5)
    assert counts[[0, 2]].tolist() == [0, 0]
    assert (np.abs(counts[[1, 3, 4]] - 1000) < 120).all()


def test_without_any_value_every_action_is_as_likely():
    rng = np.random.default_rng(0)
    counts = np.bincount([best_action(np.full(4, np.nan), rng) for _ in range(4000)], minlength=4)
    assert (np.abs(counts - 1000) < 120).all()
