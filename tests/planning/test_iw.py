import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.obvious import ObviousIW, play_side_by_side
from tests.planning.toy import Script, planner, random_worlds
from vaeiw_jax.planning import PlannerConfig

# From r: l and s. Below l: lx, which is new, and ly, which is not. Below s: nothing, for s is not new.
STEPS = {
    ("r", 0): ("l", 0.0, 0, False),
    ("r", 1): ("s", 0.0, 0, False),
    ("l", 0): ("lx", 3.0, 0, False),
    ("l", 1): ("ly", 0.0, 0, False),
    ("lx", 0): ("end", 0.0, 0, True),
    ("lx", 1): ("r", 0.0, 0, False),
    ("ly", 0): ("ly", 0.0, 0, False),
    ("ly", 1): ("ly", 0.0, 0, False),
}
ATOMS = {"r": [0], "l": [0, 1], "s": [1], "lx": [2], "ly": [0, 2], "end": [3]}


def iw_config(**others):
    return PlannerConfig(planner="iw", **{"budget_seconds": None, "budget_nodes": 100} | others)


def test_iw1_searches_the_hand_worked_example_in_the_order_worked_out():
    world = Script(STEPS, ATOMS, num_actions=2, num_features=4)
    decision = planner(world, iw_config(discount=1.0), "r").decide()
    assert world.asked == [("r", 0), ("r", 1), ("l", 0), ("l", 1), ("lx", 0), ("lx", 1)]
    assert decision.statistics.ended == "solved"
    assert decision.values.tolist() == [3.0, 0.0]
    assert decision.action == 0


def test_iw1_goes_on_breadth_first_from_the_branch_it_kept():
    world = Script(STEPS, ATOMS, num_actions=2, num_features=4)
    player = planner(world, iw_config(budget_nodes=4), "r")
    player.act(player.decide().action)
    assert world.asked == [("r", 0), ("r", 1), ("l", 0), ("l", 1)]
    decision = player.decide()
    # l, lx and ly are kept and none of them pruned, though ly brings nothing new: its actions wait their turn.
    assert world.asked[4:] == [("lx", 0), ("lx", 1), ("ly", 0), ("ly", 1)]
    assert decision.statistics.kept_nodes == 2


@pytest.mark.parametrize(("width", "goes_on"), [(1, False), (2, True)])
def test_a_pair_of_atoms_seen_apart_is_new_to_width_two_alone(width, goes_on):
    steps = STEPS | {("s", a): ("s", 0.0, 0, False) for a in (0, 1)}
    world = Script(steps, ATOMS | {"l": [1, 2], "s": [0, 1]}, num_actions=2, num_features=4)
    planner(world, iw_config(width=width), "r").decide()
    assert (("s", 0) in world.asked) == goes_on


@settings(max_examples=200, deadline=None)
@given(
    world=random_worlds,
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([1, 2]),
    caching=st.sampled_from(["partial", "none"]),
    budget_nodes=st.integers(1, 60),
    max_depth=st.sampled_from([1, 3, 32_767]),
)
def test_it_is_the_obvious_implementation_node_for_node(
    world, seed, width, caching, budget_nodes, max_depth
):
    config = PlannerConfig(
        planner="iw",
        width=width,
        caching=caching,
        budget_seconds=None,
        budget_nodes=budget_nodes,
        max_depth=max_depth,
    )
    fast = planner(world, config, world.start, seed, lives=world.start.lives)
    obvious = ObviousIW(world, config, np.random.default_rng(seed))
    play_side_by_side(fast, obvious)


@settings(max_examples=100, deadline=None)
@given(world=random_worlds, seed=st.integers(0, 99), width=st.sampled_from([1, 2]))
def test_every_expanded_node_but_the_root_was_the_first_with_some_tuple(world, seed, width):
    player = planner(world, iw_config(width=width), world.start, seed, lives=3)
    player.decide()
    tree, seen = player.tree, set()

    def atoms_of(node):
        parent = tree.snapshots[tree.parent[node]] if node else None
        return world.atoms(tree.snapshots[node], parent).tolist()

    for node in range(tree.size):  # nodes stand in the order they were generated
        atoms = sorted(atoms_of(node))
        tuples = {(a, b) if width == 2 else a for a in atoms for b in atoms}
        if node and (tree.children[node] >= 0).any():
            assert tuples - seen
        seen |= tuples


def test_breadth_first_means_no_node_is_deeper_than_a_later_one():
    world = Script(STEPS, ATOMS, num_actions=2, num_features=4)
    player = planner(world, iw_config(), "r")
    player.decide()
    depths = player.tree.depth[: player.tree.size]
    assert (np.diff(depths) >= 0).all()


@pytest.mark.parametrize("budget", [1, 3])
def test_the_budget_counts_new_nodes(budget):
    world = Script(STEPS, ATOMS, num_actions=2, num_features=4)
    statistics = planner(world, iw_config(budget_nodes=budget), "r").decide().statistics
    assert (statistics.ended, statistics.new_nodes) == ("nodes", budget)
