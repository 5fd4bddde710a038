"""Rollouts that follow a policy: how it is asked, mixed and restricted, and how its values are backed up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.test_in_flight import EagerWorld
from tests.planning.toy import Corridor, CuedWay, planner, random_worlds
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import PlainWorld, Planner, PlannerConfig
from vaeiw_jax.planning.action_choice import Uniform
from vaeiw_jax.planning.policy import PolicyChoice
from vaeiw_jax.planning.tree import NO_NODE, ROOT


class GivenPolicy:
    """Logits and values by a function of atoms."""

    def __init__(self, logits, share=1.0, value=None):
        self._logits, self.share, self._value = logits, share, value
        self.values_leaves = value is not None
        self.asked = []

    def logits(self, atoms):
        self.asked.append(atoms.tolist())
        return np.array(self._logits(atoms), np.float32)

    def value(self, atoms):
        return self._value(atoms)


def choice(policy, rng):
    return PolicyChoice(policy, Uniform(rng), lambda node: np.array([node], np.int32), rng)


def test_actions_are_drawn_from_the_softmax_of_the_open_ones():
    chosen = choice(GivenPolicy(lambda atoms: [2.0, 50.0, 1.0, 0.0]), np.random.default_rng(0))
    drawn = [chosen.choose(7, [0, 2, 3]) for _ in range(20_000)]
    odds = np.exp([2.0, 1.0, 0.0])
    # 0.015 is four standard errors and more.
    np.testing.assert_allclose(
        np.bincount(drawn, minlength=4) / 20_000,
        np.insert(odds / odds.sum(), 1, 0.0),
        atol=0.015,
    )


def test_the_policy_makes_its_share_of_the_choices():
    policy = GivenPolicy(lambda atoms: [0.0, 100.0], share=0.25)
    chosen = choice(policy, np.random.default_rng(0))
    drawn = [chosen.choose(7, [0, 1]) for _ in range(20_000)]
    assert np.mean(drawn) == pytest.approx(0.25 + 0.75 / 2, abs=0.015)


def test_a_node_is_looked_at_once_a_decision():
    world = CuedWay(5)
    policy = GivenPolicy(lambda atoms: np.zeros(3))
    playing = planner(world, PlannerConfig(budget_seconds=None, budget_nodes=60), (), policy=policy)
    playing.decide()
    assert len(policy.asked) == len({tuple(atoms) for atoms in policy.asked}) > 10
    asked = len(policy.asked)
    playing.decide()  # the policy may have learned meanwhile
    assert policy.asked[asked] == policy.asked[0]


@pytest.mark.parametrize("rule", ["uniform", "top_two"])
def test_a_policy_that_reads_cues_goes_where_others_get_lost(rule):
    world = CuedWay(12)

    def cued(atoms):
        return 10.0 * (np.arange(3) == atoms.min())

    def found(policy):
        config = PlannerConfig(budget_seconds=None, budget_nodes=60, action_choice=rule)
        plans = [planner(world, config, (), seed, policy=policy).decide() for seed in range(5)]
        return sum(bool(np.nanmax(plan.values) > 50) for plan in plans)

    assert found(None) == 0
    assert found(GivenPolicy(cued)) == 5


@settings(max_examples=30, deadline=None)
@given(world=random_worlds, seed=st.integers(0, 2**32 - 1), number=st.integers(1, 8))
def test_when_an_answer_is_found_makes_no_difference(world, seed, number):
    config = PlannerConfig(
        budget_seconds=None, budget_nodes=40, rollouts_in_flight=number, action_choice="thompson"
    )

    def play(around):
        weights = np.random.default_rng(0).normal(size=(world.num_features, world.num_actions))
        policy = GivenPolicy(
            lambda atoms: weights[atoms].sum(axis=0), share=0.5, value=lambda atoms: len(atoms)
        )
        player = Planner(
            config,
            around,
            num_actions=world.num_actions,
            num_features=world.num_features,
            snapshot=world.start,
            lives=world.start.lives,
            rng=np.random.default_rng(seed),
            policy=policy,
        )
        trail = []
        for _ in range(4):
            decision = player.decide()
            trail.append((decision.action, str(decision.values), player.tree.size))
            if player.act(decision.action).terminal:
                break
        return trail

    assert play(PlainWorld(world.step, world.atoms)) == play(EagerWorld(world.step, world.atoms))


@settings(max_examples=50, deadline=None)
@given(world=random_worlds, seed=st.integers(0, 2**32 - 1), budget=st.integers(1, 60))
def test_values_stand_in_at_leaves_that_are_open_and_nowhere_else(world, seed, budget):
    config = PlannerConfig(budget_seconds=None, budget_nodes=budget)
    policy = GivenPolicy(
        lambda atoms: np.zeros(world.num_actions), value=lambda atoms: 3.0 * len(atoms)
    )
    playing = planner(world, config, world.start, seed, lives=3, policy=policy)

    def settled(node):
        tree = playing.tree
        above = node != ROOT and settled(int(tree.parent[node]))
        return above or tree.terminal[node] or tree.solved[node]

    def worth(node):
        tree = playing.tree
        children = [child for child in tree.children[node].tolist() if child != NO_NODE]
        if children:
            beyond = max(map(worth, children))
        elif settled(node):
            beyond = 0.0
        else:
            parent = tree.snapshots[tree.parent[node]]
            beyond = 3.0 * len(world.atoms(tree.snapshots[node], parent))
        return tree.utility[node] + 0.99 * beyond

    for _ in range(3):
        decision = playing.decide()
        for action, child in enumerate(playing.tree.children[ROOT].tolist()):
            if child == NO_NODE:
                assert np.isnan(decision.values[action])
            else:
                assert decision.values[action] == pytest.approx(worth(child))
        if playing.act(decision.action).terminal:
            break


def test_a_policy_is_refused_where_no_rollouts_are():
    policy = GivenPolicy(lambda atoms: np.zeros(2))
    config = PlannerConfig(planner="iw", budget_seconds=None, budget_nodes=10)
    with pytest.raises(UserError, match="a policy is for the planner rollout_iw"):
        planner(Corridor(5), config, 0, policy=policy)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_bandits_beside_a_policy_know_the_nodes_of_a_large_tree(share):
    config = PlannerConfig(budget_seconds=None, budget_nodes=700, action_choice="top_two")
    policy = GivenPolicy(lambda atoms: np.zeros(2), share=share)
    for seed in range(5):
        decision = planner(Corridor(900), config, 0, seed, policy=policy).decide()
        assert decision.statistics.new_nodes == 700
