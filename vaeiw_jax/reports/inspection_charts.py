"""The charts of an inspection: features, how searches ended, what actions promise, how deep a tree is."""

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.ticker import MaxNLocator

from vaeiw_jax.inspection.atoms import Atoms
from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.inspection.findings import Findings
from vaeiw_jax.inspection.quality import Quality
from vaeiw_jax.inspection.recorded_run import SOLVED_EARLY, SPENT, WIDENED, RecordedRun
from vaeiw_jax.reports import atoms_section, charts
from vaeiw_jax.reports.charts import LIGHT, Chart, number


def draw(findings: Findings) -> dict[str, Chart]:
    """The charts, by name."""
    quality, replanned = findings.quality, findings.replanned
    drawn = [firing(quality), true_per_frame(quality), pixels_and_flips(quality)]
    drawn += [uses_of_atoms(findings.atoms), unusual_atoms(findings.atoms)]
    if findings.recorded:
        drawn += [depths_by_ending(findings.recorded), depth_of_decisions(findings.recorded)]
    if replanned:
        drawn += [values(replanned), depths(replanned)]
    return {chart.name: chart for chart in drawn}


def _count_axes(axes: Axes, xlabel: str, ylabel: str) -> None:
    """Of whole numbers, few of them written out."""
    axes.grid(axis="y")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.xaxis.set_major_formatter(number)
    axes.yaxis.set_major_formatter(number)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))


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
    return Chart("firing", caption, axes)


@charts.styled
def true_per_frame(quality: Quality) -> Chart:
    """A histogram of how many features are true in a frame."""
    counts = quality.bits.sum(axis=1)
    axes = charts.axes(2.9)
    axes.hist(
        counts,
        _whole_edges(counts.min(), counts.max()),
        color=LIGHT.blue,
        edgecolor=LIGHT.card,
        lw=1,
    )
    _count_axes(axes, "true features in a frame", "frames")
    caption = f"from {counts.min():,} to {counts.max():,} features are true in a frame"
    return Chart("true_per_frame", caption, axes)


