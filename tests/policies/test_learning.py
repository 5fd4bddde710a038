"""The policy that the planner asks, the one that learns and one in PyTorch: the same function, the same gradients."""

import jax
import numpy as np
import pytest
import torch

from tests.planning.toy import CuedWay, planner
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.policies import Network, PolicyConfig, PolicyLearner, learning
from vaeiw_jax.policies.network import TABLE_ROWS, num_rows, rows_of, sum_of_rows, symexp, symlog
from vaeiw_jax.policies.replay import Decisions, Replay

ACTIONS = 4


def parameters(num_features, hidden, value, rng):
    rows, outputs = num_rows(num_features), ACTIONS + value
    shapes = {"weights": (hidden or rows, outputs), "bias": (outputs,)}
    if hidden:
        shapes |= {"hidden_weights": (rows, hidden), "hidden_bias": (hidden,)}
    return {n: rng.normal(size=shape).astype(np.float32) for n, shape in shapes.items()}


def decisions(num_features, number, rng):
    """A batch, and the atoms it was made of."""
    replay = Replay(number, num_rows(num_features), ACTIONS)
    made = []
    for _ in range(number):
        size = rng.integers(1, 200)
        atoms = np.sort(rng.choice(num_features, size, replace=False)).astype(np.int32)
        tried = rng.random(ACTIONS) < 0.6
        tried[:2] = True
        target = rng.random(ACTIONS) * tried
        replay.add(rows_of(atoms, num_features), target / target.sum(), tried, rng.normal())
        made.append(atoms)
    return Decisions(*(array[:number] for array in replay._kept)), made


@pytest.mark.parametrize("num_features", [300, 200_000])
@pytest.mark.parametrize("hidden", [0, 5])
def test_the_planner_asks_the_function_that_learned(num_features, hidden):
    rng = np.random.default_rng(0)
    known = parameters(num_features, hidden, True, rng)
    batch, made = decisions(num_features, 6, rng)
    ours = jax.jit(learning.outputs, static_argnums=2)(known, batch.bits, num_rows(num_features))
    network = Network(known, num_features, ACTIONS)
    for atoms, expected in zip(made, np.asarray(ours), strict=True):
        np.testing.assert_allclose(network.logits(atoms), expected[:ACTIONS], rtol=1e-4, atol=1e-5)
        assert network.value(atoms) == pytest.approx(symexp(expected[ACTIONS]), rel=1e-3)


def test_rows_are_summed_whatever_their_number():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 3)).astype(np.float32)
    for number in (0, 1, 63, 64, 65, 500):
        rows = rng.permutation(500)[:number]
        np.testing.assert_allclose(
            sum_of_rows(table, rows), table[rows].sum(axis=0), rtol=1e-4, atol=1e-4
        )


def test_twenty_million_features_share_a_table():
    atoms = np.random.default_rng(0).choice(20_598_848, 30_000, replace=False).astype(np.int32)
    rows = rows_of(atoms, 20_598_848)
    assert rows.min() >= 0
    assert rows.max() < TABLE_ROWS
    # Thrown at random, 30,000 balls leave (1 - 1/65,536)^30,000 of 65,536 boxes empty.
    assert len(rows) == pytest.approx(65_536 * (1 - np.exp(-30_000 / 65_536)), rel=0.02)


@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize("value", [False, True])
def test_loss_and_gradients_are_those_of_pytorch(hidden, value):
    rng = np.random.default_rng(1)
    known = parameters(300, hidden, value, rng)
    batch, made = decisions(300, 8, rng)
    differentiate = jax.jit(jax.value_and_grad(learning.loss), static_argnums=2)
    loss, gradients = differentiate(known, batch, 300)

    theirs = {name: torch.tensor(array, requires_grad=True) for name, array in known.items()}
    losses = []
    for i, atoms in enumerate(made):
        x = torch.zeros(300)
        x[torch.from_numpy(atoms).long()] = 1 / len(atoms) ** 0.5
        if hidden:
            x = torch.relu(x @ theirs["hidden_weights"] + theirs["hidden_bias"])
        y = x @ theirs["weights"] + theirs["bias"]
        tried = torch.from_numpy(batch.tried[i])
        target = torch.from_numpy(batch.target[i])[tried]
        losses.append(torch.nn.functional.cross_entropy(y[:ACTIONS][tried], target))
        if value:
            losses[-1] = losses[-1] + (y[ACTIONS] - float(batch.value[i])) ** 2
    mean = torch.stack(losses).mean()
    mean.backward()
    assert float(loss) == pytest.approx(mean.item(), rel=1e-5)
    for name, array in theirs.items():
        np.testing.assert_allclose(gradients[name], array.grad, rtol=1e-4, atol=1e-6)


