"""Spending the whole budget: a solved search goes on with a wider notion of novelty."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning.obvious import ObviousRolloutIW, play_side_by_side
from tests.planning.toy import Corridor, planner, random_worlds
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.planning.novelty import Notion
from vaeiw_jax.planning.rollout_iw import rollout_iw
from vaeiw_jax.planning.tree import ROOT
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig


class ObviousWidening(ObviousRolloutIW):
    """The nodes of a decision are noted again, in the order they were generated in, whenever novelty is widened."""

    def __init__(self, world, config, rng, notions):
        super().__init__(world, config, rng)
        self.notions, self.notion = notions, notions[0]
        self.generated = []

    def tuples(self, node):
        known = sorted(atom for atom in node.atoms if atom < self.notion.limit)
        return list(combinations_with_replacement(known, self.notion.width))

    def generate(self, node, action):
        child = super().generate(node, action)
        self.generated.append(child)
        return child

    def search(self):
        self.generated = []
        self.notion = self.notions[0]
        super().search()
        for wider in self.notions[1:]:
            if self.root.solved and not self.spent():
                self.notion = wider
                self.search_on()

    def search_on(self):
        self.forget()
        for node in self.generated:
            if not self.goes_on_from_new(node) or node.depth >= self.config.max_depth:
                self.solve(node)
        while not self.root.solved and not self.spent():
            self.rollout()


@settings(max_examples=100, deadline=None)
@given(
    world=random_worlds,
    seed=st.integers(0, 2**32 - 1),
    budget_nodes=st.integers(1, 80),
    max_depth=st.sampled_from([2, 32_767]),
    data=st.data(),
)
def test_it_is_the_obvious_implementation_node_for_node(world, seed, budget_nodes, max_depth, data):
    limits = sorted(data.draw(st.sets(st.integers(1, world.num_features), min_size=1, max_size=3)))
    notions = [*map(Notion, limits), Notion(limits[0], 2)]
    config = PlannerConfig(
        budget_seconds=None, budget_nodes=budget_nodes, max_depth=max_depth, widen=True
    )
    lives = world.start.lives
    fast = planner(world, config, world.start, seed, lives=lives, notions=notions)
    obvious = ObviousWidening(world, config, np.random.default_rng(seed), notions)
    play_side_by_side(fast, obvious)


@settings(max_examples=60, deadline=None)
@given(world=random_worlds, seed=st.integers(0, 2**32 - 1), budget=st.integers(1, 60))
def test_it_widens_only_when_the_root_is_solved_and_loses_nothing(world, seed, budget):
    notions = [Notion(1), Notion(world.num_features), Notion(world.num_features, 2)]
    config = PlannerConfig(budget_seconds=None, budget_nodes=budget, widen=True)

    def watched(search):
        widen = search.widen

        def checked():
            assert search.tree.solved[ROOT]
            assert not search.in_flight
            assert not search.spent()
            before = search.tree.to_arrays()["parent"].copy()
            widened = widen()
            np.testing.assert_array_equal(search.tree.parent[: len(before)], before)
            return widened

        search.widen = checked
        return rollout_iw(search)

    playing = planner(world, config, world.start, seed, lives=3, notions=notions)
    playing._search = watched
    for _ in range(4):
        decision = playing.decide()
        statistics = decision.statistics
        assert statistics.new_nodes <= budget
        assert statistics.new_nodes == budget or statistics.widened == 2
        if playing.act(decision.action).terminal:
            break


class DarkCorridor(Corridor):
    """A corridor whose rooms look alike at first sight: what tells them apart is among the later atoms."""

    def __init__(self, length):
        super().__init__(length)
        self.num_features = 1 + length

    def atoms(self, room, previous):
        return np.array([0, 1 + room], np.int32)


def test_a_reward_that_only_the_wider_search_finds():
    corridor, notions = DarkCorridor(length=20), [Notion(1), Notion(21)]
    alike = Corridor(length=20)
    alike.atoms = lambda room, previous: np.zeros(1, np.int32)
    narrow = PlannerConfig(budget_seconds=None, budget_nodes=60)
    decision = planner(alike, narrow, 0).decide()
    assert decision.statistics.ended == "solved"
    assert not (decision.values > 0).any()
    wide = PlannerConfig(budget_seconds=None, budget_nodes=60, widen=True)
    decision = planner(corridor, wide, 0, notions=notions).decide()
    assert decision.statistics.widened == 1
    assert decision.values[1] > 0


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_game_that_widens_is_the_same_after_it_was_interrupted(in_flight):
    config = EpisodeConfig.of(
        "Freeway",
        literals="unusual",
        changes=True,
        widen=True,
        budget_nodes=60,
        max_actions=4,
        rollouts_in_flight=in_flight,
    )
    whole = Episode(config, seed=1)
    while not whole.stop:
        whole.advance()
    record = whole.record()
    assert sum(record["decisions"]["widened"]) == 4
    begun = Episode(config, seed=1)
    begun.advance()
    begun.advance()
    resumed = Episode(config, seed=1)
    resumed.resume(begun.save())
    while not resumed.stop:
        resumed.advance()
    assert resumed.record() == record


def test_what_cannot_be_widened_is_refused_in_a_sentence():
    for settings_given, sentence in (
        ({"planner": "iw"}, "widen is for the planner rollout_iw"),
        ({"width": 2}, "widen is for the planner rollout_iw with width 1"),
    ):
        with pytest.raises(UserError, match=sentence):
            PlannerConfig(widen=True, **settings_given)
    for features in ({"features": "ram"}, {"features": "vae"}):
        with pytest.raises(UserError, match="several notions of novelty"):
            Episode(EpisodeConfig.of("Pong", widen=True, budget_nodes=5, **features), seed=0)