def _whole_edges(least: int, most: int) -> list[float]:
    """Edges of at most 30 bars, each of which counts as many whole numbers as the others."""
    width = -(-(int(most) - int(least) + 1) // 30)
    return (np.arange(int(least), int(most) + width + 1, width) - 0.5).tolist()


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
    return Chart("pixels_and_flips", caption, axes)


@charts.styled
def uses_of_atoms(atoms: Atoms) -> Chart:
    """Of what use atoms are to novelty, a bar for each kind of them."""
    kinds = atoms_section.by_title(atoms)
    uses = {
        "switched on": (LIGHT.blue, lambda part: part.switched_on),
        "switched off": (LIGHT.orange, lambda part: part.switched_off),
        "seldom different": (LIGHT.pruned, lambda part: part.seldom_different),
        "always true": (LIGHT.grey, lambda part: part.shares == 1),
        "never true": (LIGHT.line, lambda part: part.shares == 0),
    }
    axes = charts.axes(1.5 + 0.45 * len(kinds))
    left = np.zeros(len(kinds))
    for use, (colour, chosen) in uses.items():
        counts = np.array([int(chosen(part).sum()) for part in kinds.values()])
        axes.barh(range(len(kinds)), counts, 0.62, left, color=colour, label=use)
        left += counts
    axes.set_yticks(range(len(kinds)), [textwrap.fill(title, 18) for title in kinds])
    axes.set(xlabel="atoms", xlim=(0, left.max()), ylim=(len(kinds) - 0.4, -0.6))
    axes.xaxis.set_major_formatter(number)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    charts.legend(axes)
    on, off = atoms.switched_on.sum(), atoms.switched_off.sum()
    caption = f"of {atoms.true.shape[1]:,} atoms an object switches {on:,} on and {off:,} off"
    return Chart("uses_of_atoms", caption, axes)


@charts.styled
def unusual_atoms(atoms: Atoms) -> Chart:
    """Histograms of how many atoms an object switches on and off on a screen."""
    on, off = atoms.on_per_screen, atoms.off_per_screen
    # A few screens, such as the title's, are like no other: they are counted in the last bar.
    most = int(np.ceil(np.quantile(np.concatenate([on, off]), 0.99)))
    cut = " (last bar: or more)" if max(on.max(), off.max()) > most else ""
    axes = charts.axes(2.9)
    for counts, colour, label in (
        (on, LIGHT.blue, "switched on: can be new"),
        (off, LIGHT.orange, "switched off: cannot be seen"),
    ):
        axes.hist(
            np.minimum(counts, most),
            _whole_edges(0, most),
            **{"color": colour, "alpha": 0.55, "lw": 0, "label": label},
        )
    _count_axes(axes, f"atoms that are not as usual on a screen{cut}", "screens")
    charts.legend(axes)
    caption = f"on a screen {on.mean():,.0f} atoms are switched on and {off.mean():,.0f} off"
    return Chart("unusual_atoms", caption, axes)


_ENDINGS = {SPENT: LIGHT.blue, WIDENED: LIGHT.teal, SOLVED_EARLY: LIGHT.orange}


@charts.styled
def depths_by_ending(recorded: RecordedRun) -> Chart:
    """A histogram of the depth of the deepest node, by how decisions ended."""
    depth, endings = recorded.decisions["depth"], recorded.endings()
    shown = {name: depth[endings[name]] for name in _ENDINGS if endings[name].any()}
    low, high = int(depth.min()), int(depth.max())
    step = -(-(high - low + 1) // 30)  # a bar is of as many depths as any other
    axes = charts.axes(2.9)
    axes.hist(
        list(shown.values()),
        np.arange(low - 0.5, high + step, step).tolist(),
        stacked=True,
        color=[_ENDINGS[name] for name in shown],
        label=list(shown),
        lw=0,
    )
    _count_axes(axes, "depth of the deepest node", "decisions")
    charts.legend(axes)
    means = [f"{each.mean():,.0f} ({name})" for name, each in shown.items()]
    return Chart("depths_by_ending", f"the mean depth reached is {', '.join(means)}", axes)


@charts.styled
def depth_of_decisions(recorded: RecordedRun) -> Chart:
    """How deep each decision of the run looked, and how it ended."""
    depth, endings = recorded.decisions["depth"], recorded.endings()
    axes = charts.axes(2.9)
    for name, colour in _ENDINGS.items():
        chosen = np.flatnonzero(endings[name])
        if len(chosen):
            drawn = axes.scatter(chosen, depth[chosen], s=12, color=colour, lw=0, label=name)
            drawn.set_rasterized(len(depth) > 1000)  # a path for each of them would be large
    _count_axes(axes, "decision", "depth of the deepest node")
    axes.set_ylim(0, 1.05 * max(1, depth.max()))
    charts.legend(axes)
    solved = int(recorded.solved.sum())
    caption = f"{solved:,} of {len(depth):,} decisions were solved before their budget was spent"
    return Chart("depth_of_decisions", caption, axes)


@charts.styled
def values(replanned: Replanned) -> Chart:
    """What the root's actions promise. A promise to lose a life is a full red bar: its size would hide the rest."""
    promised, planner = replanned.decision.values, replanned.config.planner
    names = [replanned.readable_action(i) for i in range(len(promised))]
    # Discounted over some steps, a loss that is magnified is a little less than alpha.
    magnified = -0.1 * planner.risk_alpha if planner.risk_averse else -np.inf
    loss = promised <= magnified
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
    return Chart("values", caption, axes)


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
    _count_axes(axes, "depth: steps from the root", "nodes")
    axes.legend()
    caption = f"{tree.size:,} nodes down to depth {depth.max():,}, {pruned.sum():,} of them pruned"
    return Chart("depths", caption, axes)
