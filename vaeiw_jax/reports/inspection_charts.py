"""The charts of an inspection: how features fire and differ, what actions promise, how deep the tree is."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.ticker import MaxNLocator

from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.inspection.findings import Findings
from vaeiw_jax.inspection.quality import Quality
from vaeiw_jax.reports import charts
from vaeiw_jax.reports.charts import LIGHT, Chart, number


def draw(findings: Findings) -> dict[str, Chart]:
    """The charts, by name."""
    quality, replanned = findings.quality, findings.replanned
    drawn = [firing(quality), true_per_frame(quality), pixels_and_flips(quality)]
    if replanned:
        drawn += [values(replanned), depths(replanned)]
    return {chart.name: chart for chart in drawn}


@charts.styled
def firing(quality: Quality) -> Chart:
    """How often each feature is true, the features in order of it."""
    shares = np.sort(quality.shares)[::-1]
    ranks = np.unique(np.linspace(0, len(shares) - 1, 500).astype(int))
    always, never = int((shares == 1).sum()), int((shares == 0).sum())
    axes = charts.axes(2.9)
    axes.fill_between(ranks, 100 * shares[ranks], step="mid", color=LIGHT.blue, alpha=0.18, lw=0)
    axes.step(ranks, 100 * shares[ranks], where="mid", color=LIGHT.blue, lw=2)
    axes.grid(axis="y")
    axes.set(xlim=(0, len(shares)), ylim=(0, 104), ylabel="true in … of the frames")
    axes.set_xlabel("features, the most often true first")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:.0f}%")
    axes.xaxis.set_major_formatter(number)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    varying = len(shares) - always - never
    caption = f"{always:,} features are always true, {never:,} never, {varying:,} vary"
    return Chart("firing", caption, charts.figure_of(axes))


@charts.styled
def true_per_frame(quality: Quality) -> Chart:
    """A histogram of how many features are true in a frame."""
    counts = quality.bits.sum(axis=1)
    axes = charts.axes(2.9)
    bins = min(30, int(np.ptp(counts)) + 1)
    axes.hist(counts, bins=bins, color=LIGHT.blue, edgecolor=LIGHT.card, lw=1)
    axes.grid(axis="y")
    axes.set(xlabel="true features in a frame", ylabel="frames")
    axes.xaxis.set_major_formatter(number)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    caption = f"from {counts.min():,} to {counts.max():,} features are true in a frame"
    return Chart("true_per_frame", caption, charts.figure_of(axes))


@charts.styled
def pixels_and_flips(quality: Quality) -> Chart:
    """For all pairs of screens: in how many pixels and in how many features they differ."""
    pixels, flips = quality.pairs.pixels, quality.pairs.flips
    axes = charts.axes(3.6)
    x = np.geomspace(max(1, pixels.min()), pixels.max() + 1, 50)
    y = np.linspace(-0.5, flips.max() + 0.5, 41)
    counts, _, _ = np.histogram2d(pixels, flips, [x, y])
    blue = LinearSegmentedColormap.from_list("", [f"{LIGHT.blue}40", LIGHT.blue])
    norm = LogNorm(1, max(2, counts.max()))
    pairs = axes.pcolormesh(x, y, np.ma.masked_equal(counts.T, 0), cmap=blue, norm=norm)
    pairs.set_rasterized(True)  # a path for each of its cells would be large
    axes.axvspan(x[0], min(quality.alike_pixels, x[-1]), color=LIGHT.red, alpha=0.10, lw=0)
    if quality.alike_pixels > x[0]:
        axes.text(x[0] * 1.06, y[-1] * 0.985, "look\nalike", color=LIGHT.red, va="top")
    confused = pixels[quality.confused]
    axes.scatter(confused, 0 * confused, s=22, color=LIGHT.red, clip_on=False, zorder=3)
    axes.grid(linewidth=0.6)
    axes.set(xscale="log", xlim=(x[0], x[-1]), ylim=(min(-0.5, -0.02 * y[-1]), y[-1]))
    axes.set(xlabel="pixels in which two screens differ", ylabel="features in which they differ")
    charts.logarithmic_ticks(axes.xaxis)
    axes.yaxis.set_major_formatter(number)
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    caption = (
        f"{len(pixels):,} pairs of screens by the pixels and the features in which they differ"
    )
    return Chart("pixels_and_flips", caption, charts.figure_of(axes))


@charts.styled
def values(replanned: Replanned) -> Chart:
    """What the root's actions promise. A promise to lose a life is a full red bar: its size would hide the rest."""
    promised, planner = replanned.decision.values, replanned.config.planner
    names = [replanned.spoken_action(i) for i in range(len(promised))]
    loss = promised <= -planner.risk_alpha if planner.risk_averse else np.zeros(len(names), bool)
    small = promised[~np.isnan(promised) & ~loss]
    low, high = min(0.0, small.min(initial=0.0)), max(0.0, small.max(initial=0.0))
    span = (high - low) or 1.0
    axes = charts.axes(0.9 + 0.3 * len(names))
    axes.set_yticks(range(len(names)), names)
    for i, (value, label) in enumerate(zip(promised, axes.get_yticklabels(), strict=True)):
        chosen = i == replanned.decision.action
        text = f"{value:,.2f}".rstrip("0").rstrip(".").replace("-", "\N{MINUS SIGN}")
        place, align = max(value, 0) + 0.02 * span, "left"
        if np.isnan(value):
            text, place = "not tried", low + 0.02 * span
        elif loss[i]:
            axes.barh(i, span, 0.62, low, color=LIGHT.red, alpha=0.35)
            text, place, align = f"{text}: a loss", low + span / 2, "center"
        else:
            axes.barh(i, value, 0.62, color=LIGHT.gold if chosen else LIGHT.blue)
        written = axes.text(place, i, text, ha=align, va="center", color=LIGHT.faint)
        for each in (written, label) if chosen else ():
            each.set(color=LIGHT.ink, weight="bold")
    axes.axvline(0, color=LIGHT.line, lw=1)
    axes.set(xlim=(low, low + 1.28 * span), ylim=(len(names) - 0.4, -0.6))
    axes.set_xlabel("discounted return promised")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(number)
    known = [f"{names[i]} {promised[i]:,.1f}" for i in np.flatnonzero(~np.isnan(promised))]
    caption = f"what the actions promise: {', '.join(known)}"
    return Chart("values", caption, charts.figure_of(axes))


