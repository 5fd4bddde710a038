import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree
from vaeiw_jax.planning.world import Transition


def grown(draws, num_actions=3) -> Tree:
    """A random tree whose snapshots are the paths, as tuples of actions, that lead to them."""
    tree = Tree(num_actions, (), lives=9)
    for i, (place, action) in enumerate(draws):
        parent = place % tree.size
        if tree.children[parent, action] == NO_NODE:
            path = (*tree.snapshots[parent], action)
            transition = Transition(path, float(i), i, terminal=i % 7 == 3)
            tree.add(parent, action, transition, utility=2.0 * i)
    return tree


def rows(tree):
    """What each path's node holds."""
    return {
        tree.snapshots[i]: (
            tree.reward[i],
            tree.utility[i],
            tree.lives[i],
            tree.terminal[i],
            {a: tree.snapshots[c] for a, c in enumerate(tree.children[i]) if c != NO_NODE},
        )
        for i in range(tree.size)
    }


draws = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 2)), max_size=400)


@settings(deadline=None)
@given(draws, st.integers(0, 2))
def test_rerooting_keeps_exactly_the_chosen_branch(draws, action):
    tree = grown([*draws, (0, 0), (0, 1), (0, 2)])
    before = rows(tree)
    tree.reroot(tree.children[ROOT, action])
    expected = {path: row for path, row in before.items() if path[:1] == (action,)}
    assert rows(tree) == expected
    assert tree.parent[ROOT] == NO_NODE
    for node in range(tree.size):
        assert tree.depth[node] == len(tree.snapshots[node]) - 1
        if node != ROOT:
            assert tree.parent[node] < node
            assert tree.children[tree.parent[node], tree.action[node]] == node


@settings(deadline=None)
@given(draws)
def test_breadth_first_is_by_depth_then_by_path(draws):
    tree = grown(draws)
    paths = [tree.snapshots[node] for node in tree.breadth_first()]
    assert paths == sorted(tree.snapshots, key=lambda path: (len(path), path))


@settings(deadline=None)
@given(draws)
def test_clearing_labels_leaves_solved_what_leads_only_to_terminal_nodes(draws):
    tree = grown(draws)
    tree.solved[: tree.size] = True
    tree.clear_labels()

    def solved(node):
        children = tree.children[node]
        return bool(tree.terminal[node]) or all(c != NO_NODE and solved(c) for c in children)

    assert [bool(x) for x in tree.solved[: tree.size]] == [solved(i) for i in range(tree.size)]


def test_memory_stays_that_of_the_largest_tree_over_many_decisions():
    tree = grown([])
    largest = 0
    for decision in range(300):
        while tree.size < 1000:
            parent = tree.size // 2
            action = int(np.flatnonzero(tree.children[parent] == NO_NODE)[0])
            tree.add(parent, action, Transition((), 0.0, 0, False), 0.0)
        largest = max(largest, len(tree.parent))
        tree.reroot(tree.children[ROOT, decision % 2])
        assert len(tree.snapshots) == tree.size
    assert len(tree.parent) == largest <= 2048


def test_a_tree_survives_being_saved():
    tree = grown([(i * i, i % 3) for i in range(500)])
    again = Tree.from_arrays(tree.to_arrays(), tree.snapshots)
    assert rows(again) == rows(tree)
    again.add(0, 2, Transition("x", 0.0, 0, False), 0.0)
