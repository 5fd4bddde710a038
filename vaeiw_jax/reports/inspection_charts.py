"""Charts, each in two themes: for a light page, and on disk, and for a dark one."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.inspection.quality import Quality

_DPI = 220
_WIDTH = 4.8  # inches: narrow, so that the letters can be read on a phone


@dataclass(frozen=True)
class Theme:
    """Colours by what they are for."""

    paper: str
    ink: str
    faint: str
    line: str
    blue: str
    grey: str
    gold: str
    red: str
    green: str


LIGHT = Theme(
    paper="#ffffff",
    ink="#1d2330",
    faint="#69707f",
    line="#dfe2e8",
    blue="#2f6fdb",
    grey="#a9afbb",
    gold="#d28a00",
    red="#d1373f",
    green="#2a8a55",
)
DARK = Theme(
    paper="#1a1e27",
    ink="#e9ecf2",
    faint="#98a0b0",
    line="#333a48",
    blue="#6ea3ff",
    grey="#6b7386",
    gold="#ffbe3d",
    red="#ff6b70",
    green="#58c98c",
)


@dataclass(frozen=True)
class Chart:
    """A chart as PNG files."""

    name: str
    light: bytes
    dark: bytes
    alt: str


def chart(name: str, alt: str, height: float, draw: Callable[[Axes, Theme], None]) -> Chart:
    """Draws a chart of so many inches in both themes.

    Args:
      name: of the file.
      alt: what it shows, for who cannot see it.
      height: in inches; all are 4.8 wide.
      draw: draws it on axes that are otherwise bare.
    """

    def in_theme(theme: Theme) -> bytes:
        figure = Figure(figsize=(_WIDTH, height), dpi=_DPI, facecolor=theme.paper)
        figure.set_layout_engine("constrained")
        axes = figure.add_subplot(facecolor=theme.paper)
        axes.tick_params(labelsize=10, colors=theme.faint, length=0)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set_color(theme.line)
        axes.set_axisbelow(True)
        draw(axes, theme)
        for label in (axes.xaxis.label, axes.yaxis.label):
            label.set(size=10.5, color=theme.faint)
        return png(figure)

    return Chart(name, in_theme(LIGHT), in_theme(DARK), alt)


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


def firing(quality: Quality) -> Chart:
    """How often each feature is true, the features in order of it."""
    shares = np.sort(quality.shares)[::-1]
    ranks = np.arange(1, len(shares) + 1)
    always, never = int((shares == 1).sum()), int((shares == 0).sum())

    def draw(axes: Axes, theme: Theme) -> None:
        axes.fill_between(ranks, 100 * shares, step="mid", color=theme.blue, alpha=0.18, lw=0)
        axes.step(ranks, 100 * shares, where="mid", color=theme.blue, lw=2)
        axes.grid(axis="y", color=theme.line, lw=0.8)
        axes.set(xlim=(0, len(shares)), ylim=(0, 104))
        axes.set_xlabel("features, the most often true first")
        axes.set_ylabel("true in … of the frames")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0f}%"))
        axes.xaxis.set_major_formatter(_THOUSANDS)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))

    alt = f"{always:,} features are always true, {never:,} never, {len(shares) - always - never:,} vary"
    return chart("firing", alt, 2.9, draw)


def true_per_frame(quality: Quality) -> Chart:
    """A histogram of how many features are true in a frame."""
    counts = quality.bits.sum(axis=1)

    def draw(axes: Axes, theme: Theme) -> None:
        bins = min(30, int(np.ptp(counts)) + 1)
        axes.hist(counts, bins=bins, color=theme.blue, edgecolor=theme.paper, lw=1)
        axes.grid(axis="y", color=theme.line, lw=0.8)
        axes.set_xlabel("true features in a frame")
        axes.set_ylabel("frames")
        axes.xaxis.set_major_formatter(_THOUSANDS)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))

    alt = f"from {counts.min():,} to {counts.max():,} features are true in a frame"
    return chart("true_per_frame", alt, 2.9, draw)


def pixels_and_flips(quality: Quality) -> Chart:
    """For all pairs of screens: in how many pixels and in how many features they differ."""
    pixels, flips = quality.pairs.pixels, quality.pairs.flips

    def draw(axes: Axes, theme: Theme) -> None:
        x = np.geomspace(max(1, pixels.min()), pixels.max() + 1, 50)
        y = np.linspace(-0.5, flips.max() + 0.5, 41)
        counts, _, _ = np.histogram2d(pixels, flips, [x, y])
        colours = LinearSegmentedColormap.from_list("", [_thinned(theme, 0.25), theme.blue])
        norm = LogNorm(1, max(2, counts.max()))
        axes.pcolormesh(x, y, np.ma.masked_equal(counts.T, 0), cmap=colours, norm=norm)
        axes.axvspan(x[0], min(quality.alike_pixels, x[-1]), color=theme.red, alpha=0.10, lw=0)
        if quality.alike_pixels > x[0]:
            axes.text(x[0] * 1.06, y[-1] * 0.985, "look\nalike", size=10, color=theme.red, va="top")
        if len(quality.confused):
            axes.scatter(
                pixels[quality.confused],
                np.zeros(len(quality.confused)),
                s=22,
                color=theme.red,
                clip_on=False,
                zorder=3,
            )
        axes.grid(color=theme.line, lw=0.6)
        axes.set(xscale="log", xlim=(x[0], x[-1]), ylim=(min(-0.5, -0.02 * y[-1]), y[-1]))
        axes.set_xlabel("pixels in which two screens differ")
        axes.set_ylabel("features in which they differ")
        axes.xaxis.set_major_formatter(_THOUSANDS)
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda x, _: ""))
        axes.tick_params(which="minor", length=0)
        axes.yaxis.set_major_formatter(_THOUSANDS)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))

    alt = f"{len(pixels):,} pairs of screens by the pixels and the features in which they differ"
    return chart("pixels_and_flips", alt, 3.6, draw)


def values(replanned: Replanned) -> Chart:
    """What the root's actions promise. A promise to lose a life is a full red bar: its size would hide the rest."""
    promised = replanned.decision.values
    names = [replanned.spoken_action(i) for i in range(len(promised))]
    planner = replanned.config.planner
    grave = promised <= -planner.risk_alpha if planner.risk_averse else np.zeros(len(names), bool)
    small = promised[~np.isnan(promised) & ~grave]
    low, high = min(0.0, small.min(initial=0.0)), max(0.0, small.max(initial=0.0))
    span = (high - low) or 1.0

    def draw(axes: Axes, theme: Theme) -> None:
        for i, value in enumerate(promised):
            chosen = i == replanned.decision.action
            ink: dict[str, Any] = {
                "size": 10,
                "va": "center",
                "color": theme.ink if chosen else theme.faint,
            }
            ink["weight"] = "bold" if chosen else "normal"
            if np.isnan(value):
                axes.text(low + 0.02 * span, i, "not tried", **ink | {"style": "italic"})
                continue
            colour = theme.red if grave[i] else theme.gold if chosen else theme.blue
            length = span if grave[i] else value
            left, alpha = (low, 0.35) if grave[i] else (0.0, 1.0)
            axes.barh(i, length, 0.62, left, color=colour, alpha=alpha, lw=0)
            text = f"{value:,.2f}".rstrip("0").rstrip(".").replace("-", "\N{MINUS SIGN}")
            inside = {"color": theme.ink, "ha": "center"} if grave[i] else {}
            note = f"{text}: a loss" if grave[i] else text
            place = low + span / 2 if grave[i] else max(length, 0) + 0.02 * span
            axes.text(place, i, note, **ink | inside)
        axes.axvline(0, color=theme.line, lw=1)
        axes.set(xlim=(low, low + 1.28 * span), ylim=(len(names) - 0.4, -0.6))
        axes.set_yticks(range(len(names)), names)
        for i, label in enumerate(axes.get_yticklabels()):
            if i == replanned.decision.action:
                label.set(color=theme.ink, weight="bold")
        axes.set_xlabel("discounted return promised")
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(_THOUSANDS)

    told = ", ".join(
        f"{name} {value:,.1f}"
        for name, value in zip(names, promised, strict=True)
        if value == value
    )
    return chart("values", f"what the actions promise: {told}", 0.9 + 0.3 * len(names), draw)


