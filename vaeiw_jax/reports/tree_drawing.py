"""The lookahead tree drawn: a leaf per column, depth downwards; as a PNG and, for the page, as an SVG."""

from dataclasses import dataclass

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree
from vaeiw_jax.reports import inspection_charts
from vaeiw_jax.reports.inspection_charts import LIGHT

COLUMN, ROW = 9.0, 13.0
"""Pixels between leaves and between depths, where there is room for it."""

_MAX_WIDTH, _MAX_HEIGHT = 3600.0, 1500.0


@dataclass(frozen=True)
class Kind:
    """What a node is drawn as."""

    name: str  # of its CSS class
    label: str
    colour: str  # of the light theme
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


def figure(replanned: Replanned) -> bytes:
    """The tree as a PNG on white."""
    tree, placed, kind = replanned.tree, layout(replanned.tree), kinds(replanned)
    faded = is_faded(replanned)
    width, height = max(placed.width, 640.0), placed.height
    drawing = Figure(figsize=(width / 100, (height + 60) / 100), dpi=200, facecolor="white")
    axes = drawing.add_axes((0, 0, 1, height / (height + 60)))
    axes.set(xlim=((placed.width - width) / 2, (placed.width + width) / 2), ylim=(height, 0))
    axes.axis("off")
    below = np.arange(1, tree.size)
    points = np.stack([placed.x, placed.y], axis=1)
    lines = np.stack([points[tree.parent[below]], points[below]], axis=1)
    axes.add_collection(LineCollection(list(lines), colors="#b9bfca", linewidths=0.5))
    best = [ROOT, *replanned.best_path()]
    axes.plot(placed.x[best], placed.y[best], color=LIGHT.gold, lw=2, alpha=0.7)
    handles = [Line2D([], [], color=LIGHT.gold, lw=2, alpha=0.7, label="the way chosen")]
    for number, k in enumerate(KINDS):
        colour = "#c9d8f2" if k.colour == "pruned" else getattr(LIGHT, k.colour)
        for pale in (True, False):
            nodes = np.flatnonzero((kind == number) & (faded == pale))
            if not len(nodes):
                continue
            dots = axes.scatter(placed.x[nodes], placed.y[nodes], (1.44 * k.radius) ** 2, zorder=3)
            dots.set(facecolor=colour, edgecolor="none", alpha=0.4 if pale else 1)
        if (kind == number).any():
            handles.append(Line2D([], [], color=colour, marker="o", lw=0, ms=4, label=k.label))
    drawing.legend(handles=handles, loc="upper center", ncols=3, frameon=False, fontsize=7)
    return inspection_charts.png(drawing)


def svg(replanned: Replanned) -> str:
    """The tree as an SVG element whose colours the page's style sheet gives; nodes are numbered for its script."""
    tree, placed, kind = replanned.tree, layout(replanned.tree), kinds(replanned)
    x, y = placed.x, placed.y
    edges = "".join(
        f"M{x[tree.parent[node]]:.1f} {y[tree.parent[node]]:.1f}L{x[node]:.1f} {y[node]:.1f}"
        for node in range(1, tree.size)
    )
    best = [ROOT, *replanned.best_path()]
    way = "M" + "L".join(f"{x[node]:.1f} {y[node]:.1f}" for node in best)
    faded = is_faded(replanned)
    circles = "".join(
        f'<circle class="{KINDS[kind[node]].name}{" faded" if faded[node] else ""}" data-node="{node}"'
        f' cx="{x[node]:.1f}" cy="{y[node]:.1f}" r="{KINDS[kind[node]].radius}"/>'
        for node in np.argsort(kind, kind="stable").tolist()
    )
    return (
        f'<svg id="tree" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {placed.width:.0f} {placed.height:.0f}"'
        f' style="--width:{placed.width:.0f}px" tabindex="0" role="img"'
        f' aria-label="lookahead tree of {tree.size} nodes">'
        f'<path class="edge" d="{edges}"/><path class="way" d="{way}"/>{circles}</svg>'
    )
