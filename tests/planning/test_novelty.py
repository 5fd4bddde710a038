from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import novelty
from vaeiw_jax.planning.novelty import MAX_DEPTH, NO_KEY, NoveltyTable

NUM_FEATURES = 12
nodes = st.tuples(
    st.sampled_from(["admit", "find"]),
    st.lists(st.integers(0, NUM_FEATURES - 1), unique=True, max_size=8),
    st.one_of(st.integers(0, 6), st.just(MAX_DEPTH)),
)


@settings(max_examples=300, deadline=None)
@given(decisions=st.lists(st.lists(nodes, max_size=20), max_size=5), width=st.sampled_from([1, 2]))
def test_it_answers_as_a_dictionary_does(decisions, width):
    table = NoveltyTable(NUM_FEATURES, width)
    for decision in decisions:
        table.start_decision()
        least: dict[tuple[int, ...], int] = {}
        for what, atoms, depth in decision:
            tuples = list(combinations_with_replacement(sorted(atoms), width))
            keys = table.keys(np.array(atoms, np.int32))
            if what == "admit":
                new = [t for t in tuples if least.get(t, MAX_DEPTH + 1) > depth]
                assert (table.admit(keys, depth) != NO_KEY) == bool(new)
                least |= dict.fromkeys(new, depth)
            else:
                held = [t for t in tuples if least.get(t, MAX_DEPTH + 1) >= depth]
                key = table.find(keys, depth)
                assert (key != NO_KEY) == bool(held)
                if key != NO_KEY:
                    assert key in keys
                    assert table.holds(key, depth)
            for t in tuples:
                expected = least.get(t, MAX_DEPTH + 1) >= depth
                assert table.holds(key_of(table, t), depth) == expected


def key_of(table, t):
    """The key of an atom, or of a pair of atoms: what both make true and neither does alone."""
    alone = [set(table.keys(np.array([atom], np.int32)).tolist()) for atom in set(t)]
    together = set(table.keys(np.array(sorted(set(t)), np.int32)).tolist())
    (key,) = together.difference(*alone) if len(alone) > 1 else together
    return key


@given(st.lists(st.integers(0, 200), unique=True, max_size=30))
def test_every_pair_has_a_key_of_its_own(atoms):
    table = NoveltyTable(201, width=2)
    keys = table.keys(np.array(atoms, np.int32))
    assert len(keys) == len(set(keys.tolist())) == len(atoms) * (len(atoms) + 1) // 2
    assert all(0 <= key < 201 * 202 // 2 for key in keys)


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
        NoveltyTable(10_001, width=2)
    NoveltyTable(10_000, width=2)