@charts.styled
def depths(replanned: Replanned) -> Chart:
    """How many nodes lie how deep: kept, new, and of all of them the pruned."""
    tree, kept, pruned = replanned.tree, replanned.kept, replanned.pruned
    depth = tree.depth[: tree.size]
    axes = charts.axes(2.9)
    bottom = np.zeros(depth.max() + 1)
    for name, nodes, colour, alpha in (
        ("kept", kept & ~pruned, LIGHT.grey, 1.0),
        ("kept, pruned", kept & pruned, LIGHT.grey, 0.4),
        ("new", ~kept & ~pruned, LIGHT.blue, 1.0),
        ("new, pruned", ~kept & pruned, LIGHT.blue, 0.4),
    ):
        if nodes.any():
            counts = np.bincount(depth[nodes], minlength=len(bottom))
            x = np.arange(len(bottom))
            axes.bar(x, counts, 0.9, bottom, color=colour, alpha=alpha, label=name, lw=0)
            bottom += counts
    axes.grid(axis="y")
    axes.set(xlabel="depth: steps from the root", ylabel="nodes")
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.legend()
    caption = f"{tree.size:,} nodes down to depth {depth.max():,}, {pruned.sum():,} of them pruned"
    return Chart("depths", caption, charts.figure_of(axes))
