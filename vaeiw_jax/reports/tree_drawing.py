"""The lookahead tree drawn: a leaf per column, depth downwards, as an SVG."""

from dataclasses import dataclass

import numpy as np

from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree
from vaeiw_jax.reports.charts import LIGHT
from vaeiw_jax.reports.pages import render

COLUMN, ROW = 9.0, 13.0
"""Pixels between leaves and between depths, where there is room for it."""

_MAX_WIDTH, _MAX_HEIGHT = 3600.0, 1500.0


@dataclass(frozen=True)
class NodeKind:
    """What a node is drawn as."""

    name: str  # of its CSS class
    label: str
    colour: str  # its name in the theme
    radius: float  # in pixels


KINDS = (
    NodeKind("kept", "kept from the decision before", "grey", 2.6),
    NodeKind("new", "new", "blue", 2.6),
    NodeKind("pruned", "pruned, nothing new there (pale, if it gained points)", "pruned", 2.2),
    NodeKind("reward", "points gained", "gold", 3.6),
    NodeKind("loss", "points or a life lost, or the game", "red", 3.6),
    NodeKind("root", "root", "ink", 5.5),
)


@dataclass(frozen=True)
class Layout:
    """Where nodes go, in pixels."""

    x: np.ndarray  # float[size]
    y: np.ndarray  # float[size]
    width: float
    height: float


def layout(tree: Tree) -> Layout:
    """Leaves side by side in the order of their actions, a parent above the middle of its children."""
    column = np.zeros(tree.size)
    leaves = 0
    stack = [(ROOT, False)]
    while stack:  # not recursive: a tree may be deeper than Python likes to call
        node, below_is_placed = stack.pop()
        children = tree.children[node][tree.children[node] != NO_NODE]
        if below_is_placed:
            column[node] = (column[children[0]] + column[children[-1]]) / 2
        elif len(children):
            stack.append((node, True))
            stack.extend((int(child), False) for child in children[::-1])
        else:
            column[node] = leaves
            leaves += 1
    depth = tree.depth[: tree.size]
    across = min(COLUMN, _MAX_WIDTH / max(1, leaves))
    down = min(ROW, _MAX_HEIGHT / max(1, int(depth.max())))
    margin = 10.0
    return Layout(
        margin + across * column,
        margin + down * depth,
        2 * margin + across * max(0, leaves - 1),
        2 * margin + down * float(depth.max()),
    )


def kinds(replanned: Replanned) -> np.ndarray:
    """int[size]: the number of each node's kind among `KINDS`; the last that holds."""
    tree = replanned.tree
    reward, root = tree.reward[: tree.size], np.arange(tree.size) == ROOT
    holds = [replanned.kept, ~replanned.kept, replanned.pruned, reward > 0]
    holds += [(reward < 0) | replanned.lost_life, root]
    return len(holds) - 1 - np.argmax(holds[::-1], axis=0)


def kinds_in(replanned: Replanned) -> list[NodeKind]:
    return [KINDS[number] for number in np.unique(kinds(replanned))]


def is_faded(replanned: Replanned) -> np.ndarray:
    """bool[size]: pruned nodes that are of another kind besides; they are drawn pale."""
    return replanned.pruned & (kinds(replanned) != [k.name for k in KINDS].index("pruned"))


def svg(replanned: Replanned, alone: bool = False) -> str:
    """The tree as an SVG element whose nodes are numbered for the page's script.

    Args:
      replanned: the decision it is of.
      alone: for a file of its own: with a legend, and in colours that do not come from the page's style sheet.
    """
    tree, placed, kind = replanned.tree, layout(replanned.tree), kinds(replanned)
    faded = is_faded(replanned)
    at = [(f"{x:.1f}", f"{y:.1f}") for x, y in zip(placed.x, placed.y, strict=True)]
    return render(
        "tree.svg",
        width=max(placed.width, 400.0) if alone else placed.width,
        height=placed.height,
        size=tree.size,
        legend=alone,
        colours=LIGHT._asdict() if alone else {name: f"var(--{name})" for name in LIGHT._fields},
        kinds=kinds_in(replanned),
        edges=[(*at[tree.parent[node]], *at[node]) for node in range(1, tree.size)],
        path=[at[node] for node in [ROOT, *replanned.best_path()]],
        groups=[
            (k, [(node, *at[node], faded[node]) for node in np.flatnonzero(kind == i).tolist()])
            for i, k in enumerate(KINDS)
        ],
    )
