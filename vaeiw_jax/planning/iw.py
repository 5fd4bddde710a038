"""IW(k) (Lipovetzky and Geffner, ECAI 2012): breadth-first search pruned by novelty."""

from collections import deque
from collections.abc import Iterator

from vaeiw_jax.planning.search import SOLVED, Search
from vaeiw_jax.planning.tree import NO_NODE

ANY_DEPTH = 0
"""To IW a key is new or it is not, whatever the depth: all are noted at this one."""


def iw(search: Search) -> str:
    """Tries the actions of every novel node, first come, first served; returns why it ended.

    Kept nodes come first. They write their atoms and are not pruned.
    """
    tree = search.tree
    queue: deque[tuple[int, int]] = deque()
    for node in tree.breadth_first():
        search.note(int(node), ANY_DEPTH)
        queue.extend(untried(search, int(node)))
    while queue or search.in_flight:
        ended = search.spent()
        while queue and search.may_ask and not ended:
            search.ask(*queue.popleft())
            ended = search.spent()
        if not search.in_flight:
            return ended or SOLVED
        child, novel = search.receive(ANY_DEPTH)
        if novel:
            queue.extend(untried(search, child))
    return SOLVED


def untried(search: Search, node: int) -> Iterator[tuple[int, int]]:
    """The node with each of its actions that was not tried; none where the search must not go on."""
    tree = search.tree
    if tree.terminal[node] or tree.depth[node] >= search.config.max_depth:
        return
    for action in (tree.children[node] == NO_NODE).nonzero()[0]:
        yield node, int(action)
