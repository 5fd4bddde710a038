"""The rules of other programs about what is searched, and all of them together against the obvious search."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.obvious import (
    ObviousIW,
    ObviousIWByReward,
    ObviousRolloutIW,
    play_side_by_side,
)
from tests.planning.test_in_flight import EagerWorld, play
from tests.planning.toy import Script, planner, random_worlds
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import PlainWorld, PlannerConfig
from vaeiw_jax.planning.rules import Rules
from vaeiw_jax.planning.world import Transition


def config(budget_nodes=100, planner="rollout_iw", **others):
    names = {rule.name for rule in dataclasses.fields(Rules)}
    rules = Rules(**{name: others.pop(name) for name in list(others) if name in names})
    return PlannerConfig(
        planner=planner, budget_seconds=None, budget_nodes=budget_nodes, rules=rules, **others
    )


general_rules = st.fixed_dictionaries(
    {
        "untried_as_zero": st.booleans(),
        "zero_ties": st.sampled_from(["uniform", "longest"]),
        "terminals_write": st.booleans(),
        "novelty_subtables": st.booleans(),
        "branch_actions": st.sampled_from([1, 1, 3]),
        "losses": st.sampled_from(["step", "published"]),
    }
)
rules_of_rollouts = st.fixed_dictionaries(
    {"follow_repeats": st.sampled_from([None, 0, 1, 2]), "rule_out_known": st.booleans()}
)
of_the_planner = st.fixed_dictionaries(
    {
        "budget_nodes": st.integers(1, 60),
        "caching": st.sampled_from(["partial", "none"]),
        "discount": st.sampled_from([1.0, 0.5]),
    }
)
risk = st.sampled_from(
    [{}, {"risk_averse": False}, {"penalise_game_over": True, "risk_alpha": 2.0}]
)
seeds = st.integers(0, 2**32 - 1)


def side_by_side(obvious, world, seed, chosen):
    fast = planner(world, chosen, world.start, seed, lives=world.start.lives)
    play_side_by_side(fast, obvious(world, chosen, np.random.default_rng(seed)))


@settings(max_examples=80, deadline=None)
@given(random_worlds, seeds, of_the_planner, general_rules, rules_of_rollouts, risk)
def test_rollouts_are_those_of_the_obvious_search_by_any_rules(world, seed, how, rules, more, risk):
    side_by_side(ObviousRolloutIW, world, seed, config(**how, **rules, **more, **risk))


@settings(max_examples=40, deadline=None)
@given(random_worlds, seeds, of_the_planner, general_rules, st.booleans(), st.integers(1, 5))
def test_breadth_first_searches_are_the_obvious_ones_however_much_is_asked_ahead(
    world, seed, how, rules, by_reward, in_flight
):
    name, obvious = ("iw_by_reward", ObviousIWByReward) if by_reward else ("iw", ObviousIW)
    chosen = config(planner=name, rollouts_in_flight=in_flight, **how, **rules)
    side_by_side(obvious, world, seed, chosen)


@settings(max_examples=20, deadline=None)
@given(random_worlds, seeds, general_rules, rules_of_rollouts, st.integers(2, 8))
def test_several_rollouts_depend_on_nothing_but_the_seed(world, seed, rules, more, in_flight):
    chosen = config(budget_nodes=40, rollouts_in_flight=in_flight, **rules, **more)
    late = play(world, chosen, seed, PlainWorld(world.step, world.atoms))
    early = play(world, chosen, seed, EagerWorld(world.step, world.atoms))
    assert repr(late) == repr(early)


# Repeated screens


class Waiting:
    """A door that opens after three waits at it, on screens that look alike; behind it is a reward. Action 1 leaves."""

    num_actions, num_features = 2, 3

    def step(self, state, action):
        if action == 1 or state == "gone":
            return Transition("gone", 0.0, 0, False)
        waited = state + 1
        return Transition(waited, 10.0 * (waited == 3), 0, False)

    def atoms(self, state, previous):
        return np.array([2 if state == "gone" else int(state >= 3)], np.int32)


def test_a_repeated_screen_is_continued_with_the_same_action_for_a_while():
    def decision(**rules):
        player = planner(Waiting(), config(**rules), 0)
        return player.decide(), player.tree

    _, tree = decision(follow_repeats=1)
    assert 2 in tree.snapshots
    assert 3 not in tree.snapshots  # the second repetition was one too many
    chosen, tree = decision(follow_repeats=2)
    assert chosen.values[0] > 0
    assert chosen.action == 0
    waiting = [tree.snapshots.index(waited) for waited in (1, 2)]
    assert (tree.children[waiting, 1] < 0).all()  # where it waits, nothing else is tried
    assert tree.children[tree.snapshots.index(3), 1] > 0
    chosen, tree = decision(follow_repeats=0)
    assert 2 not in tree.snapshots


def test_a_repetition_is_counted_from_the_root_on():
    player = planner(Waiting(), config(follow_repeats=1), 0)
    player.decide()
    player.act(0)
    assert player.decide().values[0] > 0  # one wait is past, and two are left
    assert player.tree.children[0, 1] > 0  # a root tries everything


def test_a_repeated_node_has_no_untried_siblings_to_hope_for():
    class Trap(Waiting):
        def step(self, state, action):
            after = super().step(state, action)
            return after._replace(reward=-after.reward)

    chosen = config(follow_repeats=2, untried_as_zero=True, risk_averse=False, budget_nodes=3)
    for seed in range(20):
        player = planner(Trap(), chosen, 0, seed)
        decision = player.decide()
        if 3 in player.tree.snapshots:
            assert decision.values.tolist() == [-10.0 * 0.99**2, 0.0]
            return
    pytest.fail("no seed waited three times")


# Nodes met again


def test_a_node_met_again_that_is_no_longer_novel_is_ruled_out_for_this_decision():
    """d is first found below a, at depth 2, and then right below the root: what a promised is gone."""
    steps = {
        ("r", 0): ("a", 0.0, 0, False),
        ("r", 1): ("d2", 1.0, 0, True),
        ("a", 0): ("d", 3.0, 0, False),
        ("a", 1): ("e", 0.0, 0, True),
        ("d", 0): ("f", 0.0, 0, False),
        ("d", 1): ("f", 0.0, 0, False),
        ("f", 0): ("f", 0.0, 0, False),
        ("f", 1): ("f", 0.0, 0, False),
    }
    atoms = {"r": [0], "a": [1, 2], "d": [3], "d2": [3], "e": [4], "f": [4, 5]}
    world = Script(steps, atoms, num_actions=2, num_features=6)
    ruled_out = 0
    for seed in range(30):
        usual = planner(world, config(discount=1.0), "r", seed)
        strict = planner(world, config(discount=1.0, rule_out_known=True), "r", seed)
        usual.decide()
        decision = strict.decide()
        if not strict.tree.ruled_out[: strict.tree.size].any():
            continue
        ruled_out += 1
        (node,) = np.flatnonzero(strict.tree.ruled_out[: strict.tree.size])
        assert strict.tree.snapshots[node] == "d"
        assert decision.values.tolist() == [0.0, 1.0]  # by e, and not the 3 of d
        assert decision.action == 1
        strict.act(0)
        strict.decide()
        assert not strict.tree.ruled_out[strict.tree.snapshots.index("d")]  # forgotten
    assert ruled_out


# Terminal nodes and the table


@pytest.mark.parametrize(("terminals_write", "goes_on"), [(True, False), (False, True)])
def test_what_is_seen_at_the_end_of_a_game_may_be_left_out_of_the_table(terminals_write, goes_on):
    steps = {
        ("r", 0): ("end", 0.0, 0, True),
        ("r", 1): ("a", 0.0, 0, False),
        ("a", 0): ("b", 5.0, 0, True),
        ("a", 1): ("b", 5.0, 0, True),
    }
    world = Script(steps, {"r": [0], "end": [1], "a": [1], "b": [2]}, 2, 3)
    chosen = config(planner="iw", terminals_write=terminals_write)
    decision = planner(world, chosen, "r").decide()
    assert (decision.values[1] > 0) == goes_on


# Tables by reward


@pytest.mark.parametrize(("subtables", "best"), [(False, 4.0), (True, 5.0)])
def test_with_a_table_for_each_reward_what_was_seen_on_a_poor_path_is_new_on_a_rich_one(
    subtables, best
):
    steps = {
        ("r", 0): ("poor", 0.0, 0, False),
        ("r", 1): ("rich", 4.0, 0, False),
        ("poor", 0): ("x", 0.0, 0, True),
        ("poor", 1): ("x", 0.0, 0, True),
        ("rich", 0): ("x", 1.0, 0, True),
        ("rich", 1): ("x", 1.0, 0, True),
    }
    world = Script(steps, {"r": [0], "poor": [1], "rich": [1], "x": [2]}, 2, 3)
    chosen = config(planner="iw", discount=1.0, novelty_subtables=subtables)
    assert planner(world, chosen, "r").decide().values[1] == best


# IW by reward


def test_of_equal_depths_the_one_whose_path_pays_most_is_continued_first():
    steps = {("r", a): (f"n{a}", float(a), 0, False) for a in (0, 1, 2)}
    steps |= {(f"n{a}", b): (f"n{a}{b}", 0.0, 0, True) for a in (0, 1, 2) for b in (0, 1, 2)}
    names = [
        "r",
        *(f"n{a}" for a in (0, 1, 2)),
        *(f"n{a}{b}" for a in (0, 1, 2) for b in (0, 1, 2)),
    ]
    atoms = {name: [i] for i, name in enumerate(names)}
    asked = {}
    for name in ("iw", "iw_by_reward"):
        world = Script(steps, atoms, 3, len(names))
        planner(world, config(planner=name, budget_nodes=6), "r").decide()
        asked[name] = [state for state, _ in world.asked[3:]]
    assert asked == {"iw": ["n0"] * 3, "iw_by_reward": ["n2"] * 3}


def test_kept_tips_are_pruned_where_they_are_not_novel_in_their_turn():
    """l is kept with lx and ly below. ly shows nothing that lx does not, and is not continued; to `iw` it is kept."""
    steps = {
        ("r", 0): ("l", 1.0, 0, False),
        ("r", 1): ("s", 0.0, 0, True),
        ("l", 0): ("lx", 3.0, 0, False),
        ("l", 1): ("ly", 0.0, 0, False),
        ("lx", 0): ("end", 0.0, 0, True),
        ("lx", 1): ("end", 0.0, 0, True),
        ("ly", 0): ("end", 0.0, 0, True),
        ("ly", 1): ("end", 0.0, 0, True),
    }
    atoms = {"r": [0], "l": [1, 2], "s": [3], "lx": [4], "ly": [4], "end": [5]}
    asked = {}
    for name in ("iw", "iw_by_reward"):
        world = Script(steps, atoms, 2, 6)
        player = planner(world, config(planner=name, budget_nodes=4), "r")
        player.act(player.decide().action)
        player.decide()
        asked[name] = {state for state, _ in world.asked[4:]}
    assert asked == {"iw": {"lx", "ly"}, "iw_by_reward": {"lx"}}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"zero_ties": "long"}, "did you mean 'longest'"),
        ({"losses": "pubished"}, "did you mean 'published'"),
        ({"follow_repeats": -1}, "follow_repeats must be 0 or more"),
        ({"branch_actions": 0}, "branch_actions must be at least 1"),
        ({"planner": "iw", "follow_repeats": 2}, "follow_repeats is for the planner rollout_iw"),
        ({"planner": "iw", "rule_out_known": True}, "rule_out_known is for the planner rollout_iw"),
        ({"planner": "random", "zero_ties": "longest"}, "changes nothing for the planner random"),
        ({"planner": "random", "branch_actions": 2}, "changes nothing for the planner random"),
        ({"widen": True, "follow_repeats": 2}, "follow_repeats and widen cannot be combined"),
        ({"risk_averse": False, "penalise_game_over": True}, "without risk_averse"),
    ],
)
def test_rules_that_make_no_sense_are_refused_in_a_sentence(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        config(**settings)
