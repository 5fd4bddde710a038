"""IW(k) as the program of Bandres, Bonet and Geffner (AAAI 2018) searches: breadth-first, good paths first.

It differs from `iw` in two ways. Of equal depths, the one whose path pays most comes first. And of kept nodes only
those without a child write: they wait their turn as new ones do, and are pruned if they are not novel then.
"""

import heapq
import itertools
from typing import NamedTuple

from vaeiw_jax.planning.iw import ANY_DEPTH, untried
from vaeiw_jax.planning.search import SOLVED, Search
from vaeiw_jax.planning.tree import NO_ACTION, NO_NODE, ROOT


class _Entry(NamedTuple):
    """What waits: an untried action of a node, or a kept node (`NO_ACTION`). Its fields are its order."""

    depth: int  # of the state it is about
    minus_reward: float  # of the path, as far as it is known
    number: int
    node: int
    action: int


class _Queue:
    def __init__(self, search: Search):
        self._search = search
        self._entries: list[_Entry] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> _Entry:
        return self._entries[0]

    def pop(self) -> _Entry:
        return heapq.heappop(self._entries)

    def add_actions(self, node: int) -> None:
        for _, action in untried(self._search, node):
            self._add(int(self._search.tree.depth[node]) + 1, node, action)

    def add_node(self, node: int) -> None:
        self._add(int(self._search.tree.depth[node]), node, NO_ACTION)

    def _add(self, depth: int, node: int, action: int) -> None:
        reward = self._search.path_reward(node)
        heapq.heappush(self._entries, _Entry(depth, -reward, next(self._numbers), node, action))


def iw_by_reward(search: Search) -> str:
    """Tries the actions of every novel node, level by level, good paths first; returns why it ended.

    What is in flight changes nothing: nobody goes ahead of answers that could change the order or what is novel.
    """
    queue = _Queue(search)
    _enter_kept(search, queue)
    level = 0  # of what is in flight
    while queue or search.in_flight:
        ended = search.spent()
        in_order = not search.in_flight or (
            queue and queue.first.action != NO_ACTION and queue.first.depth == level
        )
        if queue and in_order and search.may_ask and not ended:
            level, _, _, node, action = queue.pop()
            if action != NO_ACTION:
                search.ask(node, action)
            elif search.note(node, ANY_DEPTH):
                queue.add_actions(node)
        elif search.in_flight:
            child, novel = search.receive(ANY_DEPTH)
            if novel:
                queue.add_actions(child)
        else:
            return ended or SOLVED
    return SOLVED


def _enter_kept(search: Search, queue: _Queue) -> None:
    """Puts the tree as it is into the queue: untried actions of inner nodes, and nodes without a child."""
    tree = search.tree
    for node in map(int, tree.breadth_first()):
        if (tree.children[node] != NO_NODE).any():
            queue.add_actions(node)
        elif node == ROOT:
            search.note(node, ANY_DEPTH)
            queue.add_actions(node)
        elif not tree.terminal[node]:
            queue.add_node(node)
