"""What the inspection page shows of a decision: the tree, its nodes one by one, and the rewards found."""

from typing import Any

import numpy as np
from markupsafe import Markup

from vaeiw_jax.features import lookup
from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.planning.tree import NO_NODE, ROOT
from vaeiw_jax.reports import images, tree_drawing
from vaeiw_jax.reports.charts import number
from vaeiw_jax.reports.images import Captioned
from vaeiw_jax.reports.pages import embedded, plural
from vaeiw_jax.reports.tables import Cell, Column, Table
from vaeiw_jax.reports.tree_drawing import KINDS

MAX_SCREENS = 600
"""Of a larger tree only this many distinct screens are in the page, those of the chosen path and nearest the root."""


def values(replanned: Replanned) -> dict[str, Any]:
    """For the template of the page."""
    tree = replanned.tree
    lives = plural(int(tree.lives[ROOT]), "life", "lives")
    caption = f"decision {replanned.number:,}, score {replanned.score:,}, {lives}"
    return {
        "method": _method(replanned),
        "root": Captioned(images.screen(tree.snapshots[ROOT].screen), caption),
        "kinds": tree_drawing.kinds_in(replanned),
        "tree": Markup(tree_drawing.svg(replanned)),
        "nodes": _nodes(replanned),
        "rewards": _rewards_table(replanned),
    }


def _method(replanned: Replanned) -> str:
    planner = replanned.config.planner
    feature_set = lookup(replanned.config.features.features)
    if not planner.search.looks_ahead:
        return f"{planner.search.title}, which looks ahead at nothing"
    limits = (planner.budget_nodes, "nodes"), (planner.budget_seconds, "seconds")
    budgets = [f"{number(limit)} {unit}" for limit, unit in limits if limit is not None]
    features = (
        f"the features of {'this ' if feature_set.takes_directory else ''}{feature_set.title}"
    )
    risk = ", risk-averse" if planner.risk_averse else ""
    return f"{planner.search.title}({planner.width}) with {features}, {' or '.join(budgets)} a decision{risk}"


def _nodes(replanned: Replanned) -> dict[str, Any]:
    """For the page's script: the screens, and of each node its screen, its neighbours and what is known of it."""
    tree = replanned.tree
    screens, screen_of = _screens(replanned)
    kinds, faded = tree_drawing.kinds(replanned), tree_drawing.is_faded(replanned)
    returns = replanned.decision.returns
    nodes = []
    for node in range(tree.size):
        facts = [("node", KINDS[kinds[node]].label.partition(",")[0])]
        if node != ROOT:
            facts.append(("action", replanned.readable_action(int(tree.action[node]))))
        facts += [("depth", f"{tree.depth[node]}"), ("lives", f"{tree.lives[node]}")]
        facts.append(("return", _signed(returns[node])))
        if node != ROOT:
            facts.append(("reward", _signed(float(tree.reward[node]))))
        if faded[node]:
            facts.append(("pruned", "yes"))
        nodes.append(
            {
                "screen": screen_of[node],
                "parent": int(tree.parent[node]),
                "children": [int(child) for child in tree.children[node] if child != NO_NODE],
                "facts": facts,
            }
        )
    return {"screens": screens, "nodes": nodes}


def _screens(replanned: Replanned) -> tuple[list[str], list[int]]:
    """Distinct screens as addresses that hold them and, for each node, the number of its own, or -1."""
    tree = replanned.tree
    screen_of = [-1] * tree.size
    numbers: dict[bytes, int] = {}
    screens: list[str] = []
    for node in [ROOT, *replanned.best_path(), *tree.breadth_first().tolist()]:
        screen = tree.snapshots[node].screen
        key = screen.tobytes()
        if key not in numbers and len(screens) < MAX_SCREENS:
            numbers[key] = len(screens)
            screens.append(embedded(images.png(images.screen(screen)), "image/png"))
        screen_of[node] = numbers.get(key, -1)
    return screens, screen_of


def _rewards_table(replanned: Replanned) -> Table:
    """How often which reward was found, and how far away it is."""
    tree = replanned.tree
    reward, depth = tree.reward[1 : tree.size], tree.depth[1 : tree.size]
    found = {
        Cell(_signed(float(amount)), float(amount)): depth[reward == amount]
        for amount in np.unique(reward[reward != 0])[::-1]
    }
    if (lost := replanned.lost_life[1:]).any():
        found[Cell("a life or the game over")] = depth[lost]
    return Table(
        [Column("reward"), Column("nodes"), Column("at depth")],
        [
            [what, len(at), Cell(f"{at.min()} to {at.max()}", int(at.min()))]
            for what, at in found.items()
        ],
    )


def _signed(value: float) -> str:
    return f"{value:+,.2f}".rstrip("0").rstrip(".").replace("-", "\N{MINUS SIGN}") if value else "0"
