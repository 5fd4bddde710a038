import re

import numpy as np

from vaeiw_jax.inspection import decision
from vaeiw_jax.planning import Transition
from vaeiw_jax.planning.tree import ROOT, Tree
from vaeiw_jax.reports import tree_drawing


def add(tree: Tree, parent: int, action: int) -> int:
    return tree.add(parent, action, Transition(None, 0.0, 0, False), 0.0)


def random_tree(size: int) -> Tree:
    rng = np.random.default_rng(0)
    tree = Tree(3, None, lives=0)
    while tree.size < size:
        node, action = int(rng.integers(tree.size)), int(rng.integers(3))
        if tree.children[node, action] < 0:
            add(tree, node, action)
    return tree


def test_no_two_nodes_of_a_depth_share_a_place_and_parents_are_above_their_children():
    tree = random_tree(200)
    placed = tree_drawing.layout(tree)
    assert len({(x, y) for x, y in zip(placed.x, placed.y, strict=True)}) == 200
    below = np.arange(1, 200)
    assert (placed.y[below] > placed.y[tree.parent[below]]).all()
    for node in range(200):
        children = tree.children[node][tree.children[node] >= 0]
        assert (np.diff(placed.x[children]) > 0).all()
        if len(children):
            assert placed.x[children].min() <= placed.x[node] <= placed.x[children].max()
    assert 0 < placed.x.min() < placed.x.max() < placed.width


def test_a_tree_deeper_than_python_calls_can_be_laid_out():
    tree = Tree(1, None, lives=0)
    node = ROOT
    for _ in range(5000):
        node = add(tree, node, 0)
    placed = tree_drawing.layout(tree)
    assert placed.y[node] == placed.y.max() < placed.height < 2000


def test_the_drawing_has_every_node_once(record):
    replanned = decision.replan(record(), None, 3)
    numbers = re.findall(r'data-node="(\d+)"', tree_drawing.svg(replanned))
    assert sorted(map(int, numbers)) == list(range(replanned.tree.size))
    assert tree_drawing.png(replanned).startswith(b"\x89PNG")
