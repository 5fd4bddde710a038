"""Deciding and acting: what `Planner` keeps between decisions, and what it hands over when saved."""

import numpy as np
import pytest

from tests.planning.toy import Corridor, RandomWorld, planner
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import PlainWorld, PlannerConfig, Transition

NODES = PlannerConfig(budget_seconds=None, budget_nodes=20)


def without_caching(nodes: int = 20) -> PlannerConfig:
    return PlannerConfig(budget_seconds=None, budget_nodes=nodes, caching="none")


def test_a_search_that_does_not_say_why_it_ended_is_refused_in_a_sentence():
    player = planner(Corridor(12), NODES, start=0, search=lambda search: None)
    with pytest.raises(
        UserError, match=r"a search returns why it ended, one of solved, .* not None"
    ):
        player.decide()


def test_a_search_that_leaves_what_it_asked_for_is_refused_in_a_sentence():
    def hasty(search):
        search.ask(0, 0)
        search.ask(0, 1)
        search.receive()
        return "nodes"

    player = planner(Corridor(12), NODES, start=0, search=hasty)
    with pytest.raises(UserError, match=r"receives all it asked for .* left 1 in flight"):
        player.decide()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([0], "not list"),
        (np.array([]), "not an array of float64"),
        (np.array([True, False]), "np.flatnonzero.* not an array of bool"),
        (np.array([[0, 1]]), "flat NumPy array"),
        (np.array([0, 12]), "below num_features=12, and these go from 0 to 12"),
        (np.array([-1, 3]), "these go from -1 to 3"),
    ],
)
def test_what_cannot_be_atoms_is_refused_in_a_sentence(given, sentence):
    world = Corridor(12)
    world.atoms = lambda room, previous: given
    with pytest.raises(UserError, match=sentence):
        planner(world, NODES, start=0).decide()


def test_acting_keeps_the_chosen_branch_with_its_snapshots():
    player = planner(Corridor(12), NODES, start=0)
    player.decide()
    child = int(player.tree.children[0, 1])
    below = {player.tree.snapshots[node] for node in range(1, player.tree.size)}
    transition = player.act(1)
    assert transition.snapshot == 1
    assert player.tree.snapshots[0] == 1
    assert child > 0
    assert player.tree.size > 1
    assert set(player.tree.snapshots) <= below


def test_without_caching_only_the_new_root_is_left():
    player = planner(Corridor(12), without_caching(), start=0)
    player.decide()
    player.act(1)
    assert player.tree.size == 1
    assert player.tree.snapshots == [1]
    assert player.decide().statistics.kept_nodes == 0


def test_an_action_never_searched_is_stepped_when_it_is_taken():
    player = planner(Corridor(5), PlannerConfig(planner="random"), start=3)
    assert np.isnan(player.decide().values).all()
    assert player.act(1) == Transition(4, 1.0, 0, False)


def test_a_reward_is_reported_as_the_world_gives_it_risk_averse_or_not():
    world = RandomWorld(seed=5, num_places=8, num_actions=3, num_features=6)
    player = planner(world, NODES, world.start, lives=3)
    for _ in range(5):
        before = player.tree.snapshots[0]
        action = player.decide().action
        assert player.act(action) == world.step(before, action)


@pytest.mark.parametrize("config", [NODES, without_caching()])
def test_a_restored_planner_decides_as_the_one_that_was_saved(config):
    world = RandomWorld(seed=1, num_places=30, num_actions=4, num_features=9)
    player, other = (planner(world, config, world.start, seed, lives=3) for seed in (0, 1))
    for _ in range(3):
        player.act(player.decide().action)
    other.restore(player.to_arrays(), list(player.tree.snapshots))
    for _ in range(3):
        ours, theirs = player.decide(), other.decide()
        assert ours.action == theirs.action
        np.testing.assert_array_equal(ours.values, theirs.values)
        player.act(ours.action)
        other.act(theirs.action)


def test_answers_come_in_the_order_of_the_questions_with_what_they_cost():
    ticks = iter(range(100))
    world = PlainWorld(Corridor(9).step, Corridor(9).atoms, clock=lambda: float(next(ticks)))
    world.ask(2, 1)
    world.ask(5, 0)
    first, second = world.answer(), world.answer()
    assert (first.transition.snapshot, second.transition.snapshot) == (3, 5)
    assert (first.atoms.tolist(), second.atoms.tolist()) == ([3], [5])
    assert first.emulator_seconds == first.features_seconds == 1.0


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"planner": "rolout_iw"}, "did you mean 'rollout_iw'"),
        ({"caching": "some"}, "unknown caching"),
        ({"width": 3}, "width must be 1 or 2"),
        ({"budget_seconds": None}, "no budget is given"),
        ({"budget_seconds": 0}, "budget_seconds must be above 0"),
        ({"budget_nodes": 0}, "budget_nodes must be at least 1"),
        ({"discount": 1.5}, "discount must be above 0 and at most 1"),
        ({"risk_alpha": 0.5}, "risk_alpha must be at least 1"),
        ({"rollouts_in_flight": 0}, "rollouts_in_flight must be from 1"),
        ({"max_depth": 0}, "max_depth must be from 1"),
        ({"max_tree_nodes": 1}, "max_tree_nodes must be at least 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused_in_a_sentence(settings, complaint):
    with pytest.raises(UserError, match=complaint):
        PlannerConfig(**settings)
