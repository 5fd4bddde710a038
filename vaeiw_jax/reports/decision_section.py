"""The part of the page that shows a decision: the values of the actions and the tree they come from."""

import base64
import html
import json
from typing import Any

import numpy as np

from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.planning.tree import NO_NODE, ROOT
from vaeiw_jax.reports import feature_pictures, tree_drawing
from vaeiw_jax.reports.inspection_charts import Chart
from vaeiw_jax.reports.markup import chart, figure, plural, tile
from vaeiw_jax.reports.tree_drawing import KINDS

MAX_SCREENS = 600
"""Of a larger tree only so many distinct screens are in the page, those of the chosen way and nearest the root."""


def decision_section(replanned: Replanned, charts: dict[str, Chart]) -> str:
    statistics, tree = replanned.decision.statistics, replanned.tree
    tiles = [
        tile(html.escape(replanned.spoken_action(replanned.decision.action)), "action chosen"),
        tile(f"{statistics.new_nodes:,}", "new nodes"),
        tile(f"{statistics.kept_nodes:,}", "nodes kept"),
        tile(f"{replanned.pruned.sum():,}", "nodes pruned"),
        tile(f"{statistics.depth:,}", "steps deep"),
        tile(f"{statistics.atoms_per_node:,.0f}", "atoms a new node"),
    ]
    root = figure(
        feature_pictures.screen(tree.snapshots[ROOT].screen),
        f"decision {replanned.number:,}, score {replanned.score:,}, "
        f"{plural(int(tree.lives[ROOT]), 'life').replace('lifes', 'lives')}",
        kind="screen",
    )
    return f"""<section id="decision"><h2>A decision</h2>
<p>Decision {replanned.number:,}, counted from 0, of {replanned.run.game}, seed {replanned.run.seed}, played
by {_method(replanned)}.</p>
{_same_or_fresh(replanned)}
<div class="tiles">{"".join(tiles)}</div>
<div class="card decision" style="margin-top:16px">{root}
<div><h3>What the actions promise</h3>{chart(charts["values"])}</div></div>
{_tree(replanned)}
<div class="two"><div class="card"><h3>Nodes by depth</h3>{chart(charts["depths"])}</div>
<div class="card"><h3>Rewards found</h3>{_rewards(replanned)}</div></div>
</section>"""


def _method(replanned: Replanned) -> str:
    planner = replanned.config.planner
    name = {"rollout_iw": "RolloutIW", "iw": "IW"}.get(planner.planner)
    if name is None:
        return "random play, which looks ahead at nothing"
    budgets = []
    if planner.budget_nodes is not None:
        budgets.append(f"{planner.budget_nodes:,} nodes")
    if planner.budget_seconds is not None:
        budgets.append(f"{planner.budget_seconds:g} seconds")
    features = {"vae": "the features of this VAE"}.get(
        replanned.config.features.kind, f"the features {replanned.config.features.kind}"
    )
    risk = ", risk-averse" if planner.risk_averse else ""
    return f"{name}({planner.width}) with {features}, {' or '.join(budgets)} a decision{risk}"


def _same_or_fresh(replanned: Replanned) -> str:
    if replanned.same_tree:
        return (
            '<p class="note good">This is the tree of the recorded run: played again from its start, every decision '
            "up to this one came out as recorded.</p>"
        )
    recorded = html.escape(replanned.spoken_action(replanned.recorded_action))
    return (
        f'<p class="note">This tree is a fresh one, planned from the recorded state, with nothing kept from the '
        f"decision before: {html.escape(replanned.why_fresh)}. The recorded action was {recorded}.</p>"
    )


def _tree(replanned: Replanned) -> str:
    kinds = tree_drawing.kinds(replanned)
    key = "".join(
        f'<span><i style="background:var(--{kind.colour})"></i>{kind.label}</span>'
        for number, kind in enumerate(KINDS)
        if (kinds == number).any()
    )
    told = json.dumps(_nodes(replanned), separators=(",", ":")).replace("<", "\\u003c")
    return f"""<div class="card" style="margin-top:16px"><h3>The lookahead tree</h3>
<div class="key">{key}<span><i class="line" style="background:var(--gold)"></i>the way chosen</span></div>
<div class="treebox"><div class="scrolling">{tree_drawing.svg(replanned)}</div>
<div id="node" class="card"><img alt="screen of the node"><dl></dl></div></div>
<p><small>Point at a node, or tap it, to see its screen; arrow keys walk the tree.</small></p>
<script type="application/json" id="nodes">{told}</script></div>"""


def _nodes(replanned: Replanned) -> dict[str, Any]:
    """What the page's script is told: the screens, and of each node its screen, its place and what to say of it."""
    tree = replanned.tree
    screens, screen_of = _screens(replanned)
    value = replanned.returns
    kinds, pale = tree_drawing.kinds(replanned), tree_drawing.is_faded(replanned)
    nodes = []
    for node in range(tree.size):
        facts = [
            ("node", KINDS[kinds[node]].label.partition(",")[0]),
            ("depth", f"{tree.depth[node]}"),
            ("lives", f"{tree.lives[node]}"),
            ("return", _number(value[node])),
        ]
        if node != ROOT:
            facts.insert(1, ("action", replanned.spoken_action(int(tree.action[node]))))
            facts.append(("reward", _number(float(tree.reward[node]))))
        if pale[node]:
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
    """Distinct screens as PNGs in base64 and, for each node, the number of its own, or -1."""
    tree = replanned.tree
    screen_of = [-1] * tree.size
    numbers: dict[bytes, int] = {}
    screens: list[str] = []
    for node in [ROOT, *replanned.best_path(), *tree.breadth_first().tolist()]:
        screen = tree.snapshots[node].screen
        key = screen.tobytes()
        if key not in numbers and len(screens) < MAX_SCREENS:
            numbers[key] = len(screens)
            screens.append(
                base64.b64encode(feature_pictures.png(feature_pictures.screen(screen))).decode()
            )
        screen_of[node] = numbers.get(key, -1)
    return screens, screen_of


def _rewards(replanned: Replanned) -> str:
    """How often which reward was found, and how far away it is."""
    tree = replanned.tree
    reward, depth = tree.reward[1 : tree.size], tree.depth[1 : tree.size]
    rows = []
    for amount in np.unique(reward[reward != 0])[::-1]:
        at = depth[reward == amount]
        rows.append((f"{_number(float(amount))}", f"{len(at):,}", f"{at.min()} to {at.max()}"))
    lost = replanned.lost_life[1:]
    if lost.any():
        at = depth[lost]
        rows.append(("a life lost", f"{lost.sum():,}", f"{at.min()} to {at.max()}"))
    if not rows:
        return "<p>None: no action led to points or to the loss of a life as far as the search could see.</p>"
    cells = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table><tr><th>reward</th><th>nodes</th><th>at depth</th></tr>{cells}</table>"


def _number(value: float) -> str:
    return f"{value:+,.2f}".rstrip("0").rstrip(".").replace("-", "\N{MINUS SIGN}") if value else "0"
