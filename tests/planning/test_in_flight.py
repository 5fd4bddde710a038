"""Several rollouts at once: what may not change, and what may not depend on chance."""

from collections import deque

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.planning.obvious import ObviousIW, play_side_by_side
from tests.planning.toy import RandomWorld, planner, random_worlds
from vaeiw_jax.planning import PlainWorld, Planner, PlannerConfig, Transition
from vaeiw_jax.planning.novelty import Notion, Novelty
from vaeiw_jax.planning.rollout_iw import rollout_iw
from vaeiw_jax.planning.search import Search
from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree

in_flight = st.integers(2, 8)


class EagerWorld(PlainWorld):
    """Finds the answer as soon as the question is asked, as a fast worker would; counts what is under way."""

    def __init__(self, step, atoms):
        super().__init__(step, atoms)
        self._answers = deque()
        self.most_under_way = 0
        self.questions = []

    def ask(self, snapshot, action):
        super().ask(snapshot, action)
        self.questions.append((snapshot, action))
        self._answers.append(super().answer())
        self.most_under_way = max(self.most_under_way, len(self._answers))

    def answer(self):
        return self._answers.popleft()


def play(world, config, seed, around):
    """Decisions and trees over a few decisions."""
    player = Planner(
        config,
        around,
        num_actions=world.num_actions,
        num_features=world.num_features,
        snapshot=world.start,
        lives=world.start.lives,
        rng=np.random.default_rng(seed),
    )
    trail = []
    for _ in range(5):
        decision = player.decide()
        arrays = {name: array.tolist() for name, array in player.tree.to_arrays().items()}
        trail.append((decision.action, arrays, decision.statistics.rollouts))
        if player.act(decision.action).terminal:
            break
    return trail


@settings(max_examples=100, deadline=None)
@given(world=random_worlds, seed=st.integers(0, 2**32 - 1), number=in_flight)
def test_when_an_answer_is_found_makes_no_difference(world, seed, number):
    config = PlannerConfig(budget_seconds=None, budget_nodes=40, rollouts_in_flight=number)
    late = play(world, config, seed, PlainWorld(world.step, world.atoms))
    early = play(world, config, seed, EagerWorld(world.step, world.atoms))
    assert late == early


@settings(max_examples=100, deadline=None)
@given(
    world=random_worlds,
    seed=st.integers(0, 2**32 - 1),
    number=in_flight,
    budget=st.integers(1, 60),
    width=st.sampled_from([1, 2]),
)
@example(world=RandomWorld(0, 39, 2, 4), seed=0, number=2, budget=9, width=2)  # kept keys of pairs
def test_rollouts_in_flight_obey_every_rule(world, seed, number, budget, width):
    """Watched step by step, over decisions that keep a branch of the tree: novelty and labels are checked against their
    definitions after every answer, and at every kept node that is met again."""
    config = PlannerConfig(
        width=width, budget_seconds=None, budget_nodes=budget, rollouts_in_flight=number
    )
    around = EagerWorld(world.step, world.atoms)
    tree, rng = Tree(world.num_actions, world.start, world.start.lives), np.random.default_rng(seed)
    root_atoms = world.atoms(world.start, None)
    for _ in range(4):
        kept = tree.size
        novelty = Novelty([Notion(world.num_features, width)])
        search = WatchedSearch(config, tree, root_atoms, novelty, around, rng)
        search.world = world
        ended = rollout_iw(search)
        assert around.most_under_way <= number
        assert len(search.tried) == len(set(search.tried)) == tree.size - kept <= budget
        assert search.in_flight == 0
        assert (ended == "solved") == bool(tree.solved[ROOT])
        assert ended == "solved" or tree.size - kept == budget
        children = [child for child in tree.children[ROOT].tolist() if child != NO_NODE]
        child = children[rng.integers(len(children))]
        if tree.terminal[child]:
            break
        root_atoms = world.atoms(tree.snapshots[child], tree.snapshots[ROOT])
        tree.reroot(child)


class WatchedSearch(Search):
    """Knows the rules, and checks that what is asked, noted and labelled follows them."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.tried = []
        self.least: dict[tuple, int] = {}

    def tuples(self, node):
        atoms = self.world.atoms(
            self.tree.snapshots[node], self.tree.snapshots[self.tree.parent[node]]
        ).tolist()
        if self.config.width == 1:
            return [(a,) for a in atoms]
        return [(a, b) for a in atoms for b in atoms if a <= b]

    def ask(self, parent, action):
        assert not self.tree.solved[parent]
        assert not self.tree.terminal[parent]
        self.tried.append((parent, action))
        super().ask(parent, action)

    def receive(self, depth=None):
        child, novel = super().receive(depth)
        own_depth = int(self.tree.depth[child])
        new = [t for t in self.tuples(child) if self.least.get(t, 10**9) > own_depth]
        assert novel == bool(new)
        self.least |= dict.fromkeys(new, own_depth)
        return child, novel

    def still_novel(self, node, depth):
        novel = super().still_novel(node, depth)
        assert depth == self.tree.depth[node]
        # A kept node does not write into the table, so what it makes true may be unseen.
        assert novel == any(self.least.get(t, 10**9) >= depth for t in self.tuples(node))
        return novel


@settings(max_examples=100, deadline=None)
@given(
    world=random_worlds,
    seed=st.integers(0, 2**32 - 1),
    number=in_flight,
    width=st.sampled_from([1, 2]),
    budget=st.integers(1, 60),
)
def test_breadth_first_search_is_the_same_however_much_is_asked_ahead(
    world, seed, number, width, budget
):
    config = PlannerConfig(
        planner="iw",
        width=width,
        budget_seconds=None,
        budget_nodes=budget,
        rollouts_in_flight=number,
    )
    fast = planner(world, config, world.start, seed, lives=world.start.lives)
    play_side_by_side(fast, ObviousIW(world, config, np.random.default_rng(seed)))


@pytest.mark.parametrize("number", [0, -1, 1001])
def test_nonsense_is_refused(number):
    with pytest.raises(ValueError, match="rollouts_in_flight must be from 1"):
        PlannerConfig(rollouts_in_flight=number)


def test_a_budget_of_seconds_leaves_time_for_what_is_in_flight():
    now = 0.0

    def step(place, action):  # every place is new, and takes 10 ms to find
        nonlocal now
        now += 0.01
        return Transition(4 * place + action + 1, 0.0, 0, False)

    def atoms(place, previous):
        return np.array([place % 100_003], np.int32)

    config = PlannerConfig(budget_seconds=0.5, rollouts_in_flight=8)
    player = Planner(
        config,
        PlainWorld(step, atoms),
        num_actions=4,
        num_features=100_003,
        snapshot=0,
        rng=np.random.default_rng(0),
        clock=lambda: now,
    )
    statistics = player.decide().statistics
    assert statistics.ended == "seconds"
    assert 0.48 < statistics.seconds < 0.515
