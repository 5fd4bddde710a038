from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import novelty
from vaeiw_jax.planning.novelty import MAX_DEPTH, NO_KEY, NoveltyTable, PairTable, novelty_table

NUM_FEATURES = 12
nodes = st.tuples(
    st.sampled_from(["admit", "find"]),
    st.lists(st.integers(0, NUM_FEATURES - 1), unique=True, max_size=8),
    st.one_of(st.integers(0, 6), st.just(MAX_DEPTH)),
)


@settings(max_examples=300, deadline=None)
@given(decisions=st.lists(st.lists(nodes, max_size=20), max_size=5), width=st.sampled_from([1, 2]))
def test_it_answers_as_a_dictionary_does(decisions, width):
    table = novelty_table(NUM_FEATURES, width)
    for decision in decisions:
        table.start_decision()
        least: dict[tuple[int, ...], int] = {}

        def held(atoms, depth, least=least):
            tuples = combinations_with_replacement(sorted(atoms), width)
            return [t for t in tuples if least.get(t, MAX_DEPTH + 1) >= depth]

        for what, atoms, depth in decision:
            if what == "admit":
                new = held(atoms, depth + 1)
                assert (table.admit(np.array(atoms, np.int32), depth) != NO_KEY) == bool(new)
                least |= dict.fromkeys(new, depth)
            else:
                key = table.find(np.array(atoms, np.int32), depth)
                assert (key != NO_KEY) == bool(held(atoms, depth))
                assert key == NO_KEY or table.holds(key, depth)
            for part in combinations(atoms, min(width, len(atoms))):
                found = table.find(np.array(part, np.int32), depth)
                assert (found != NO_KEY) == bool(held(part, depth))


def test_a_key_that_was_new_holds_until_it_is_seen_above():
    table = PairTable(NUM_FEATURES)
    table.admit(np.array([3, 5], np.int32), 0)
    key = table.admit(np.array([3, 5, 7], np.int32), 1)
    assert table.holds(key, 1)
    table.admit(np.array([5, 7], np.int32), 2)
    assert table.holds(key, 1)
    table.admit(np.array([3, 7, 5], np.int32), 0)
    assert not table.holds(key, 1)


def test_few_pairs_are_looked_at_where_a_node_is_like_one_noted_before(monkeypatch):
    looked_at = []
    admit_keys = PairTable._admit_keys
    monkeypatch.setattr(
        PairTable,
        "_admit_keys",
        lambda table, keys, depth: looked_at.append(len(keys)) or admit_keys(table, keys, depth),
    )
    table = PairTable(100)
    table.admit(np.arange(80, dtype=np.int32), 4)
    table.admit(np.arange(2, 82, dtype=np.int32), 5)
    table.admit(np.arange(3, 83, dtype=np.int32), 4)
    assert looked_at == [80 * 80, 2 * 80, 3 * 80]


@given(st.lists(st.integers(0, 200), unique=True, max_size=30))
def test_every_pair_has_a_key_of_its_own(numbers):
    given = np.array(numbers, np.int32)
    keys = PairTable(201)._pairs(given, given).reshape(len(given), len(given))
    assert (keys == keys.T).all()
    assert len(np.unique(keys)) == len(numbers) * (len(numbers) + 1) // 2
    assert all(0 <= key < 201 * 202 // 2 for key in keys.flat)


def test_starting_a_decision_touches_no_entry():
    table = NoveltyTable(20_598_848)
    table.admit(np.array([5], np.int32), 3)
    before = table._entries.copy()
    table._entries.flags.writeable = False
    table.start_decision()
    assert (table._entries == before).all()
    assert table.find(np.array([5], np.int32), 1) == 5


def test_nothing_is_forgotten_or_invented_when_the_numbers_of_decisions_run_out(monkeypatch):
    monkeypatch.setattr(novelty, "_LAST_DECISION", 3)
    table = NoveltyTable(4)
    atom = np.array([2], np.int32)
    for _ in range(10):
        table.start_decision()
        assert table.admit(atom, 5) == 2
        assert table.admit(atom, 5) == NO_KEY
        assert table.admit(atom, 4) == 2
        assert not table.holds(2, 5)


def test_the_last_decision_still_fits_an_entry():
    table = NoveltyTable(1)
    table._decision = novelty._LAST_DECISION
    assert table.admit(np.array([0], np.int32), 0) == 0
    assert table.admit(np.array([0], np.int32), 0) == NO_KEY


def test_pairs_of_a_large_feature_set_are_refused():
    with pytest.raises(UserError, match="at most 10,000 features"):
        novelty_table(10_001, width=2)
    novelty_table(10_000, width=2)
