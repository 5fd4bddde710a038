"""The lookahead tree drawn: a leaf per column, depth downwards; as a PNG and, for the page, as an SVG."""

from dataclasses import dataclass

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree
from vaeiw_jax.reports import charts
from vaeiw_jax.reports.charts import LIGHT
from vaeiw_jax.reports.pages import render

COLUMN, ROW = 9.0, 13.0
"""Pixels between leaves and between depths, where there is room for it."""

_MAX_WIDTH, _MAX_HEIGHT = 3600.0, 1500.0


@dataclass(frozen=True)
class Kind:
    """What a node is drawn as."""

    name: str  # of its CSS class
    label: str
    colour: str  # its name in the theme
    radius: float  # in pixels


KINDS = (
    Kind("kept", "kept from the decision before", "grey", 2.6),
    Kind("new", "new", "blue", 2.6),
    Kind("pruned", "pruned, nothing new there (pale, if it gained points)", "pruned", 2.2),
    Kind("reward", "points gained", "gold", 3.6),
    Kind("loss", "points or a life lost, or the game", "red", 3.6),
    Kind("root", "root", "ink", 5.5),
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
    reward = tree.reward[: tree.size]
    root = np.arange(tree.size) == ROOT
    holds = (
        replanned.kept,
        ~replanned.kept,
        replanned.pruned,
        reward > 0,
        (reward < 0) | replanned.lost_life,
        root,
    )
    kind = np.zeros(tree.size, np.int64)
    for number, nodes in enumerate(holds):
        kind[nodes] = number
    return kind


def is_faded(replanned: Replanned) -> np.ndarray:
    """bool[size]: pruned nodes that are of another kind besides; they are drawn pale."""
    return replanned.pruned & (kinds(replanned) != [k.name for k in KINDS].index("pruned"))


@charts.styled
def png(replanned: Replanned) -> bytes:
    """The tree as a PNG on white."""
    tree, placed, kind = replanned.tree, layout(replanned.tree), kinds(replanned)
    faded = is_faded(replanned)
    width, height = max(placed.width, 640.0), placed.height
    figure = Figure(figsize=(width / 100, (height + 60) / 100))
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, height / (height + 60)))
    axes.set(xlim=((placed.width - width) / 2, (placed.width + width) / 2), ylim=(height, 0))
    axes.axis("off")
    points = np.stack([placed.x, placed.y], axis=1)
    lines = np.stack([points[tree.parent[1 : tree.size]], points[1:]], axis=1)
    axes.add_collection(LineCollection(list(lines), colors=LIGHT.grey, linewidths=0.5))
    best = [ROOT, *replanned.best_path()]
    axes.plot(placed.x[best], placed.y[best], color=LIGHT.gold, lw=2, label="the way chosen")
    for number, k in enumerate(KINDS):
        colour = getattr(LIGHT, k.colour)
        for nodes, alpha in ((kind == number) & faded, 0.4), ((kind == number) & ~faded, 1.0):
            size = (1.44 * k.radius) ** 2
            dots = axes.scatter(placed.x[nodes], placed.y[nodes], size, color=colour, zorder=3)
            dots.set(alpha=alpha, linewidth=0)
        if (kind == number).any():
            axes.plot([], [], "o", color=colour, ms=4, label=k.label)
    figure.legend(loc="upper center", ncols=3, fontsize=7)
    return charts.png(figure)


def svg(replanned: Replanned) -> str:
    """The tree as an SVG element whose colours the page's style sheet gives; nodes are numbered for its script."""
    tree, placed, kind = replanned.tree, layout(replanned.tree), kinds(replanned)
    faded = is_faded(replanned)
    at = [(f"{x:.1f}", f"{y:.1f}") for x, y in zip(placed.x, placed.y, strict=True)]
    groups = [
        (k, [(node, *at[node], faded[node]) for node in np.flatnonzero(kind == number).tolist()])
        for number, k in enumerate(KINDS)
    ]
    return render(
        "tree.svg",
        width=placed.width,
        height=placed.height,
        size=tree.size,
        edges=[(*at[tree.parent[node]], *at[node]) for node in range(1, tree.size)],
        path=[at[node] for node in [ROOT, *replanned.best_path()]],
        groups=groups,
    )