def test_weights_decay_and_gradients_are_clipped():
    config = PolicyConfig(policy_share=0.5, policy_weight_decay=0.1, policy_learning_rate=0.01)
    known = {"weights": np.ones((8, ACTIONS), np.float32), "bias": np.zeros(ACTIONS, np.float32)}
    optimiser = learning.optimiser(config)
    nothing = jax.tree.map(np.zeros_like, known)
    update, state = jax.jit(optimiser.update), jax.jit(optimiser.init)(known)
    updates, _ = update(nothing, state, known)
    np.testing.assert_allclose(updates["weights"], -0.001, rtol=1e-5)
    steep = jax.tree.map(lambda array: array + 1e6, nothing)
    _, state = update(steep, state, known)
    squares = sum(float(np.sum(leaf)) for leaf in jax.tree.leaves(state))
    assert squares == pytest.approx(0.01 * 40**2, rel=1e-4)  # of RMSProp: 1 - 0.99 of them


def test_returns_of_every_size_are_predicted_on_one_scale():
    for value in (-500_000.0, -1.0, 0.0, 0.5, 12_345.0):
        assert symexp(float(symlog(np.array(value)))) == pytest.approx(value)
    assert np.isfinite(symexp(1e9))


def test_the_newest_decisions_are_kept():
    replay, rng = Replay(3, 8, 2), np.random.default_rng(0)
    for number in range(5):
        replay.add(np.array([number]), np.array([1.0, 0.0]), np.array([True, True]), number)
    assert len(replay) == 3
    assert set(replay.sample((200,), rng).value.tolist()) == {2.0, 3.0, 4.0}


def test_what_was_learned_finds_what_uniform_rollouts_do_not():
    """From episodes on a short way, where uniform rollouts see which actions pay, to one too long for them."""
    config = PolicyConfig(
        policy_share=0.5, policy_learning_rate=0.02, policy_batch_size=16, policy_target="best"
    )
    learner = PolicyLearner(config, CuedWay.num_features, 3, np.random.default_rng(0))
    nodes = PlannerConfig(budget_seconds=None, budget_nodes=60)
    for seed in range(6):
        playing = planner(CuedWay(6), nodes, (), seed, policy=learner.policy)
        for _ in range(6):
            atoms, decision = playing.root_atoms, playing.decide()
            learner.learn(atoms, decision.values)
            playing.act(decision.action)

    def found(policy):
        plans = [planner(CuedWay(12), nodes, (), s, policy=policy).decide() for s in range(5)]
        return sum(bool(np.nanmax(plan.values) > 50) for plan in plans)

    assert found(None) == 0
    learner.policy.share = 1.0
    assert found(learner.policy) >= 4
    learned = np.array(learner.losses)
    learned = learned[~np.isnan(learned)]
    assert learned[-3:].mean() < learned[:3].mean()


def test_a_decision_with_one_action_teaches_nothing():
    config = PolicyConfig(policy_share=0.5, policy_batch_size=1)
    learner = PolicyLearner(config, 10, 3, np.random.default_rng(0))
    learner.learn(np.array([1, 2], np.int32), np.array([np.nan, 4.0, np.nan]))
    assert np.isnan(learner.losses).tolist() == [True]
    assert not learner.policy.parameters["weights"].any()
    learner.learn(np.array([1, 2], np.int32), np.array([np.nan, 4.0, 1.0]))
    assert learner.losses[1] == pytest.approx(np.log(2), rel=1e-1)
    weights = learner.policy.parameters["weights"]
    assert weights[1:3, 1].min() > 0 > weights[1:3, 2].max()
    assert not weights[:, 0].any()  # of the action that was not tried
    assert not weights[3:].any()  # of atoms that were not true


def test_a_decision_whose_actions_are_all_ruled_out_teaches_nothing():
    config = PolicyConfig(policy_share=0.5, policy_batch_size=1, policy_replay=4)
    learner = PolicyLearner(config, 10, ACTIONS, np.random.default_rng(0))
    atoms = np.array([1, 4], np.int32)
    learner.learn(atoms, np.full(ACTIONS, -np.inf))
    learner.learn(atoms, np.array([-np.inf, 2.0, np.nan, np.nan]))
    assert np.isnan(learner.losses[0])
    assert np.isfinite(learner.losses[1])
    assert all(np.isfinite(array).all() for array in learner.policy.parameters.values())
