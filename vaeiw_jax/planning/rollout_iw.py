"""RolloutIW(k) (Bandres, Bonet and Geffner, AAAI 2018): width-based search by random rollouts."""

from vaeiw_jax.planning.search import SOLVED, Search
from vaeiw_jax.planning.tree import NO_NODE, ROOT


def rollout_iw(search: Search) -> str:
    """Rolls out from the root until it is solved or the budget is spent; returns which.

    The tree kept from the decision before is searched again with a new novelty table: its nodes, being met again, must
    hold their own against what this decision finds, but only nodes generated in this decision write into the table.

    Actions are chosen uniformly, or by what rollouts returned that ended before (`bandits`).

    With several rollouts in flight, each walks on alone until it must ask where an untried action leads. The answers
    are taken in the order of the questions, however long each took, so that timing decides nothing. A rollout in flight
    may go on below a node further up that was pruned meanwhile: a few nodes in a thousand.

    Where there are wider notions of novelty, a root that is solved before the budget is spent is searched on with the
    next of them.
    """
    tree = search.tree
    tree.clear_labels()
    while True:
        ended = SOLVED if tree.solved[ROOT] else search.spent()
        while not ended and search.may_ask and _walk(search, ROOT):
            ended = SOLVED if tree.solved[ROOT] else search.spent()
        if search.in_flight:
            _go_on(search, *search.receive())
        elif ended == SOLVED and not search.spent() and search.widen():
            continue
        elif ended:
            return ended


def _walk(search: Search, node: int) -> bool:
    """Follows open actions down to one not yet tried, and asks where it leads.

    The rollout ends sooner at a node met again that is no longer novel.

    Returns:
      False if it could not go on for now, other rollouts being on every open way.
    """
    tree = search.tree
    while True:
        actions = search.free_actions(node)
        if not actions:
            return False
        action = search.choice.choose(node, actions)
        child = int(tree.children[node, action])
        if child == NO_NODE:
            search.ask(node, action)
            return True
        depth = int(tree.depth[child])
        if not search.still_novel(child, depth):
            search.end_rollout(child)
            search.prune(child)
            return True
        node = child


def _go_on(search: Search, node: int, novel: bool) -> None:
    """Continues the rollout that led to a new node, or ends it there."""
    tree = search.tree
    depth = int(tree.depth[node])
    if tree.terminal[node] or not novel or depth >= search.config.max_depth:
        tree.solve(node)
    elif not search.spent() and not tree.solved[tree.parent[node]]:
        _walk(search, node)
        return
    search.end_rollout(node)
