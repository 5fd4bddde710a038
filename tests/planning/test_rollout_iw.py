import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.obvious import ObviousRolloutIW, play_side_by_side
from tests.planning.toy import Corridor, RandomWorld, Script, planner, random_worlds
from vaeiw_jax.planning import PlannerConfig


@settings(max_examples=200, deadline=None)
@given(
    world=random_worlds,
    seed=st.integers(0, 2**32 - 1),
    width=st.sampled_from([1, 2]),
    caching=st.sampled_from(["partial", "none"]),
    budget_nodes=st.integers(1, 60),
    risk_averse=st.booleans(),
    discount=st.sampled_from([1.0, 0.99, 0.5]),
    max_depth=st.sampled_from([1, 3, 32_767]),
)
def test_it_is_the_obvious_implementation_node_for_node(
    world, seed, width, caching, budget_nodes, risk_averse, discount, max_depth
):
    config = PlannerConfig(
        width=width,
        caching=caching,
        budget_seconds=None,
        budget_nodes=budget_nodes,
        risk_averse=risk_averse,
        discount=discount,
        max_depth=max_depth,
    )
    fast = planner(world, config, world.start, seed, lives=world.start.lives)
    obvious = ObviousRolloutIW(world, config, np.random.default_rng(seed))
    play_side_by_side(fast, obvious)


def test_rollouts_find_a_reward_that_breadth_first_search_cannot_reach():
    corridor = Corridor(length=30)
    settings = {"budget_seconds": None, "budget_nodes": 60}
    by_rollouts = planner(corridor, PlannerConfig(planner="rollout_iw", **settings), 0).decide()
    assert by_rollouts.values[1] > 0
    assert by_rollouts.action == 1

    branching = WideCorridor(length=30)
    breadth_first = planner(branching, PlannerConfig(planner="iw", **settings), (0, 0)).decide()
    assert not (breadth_first.values > 0).any()
    by_rollouts = planner(
        branching, PlannerConfig(planner="rollout_iw", **settings), (0, 0)
    ).decide()
    assert (by_rollouts.values > 0).any()


class WideCorridor(Corridor):
    """As a corridor, but five doors lead on from each room, each to a place that looks like no other."""

    num_actions = 5

    def __init__(self, length: int):
        super().__init__(length)
        self.num_features = length * 10_000

    def step(self, state, action):
        room, history = state
        there = min(room + 1, self.length - 1)
        after = super().step(room, 1)
        return after._replace(snapshot=(there, (history * 5 + action + 1) % 10_000))

    def atoms(self, state, previous):
        room, history = state
        return np.array([room * 10_000 + history], np.int32)


def test_a_solved_root_ends_the_decision():
    world = Corridor(length=4)
    config = PlannerConfig(budget_seconds=None, budget_nodes=10_000)
    statistics = planner(world, config, 0).decide().statistics
    assert statistics.ended == "solved"
    assert statistics.new_nodes < 20


def test_a_decision_ends_when_its_nodes_are_spent():
    world = Corridor(length=1000)
    statistics = (
        planner(world, PlannerConfig(budget_seconds=None, budget_nodes=7), 0).decide().statistics
    )
    assert (statistics.ended, statistics.new_nodes) == ("nodes", 7)


def test_a_decision_ends_when_its_seconds_are_spent():
    now = iter(np.arange(0, 1000, 0.01))
    config = PlannerConfig(budget_seconds=0.5)
    corridor = Corridor(length=10_000)
    decision = planner(corridor, config, 0, clock=lambda: float(next(now))).decide()
    assert decision.statistics.ended == "seconds"
    assert 0.5 <= decision.statistics.seconds < 0.7


def test_of_two_budgets_the_first_to_be_spent_counts():
    config = PlannerConfig(budget_seconds=1000, budget_nodes=3)
    statistics = planner(Corridor(length=100), config, 0).decide().statistics
    assert (statistics.ended, statistics.new_nodes) == ("nodes", 3)


def test_a_decision_ends_when_the_tree_is_full():
    config = PlannerConfig(budget_seconds=None, budget_nodes=100, max_tree_nodes=11)
    player = planner(Corridor(length=1000), config, 0)
    for _ in range(5):
        decision = player.decide()
        assert decision.statistics.ended == "tree_nodes"
        assert player.tree.size == 11
        player.act(decision.action)


def test_no_node_lies_below_the_depth_limit():
    config = PlannerConfig(budget_seconds=None, budget_nodes=200, max_depth=5)
    player = planner(Corridor(length=1000), config, 0)
    for _ in range(5):
        assert player.decide().statistics.depth <= 5
        player.act(1)


def test_without_a_child_in_time_it_acts_at_random_and_says_so():
    late = iter([0.0] + [10.0] * 10)
    player = planner(Corridor(length=9), PlannerConfig(), 0, clock=lambda: next(late))
    decision = player.decide()
    assert decision.statistics.random_action
    assert decision.statistics.new_nodes == 0
    assert np.isnan(decision.values).all()
    assert player.act(decision.action).snapshot == decision.action


def test_the_statistics_of_a_hand_worked_decision():
    """From a, action 0 leads to b and on to c, where nothing is new; action 1 ends the game."""
    steps = {
        ("a", 0): ("b", 0.0, 0, False),
        ("a", 1): ("end", 1.0, 0, True),
        ("b", 0): ("c", 5.0, 0, False),
        ("b", 1): ("c", 5.0, 0, False),
    }
    atoms = {"a": [0], "b": [1, 2], "c": [1], "end": [3]}
    world = Script(steps, atoms, num_actions=2, num_features=4)
    config = PlannerConfig(budget_seconds=None, budget_nodes=100, discount=0.5)
    decision = planner(world, config, "a").decide()
    statistics = decision.statistics
    assert statistics.ended == "solved"
    assert statistics.new_nodes == 4
    assert statistics.kept_nodes == 0
    assert statistics.expanded_nodes == 2
    assert statistics.depth == statistics.max_rollout_length == 2
    assert statistics.rollouts == 3  # b and one c; the other c; the end
    assert statistics.mean_rollout_length == pytest.approx(5 / 3)
    assert statistics.atoms_per_node == pytest.approx((2 + 1 + 1 + 1) / 4)
    assert decision.values.tolist() == [2.5, 1.0]


def test_equal_seeds_play_alike():
    world = RandomWorld(seed=5, num_places=40, num_actions=4, num_features=12)
    config = PlannerConfig(budget_seconds=None, budget_nodes=20)

    def actions(seed):
        player = planner(world, config, world.start, seed, lives=3)
        return [player.act(player.decide().action).snapshot.place for _ in range(5)]

    assert actions(1) == actions(1)
    assert len({tuple(actions(seed)) for seed in range(10)}) > 1
