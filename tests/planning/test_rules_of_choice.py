"""The rules of other programs about which action is chosen: each on a tree or a world where it changes the action."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.test_returns import action_values
from tests.planning.test_rules import config
from tests.planning.toy import Corridor, RandomWorld, Script, planner
from vaeiw_jax.planning.returns import best_action, returns, revalue, utility
from vaeiw_jax.planning.tree import Tree
from vaeiw_jax.planning.world import Transition

INF = float("inf")


def tree_of(edges, num_actions=3, lives=0):
    """A tree from (parent, action, reward) triples, in order."""
    tree = Tree(num_actions, None, lives=lives)
    for parent, action, reward in edges:
        tree.add(parent, action, Transition(None, reward, lives, False), reward)
    return tree


# Back-up


def test_an_untried_sibling_promises_nothing_worse_than_zero():
    """Action 0 leads to a place whose only tried way out costs much; action 1 costs a little."""
    tree = tree_of([(0, 0, 0.0), (1, 0, -100.0), (0, 1, -1.0)])
    rng = np.random.default_rng(0)
    values = action_values(tree, 1.0)
    assert values[:2].tolist() == [-100.0, -1.0]
    assert best_action(values, rng) == 1
    values = action_values(tree, 1.0, untried_as_zero=True)
    assert values.tolist() == [0.0, -1.0, 0.0]  # the last was never tried itself
    assert {best_action(values, rng) for _ in range(30)} == {0, 2}


def test_a_leaf_has_no_untried_siblings_below_it_and_a_tried_out_node_none_beside_it():
    tree = tree_of([(0, 0, -5.0), (0, 1, -1.0), (1, 0, -2.0), (1, 1, -3.0)], num_actions=2)
    assert returns(tree, 1.0, untried_as_zero=True).tolist() == [-1.0, -7.0, -1.0, -2.0, -3.0]
    assert np.isnan(action_values(tree_of([]), 1.0, untried_as_zero=True)).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 99), st.sampled_from([-INF, -2.5, 0.0, 3.0]), st.integers(0, 2)),
        max_size=40,
    ),
    st.sampled_from([1.0, 0.3]),
    st.booleans(),
    st.sampled_from([1.0, 50.0]),
)
def test_the_back_up_is_the_recursion_with_minus_infinity_too(draws, discount, untried, leaf_alpha):
    tree = tree_of([])
    for parent, reward, action in draws:
        parent %= tree.size
        if tree.children[parent, action] < 0:
            tree.add(parent, action, Transition(None, 0.0, 0, False), reward)

    def value(node):
        own = float(tree.utility[node])
        below = [value(child) for child in tree.children[node] if child >= 0]
        if not below:
            return own * leaf_alpha if own < 0 else own
        return own + discount * max(below + [0.0] * (untried and len(below) < 3))

    found = returns(tree, discount, untried, leaf_alpha)
    assert found.tolist() == [value(node) for node in range(tree.size)]
    assert not np.isnan(found).any()
    values = action_values(tree, discount, untried, leaf_alpha)
    assert 0 <= best_action(values, np.random.default_rng(0)) < 3


def test_where_all_is_ruled_out_any_action_is_as_good():
    values = np.array([-INF, -INF, -INF])
    rng = np.random.default_rng(0)
    assert {best_action(values, rng) for _ in range(30)} == {0, 1, 2}


# Ties at zero

ZEROS = {
    ("r", 0): ("a", 0.0, 0, False),
    ("r", 1): ("b", 0.0, 0, False),
    ("r", 2): ("c", -1.0, 0, False),
    ("a", 0): ("end", 0.0, 0, True),
    ("b", 1): ("b1", 0.0, 0, False),
    ("c", 2): ("c1", 0.0, 0, False),
    ("b1", 1): ("end", 0.0, 0, True),
    ("c1", 2): ("c2", 0.0, 0, False),
    ("c2", 2): ("end", 0.0, 0, True),
}
DEAD_ENDS = {
    (s, a): ("end", 0.0, 0, True) for s in ("a", "b", "c", "b1", "c1", "c2") for a in (0, 1, 2)
}


def zeros(**paying):
    steps = DEAD_ENDS | ZEROS | paying.get("steps", {})
    names = ["r", "a", "b", "c", "b1", "c1", "c2", "end"]
    atoms = {name: [i] for i, name in enumerate(names)}
    return Script(steps, atoms, num_actions=3, num_features=len(names))


def test_at_zero_the_longest_branch_is_taken_and_otherwise_any():
    """a and b promise 0, and b goes on for longer; c is longer still, but costs a point."""

    def actions(world, ties):
        return {
            planner(world, config(zero_ties=ties), "r", seed).decide().action for seed in range(12)
        }

    assert actions(zeros(), "uniform") == {0, 1}
    assert actions(zeros(), "longest") == {1}
    paying = zeros(steps={("a", 0): ("end", 5.0, 0, True), ("b", 0): ("end", 5.0, 0, True)})
    assert actions(paying, "longest") == {0, 1}  # what promises more than 0 is drawn uniformly


# Several actions a decision


def test_a_branch_is_played_as_far_as_it_goes_without_planning_again():
    world = zeros(steps={("b1", 1): ("end", 5.0, 0, True)})
    player = planner(world, config(branch_actions=5), "r")
    actions, endings, searched = [], [], []
    terminal = False
    while not terminal:
        decision = player.decide()
        searched.append(decision.statistics.new_nodes > 0)
        endings.append(decision.statistics.ended)
        actions.append(decision.action)
        terminal = player.act(decision.action).terminal
    assert actions == [1, 1, 1]
    assert endings == ["solved", "branch", "branch"]
    assert searched == [True, False, False]


def test_planning_begins_again_where_the_branch_ends_or_another_action_is_taken():
    world = RandomWorld(seed=3, num_places=40, num_actions=3, num_features=12)
    player = planner(world, config(branch_actions=3, budget_nodes=30), world.start, lives=3)
    assert player.decide().statistics.ended != "branch"
    player.act(player.decide().action)  # decided once more, since nobody acted
    assert player.decide().statistics.ended == "branch"
    other = (player.decide().action + 1) % 3
    player.act(other)
    assert player.decide().statistics.ended != "branch"


@pytest.mark.parametrize("caching", ["partial", "none"])
def test_a_planner_saved_within_a_branch_goes_on_in_it(caching):
    chosen = config(branch_actions=4, caching=caching, follow_repeats=1)
    player, other = (planner(Corridor(12), chosen, 0, seed) for seed in (0, 1))
    assert player.act(player.decide().action).snapshot == 1
    other.restore(player.to_arrays(), list(player.tree.snapshots))
    endings = []
    for _ in range(6):
        ours, theirs = player.decide(), other.decide()
        assert ours.action == theirs.action
        assert ours.statistics.ended == theirs.statistics.ended
        endings.append(ours.statistics.ended)
        assert player.act(ours.action).snapshot == other.act(theirs.action).snapshot
    assert endings == ["branch", "branch", "branch", "solved", "branch", "branch"]


# Losses


def test_a_game_that_ends_with_lives_left_may_count_as_a_lost_life():
    steps = {("r", 0): ("landed", 30.0, 2, True), ("r", 1): ("a", 0.0, 3, True)}
    steps |= {("r", 2): ("over", 0.0, 0, True)}
    world = Script(steps, {"r": [0], "landed": [1], "a": [2], "over": [3]}, 3, 4)
    usual = planner(world, config(), "r", lives=2).decide()
    assert usual.values.tolist() == [30.0, 0.0, -500_000.0]
    strict = planner(world, config(penalise_game_over=True), "r", lives=2).decide()
    assert strict.values.tolist() == [-500_000.0] * 3
    without_lives = Script({("r", 0): ("over", 1.0, 0, True)}, {"r": [0], "over": [1]}, 1, 2)
    decision = planner(without_lives, config(penalise_game_over=True), "r", lives=0).decide()
    assert decision.values.tolist() == [1.0]  # such a game has no lives to be left


LOSING = {
    ("r", 0): ("hurt", 0.0, 2, False),
    ("r", 1): ("end", -10.0, 3, True),
    ("hurt", 0): ("gold", 900_000.0, 2, True),
    ("hurt", 1): ("gold", 900_000.0, 2, True),
}
LOOKS = {"r": [0], "hurt": [1], "end": [2], "gold": [3]}


@pytest.mark.parametrize(
    ("losses", "value", "action"), [("step", 400_000.0, 0), ("published", -1_000_000.0, 1)]
)
def test_the_published_planner_penalises_every_node_after_a_lost_life(losses, value, action):
    world = Script(LOSING, LOOKS, 2, 4)
    player = planner(world, config(losses=losses, discount=1.0), "r", lives=3)
    decision = player.decide()
    assert decision.values.tolist() == [value, -500_000.0]
    assert decision.action == action
    player.act(0)
    assert (player.decide().values == 900_000.0).all()  # lost before the root, it is no matter


@pytest.mark.parametrize(("losses", "factor"), [("step", 1.0), ("published", 50_000.0)])
def test_without_risk_aversion_the_published_planner_still_multiplies_points_lost_at_leaves(
    losses, factor
):
    steps = {
        ("r", 0): ("a", -1.0, 0, False),
        ("r", 1): ("end", -1.5, 0, True),
        ("a", 0): ("end", -1.0, 0, True),
        ("a", 1): ("end", 0.0, 0, True),
    }
    world = Script(steps, {"r": [0], "a": [1], "end": [2]}, 2, 3)
    chosen = config(losses=losses, risk_averse=False, discount=1.0)
    assert planner(world, chosen, "r").decide().values.tolist() == [-1.0, -1.5 * factor]


def test_kept_nodes_are_worth_what_new_ones_would_be():
    rng = np.random.default_rng(0)
    for losses in ("step", "published"):
        for averse in (True, False):
            penalise = averse
            chosen = config(risk_averse=averse, losses=losses, penalise_game_over=penalise)
            tree = Tree(3, None, lives=3)
            for _ in range(60):
                node, action = rng.integers(tree.size), rng.integers(3)
                if tree.children[node, action] < 0:
                    lives = int(tree.lives[node] - rng.integers(2))
                    reward = float(rng.integers(-2, 3))
                    tree.add(node, action, Transition(None, reward, lives, lives < 2), np.nan)
            revalue(tree, chosen)
            for node in range(1, tree.size):
                before = 0 if losses == "published" else tree.parent[node]
                lost = tree.lives[node] < tree.lives[before]
                lost |= penalise and tree.terminal[node] and tree.lives[node] > 0
                reward = float(tree.reward[node])
                assert tree.utility[node] == utility(reward, lost, averse, 50_000.0)
