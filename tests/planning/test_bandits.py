"""Rollouts that choose their actions by what earlier ones of the decision returned."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.obvious import ObviousRolloutIW, play_side_by_side
from tests.planning.test_in_flight import EagerWorld, play
from tests.planning.toy import Corridor, PavedWay, planner, random_worlds
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import PlainWorld, PlannerConfig
from vaeiw_jax.planning.bandits import RULES, Arms, predictions
from vaeiw_jax.planning.rollout_iw import rollout_iw
from vaeiw_jax.planning.rules import Rules

rules = st.sampled_from(sorted(RULES))


class ObviousArm:
    """A Normal-Gamma posterior, updated by the rules as they are printed."""

    def __init__(self):
        self.mu, self.lam, self.alpha, self.beta = 0.0, 0.0, 0.5, 0.1
        self.returns = []

    def update(self, y):
        self.beta += self.lam * (y - self.mu) ** 2 / (2 * (self.lam + 1))
        self.mu = (self.lam * self.mu + y) / (self.lam + 1)
        self.lam += 1
        self.alpha += 0.5
        self.returns.append(y)

    def sample(self, rng):
        """A return by the posterior's predictive distribution, which is Student's."""
        scale = math.sqrt(self.beta * (self.lam + 1) / (self.alpha * self.lam))
        return self.mu + scale * rng.standard_t(2 * self.alpha)

    def samples_step_by_step(self, number, rng):
        tau = rng.gamma(self.alpha, 1 / self.beta, number)
        mean = rng.normal(self.mu, np.sqrt(1 / (self.lam * tau)))
        return rng.normal(mean, np.sqrt(1 / tau))


def best_of_a_sample(arms, rng):
    samples = [arm.sample(rng) for arm in arms]
    return samples.index(max(samples))


def obvious_top_two(arms, rng):
    take_the_best = rng.random() < 0.5
    best = best_of_a_sample(arms, rng)
    if take_the_best:
        return best
    others = [best_of_a_sample(arms, rng) for _ in range(4)]
    return next((other for other in others if other != best), best)


def obvious_ucb1(arms, rng, all_arms):
    seen = [y for arm in all_arms for y in arm.returns]
    spread = max(seen) - min(seen)
    bounds = []
    for arm in arms:
        mean = (arm.mu - min(seen)) / spread if spread else 0.0
        bounds.append(mean + math.sqrt(2 * math.log(len(seen)) / len(arm.returns)))
    return any_of_the_highest(bounds, rng)


def any_of_the_highest(values, rng):
    ties = [i for i, value in enumerate(values) if value == max(values)]
    return ties[rng.integers(len(ties))]


class ObviousBandits(ObviousRolloutIW):
    """A dictionary of arms at every node."""

    def search(self):
        self.arms = {}
        super().search()

    def arm(self, node, action):
        return self.arms.setdefault((id(node), action), ObviousArm())

    def choose(self, node, actions):
        if len(actions) == 1:
            return actions[0]
        untried = [action for action in actions if not self.arm(node, action).returns]
        if untried:
            return untried[self.rng.integers(len(untried))]
        arms = [self.arm(node, action) for action in actions]
        if self.config.action_choice == "top_two":
            chosen = obvious_top_two(arms, self.rng)
        elif self.config.action_choice == "thompson":
            chosen = best_of_a_sample(arms, self.rng)
        elif self.config.action_choice == "ucb1":
            all_arms = [self.arm(node, action) for action in range(self.world.num_actions)]
            chosen = obvious_ucb1(arms, self.rng, all_arms)
        else:
            chosen = any_of_the_highest([max(arm.returns) for arm in arms], self.rng)
        return actions[chosen]

    def learn(self, end):
        returned = 0.0
        while end.parent is not None:
            paid = end.reward if self.config.choice_returns == "reward" else end.utility
            returned = paid + self.config.discount * returned
            (action,) = (a for a, child in end.parent.children.items() if child is end)
            self.arm(end.parent, action).update(returned)
            end = end.parent


values = st.floats(-600_000, 600_000)


@given(returned=st.lists(st.tuples(values, values, values), min_size=1, max_size=20))
def test_posteriors_are_updated_as_the_paper_has_it(returned):
    arms, obvious = Arms(2, 3), [ObviousArm() for _ in range(3)]
    for row in returned:
        arms.update(np.array([1, 1, 1]), np.arange(3), np.array(row))
        for arm, y in zip(obvious, row, strict=True):
            arm.update(y)
    np.testing.assert_array_equal(arms.count[1], [arm.lam for arm in obvious])
    np.testing.assert_allclose((1 + arms.count[1]) / 2, [arm.alpha for arm in obvious])
    np.testing.assert_allclose(arms.mean[1], [arm.mu for arm in obvious], rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(arms.beta[1], [arm.beta for arm in obvious], rtol=1e-9)
    assert arms.highest[1].tolist() == [max(arm.returns) for arm in obvious]
    assert not arms.count[0].any()


@pytest.mark.parametrize("returned", [(3.0,), (0.0, 1.0, 5.0, 2.0)])
def test_samples_are_those_of_a_precision_then_a_mean_then_a_return(returned):
    arms, arm = Arms(1, 1), ObviousArm()
    for y in returned:
        arms.update(np.array([0]), np.array([0]), np.array([y]))
        arm.update(y)
    rng = np.random.default_rng(0)
    ours = predictions(arms, 0, np.array([0]), 50_000, rng)[:, 0]
    theirs = arm.samples_step_by_step(50_000, rng)
    # Equal distributions come so far apart once in 10,000 times. Without the spread of the mean, 1 / (lambda tau), it
    # would be 0.07 and 0.025.
    assert scipy.stats.ks_2samp(ours, theirs).statistic < 0.014


@settings(max_examples=60, deadline=None)
@given(
    world=random_worlds,
    seed=st.integers(0, 2**32 - 1),
    rule=rules,
    budget_nodes=st.integers(1, 80),
    risk_averse=st.booleans(),
    returns=st.sampled_from(["utility", "reward"]),
)
def test_it_is_the_obvious_implementation_node_for_node(
    world, seed, rule, budget_nodes, risk_averse, returns
):
    config = PlannerConfig(
        budget_seconds=None,
        budget_nodes=budget_nodes,
        action_choice=rule,
        discount=0.5,  # sums of such returns are exact, so that ties are ties in any order of adding
        risk_averse=risk_averse,
        choice_returns=returns,
    )
    fast = planner(world, config, world.start, seed, lives=world.start.lives)
    play_side_by_side(fast, ObviousBandits(world, config, np.random.default_rng(seed)))


@settings(max_examples=30, deadline=None)
@given(
    world=random_worlds,
    seed=st.integers(0, 2**32 - 1),
    rule=rules,
    number=st.integers(2, 8),
)
def test_in_flight_when_an_answer_is_found_makes_no_difference(world, seed, rule, number):
    config = PlannerConfig(
        budget_seconds=None, budget_nodes=40, rollouts_in_flight=number, action_choice=rule
    )
    late = play(world, config, seed, PlainWorld(world.step, world.atoms))
    early = play(world, config, seed, EagerWorld(world.step, world.atoms))
    assert late == early


@pytest.mark.parametrize("rule", RULES)
def test_a_rollout_in_flight_teaches_when_it_ends_and_every_one_teaches_once(rule):
    world = PavedWay(length=6)
    config = PlannerConfig(
        budget_seconds=None, budget_nodes=400, rollouts_in_flight=5, action_choice=rule
    )
    taught = []

    def watched(search):
        ended = rollout_iw(search)
        taught.append((search.choice.arms.count[0].sum(), len(search.rollout_lengths)))
        return ended

    playing = planner(world, config, world.start)
    playing._search = watched
    playing.decide()  # the arms of more nodes than a tree has room for at first
    ((rollouts, lengths),) = taught
    assert rollouts == lengths > 20


@pytest.mark.parametrize("rule", ["top_two", "thompson", "maximum"])
def test_a_reward_too_far_for_uniform_rollouts_with_as_many_nodes(rule):
    def found(choice):
        config = PlannerConfig(budget_seconds=None, budget_nodes=400, action_choice=choice)
        decisions = [planner(PavedWay(8), config, (), seed).decide() for seed in range(6)]
        return sum(bool(decision.values[0] > 50) for decision in decisions)

    assert found("uniform") == 0
    assert found(rule) >= 5  # but UCB1, whose bounds are wide for so few returns, finds it seldom


def test_every_decision_learns_anew():
    config = PlannerConfig(budget_seconds=None, budget_nodes=40, action_choice="top_two")
    known = []

    def watched(search):
        known.append(search.choice.arms.count.sum())
        ended = rollout_iw(search)
        known.append(search.choice.arms.count.sum())
        return ended

    playing = planner(Corridor(30), config, 0)
    playing._search = watched
    for _ in range(3):
        playing.act(playing.decide().action)
    assert known[::2] == [0, 0, 0]
    assert min(known[1::2]) > 0


def test_nonsense_is_refused_in_a_sentence():
    with pytest.raises(UserError, match="unknown action_choice 'toptwo'; did you mean 'top_two'"):
        PlannerConfig(action_choice="toptwo")
    for other in ("iw", "random"):
        with pytest.raises(UserError, match="thompson is for the planner rollout_iw"):
            PlannerConfig(planner=other, action_choice="thompson")
    with pytest.raises(UserError, match="unknown choice_returns 'rewards'; did you mean 'reward'"):
        PlannerConfig(action_choice="ucb1", choice_returns="rewards")
    with pytest.raises(UserError, match="changes nothing while action_choice is uniform"):
        PlannerConfig(choice_returns="reward")


@pytest.mark.parametrize("in_flight", [1, 6])
def test_what_a_ruled_out_node_had_returned_stays_finite(in_flight, monkeypatch):
    returns = []
    update = Arms.update
    monkeypatch.setattr(Arms, "update", lambda *a: (returns.extend(a[3].tolist()), update(*a)))
    ruled_out = 0
    for seed in range(20):
        config = PlannerConfig(
            budget_seconds=None,
            budget_nodes=30,
            action_choice="top_two",
            rollouts_in_flight=in_flight,
            rules=Rules(rule_out_known=True),
        )
        playing = planner(Corridor(9), config, 0, seed)
        for _ in range(3):
            action = playing.decide().action
            ruled_out += playing.tree.ruled_out[: playing.tree.size].sum()
            playing.act(action)
    assert ruled_out > 0
    assert np.isfinite(returns).all()