def depths(replanned: Replanned) -> Chart:
    """How many nodes lie how deep: kept, new, and of all of them the pruned."""
    tree = replanned.tree
    depth = tree.depth[: tree.size]
    kept, pruned = replanned.kept, replanned.pruned
    groups = {
        "kept": kept & ~pruned,
        "kept, pruned": kept & pruned,
        "new": ~kept & ~pruned,
        "new, pruned": ~kept & pruned,
    }

    def draw(axes: Axes, theme: Theme) -> None:
        colours = {"kept": theme.grey, "new": theme.blue}
        bottom = np.zeros(depth.max() + 1)
        for name, group in groups.items():
            counts = np.bincount(depth[group], minlength=len(bottom))
            if not counts.any():
                continue
            alpha = 0.4 if "pruned" in name else 1
            colour = colours[name.partition(",")[0]]
            x = np.arange(len(bottom))
            axes.bar(x, counts, 0.9, bottom, color=colour, alpha=alpha, label=name, lw=0)
            bottom += counts
        axes.grid(axis="y", color=theme.line, lw=0.8)
        axes.set_xlabel("depth: steps from the root")
        axes.set_ylabel("nodes")
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.legend(frameon=False, fontsize=10, labelcolor=theme.ink, handlelength=1.2)

    alt = f"{tree.size:,} nodes down to depth {depth.max():,}, {pruned.sum():,} of them pruned"
    return chart("depths", alt, 2.9, draw)


def _thinned(theme: Theme, share: float) -> str:
    """Blue, of which `share` is left, the rest paper."""
    red, green, blue = (
        share * own + (1 - share) * paper
        for own, paper in zip(to_rgb(theme.blue), to_rgb(theme.paper), strict=True)
    )
    return to_hex((red, green, blue))


_THOUSANDS = FuncFormatter(lambda x, _: f"{x:,.0f}" if x == int(x) else f"{x:g}")
