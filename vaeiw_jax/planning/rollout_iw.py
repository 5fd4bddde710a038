"""RolloutIW(k) (Bandres, Bonet and Geffner, AAAI 2018): width-based search by random rollouts."""

from vaeiw_jax.planning.search import SOLVED, Search
from vaeiw_jax.planning.tree import NO_NODE, ROOT


def rollout_iw(search: Search) -> str:
    """Rolls out from the root until it is solved or the budget is spent; returns which.

    The tree kept from the decision before is searched again with a new novelty table: its nodes, being met again, must
    hold their own against what this decision finds, but only nodes generated in this decision write into the table.
    """
    tree = search.tree
    tree.clear_labels()
    while not tree.solved[ROOT]:
        if ended := search.spent():
            return ended
        _rollout(search)
    return SOLVED


def _rollout(search: Search) -> None:
    """Follows random open actions down to a node that is pruned or terminal, or to the end of the budget."""
    tree, rng = search.tree, search.rng
    node = ROOT
    while True:
        actions = tree.open[node].nonzero()[0]
        action = actions[rng.integers(len(actions))]
        child = tree.children[node, action]
        depth = int(tree.depth[node]) + 1
        if child == NO_NODE:
            child, novel = search.generate(node, action, depth)
        else:
            novel = search.still_novel(child, depth)
        if tree.terminal[child] or not novel or depth >= search.config.max_depth:
            tree.solve(child)
            break
        if search.spent():
            break
        node = child
    search.rollout_lengths.append(depth)
