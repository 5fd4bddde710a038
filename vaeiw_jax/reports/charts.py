"""The one chart style: figures drawn for a light page, whose colours are exchanged for a dark one."""

import collections
import functools
import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from vaeiw_jax.reports.score_statistics import Interval

Theme = collections.namedtuple(
    "Theme",
    "page card ink faint line highlight pruned grey blue orange green purple gold teal red",
)
"""Colours by their use, for charts and for the style sheet of the pages."""

LIGHT = Theme(
    *("#f5f6f8", "#ffffff", "#1d2330", "#69707f", "#dfe2e8", "#f1f6ff", "#c9d8f2", "#a9afbb"),
    *("#2f6fdb", "#e4672e", "#2a8a55", "#a268a8", "#d28a00", "#3f9f9a", "#d1373f"),
)
DARK = Theme(
    *("#11141b", "#1a1e27", "#e9ecf2", "#98a0b0", "#333a48", "#1d2533", "#34466b", "#6b7386"),
    *("#6ea3ff", "#ff8a5c", "#58c98c", "#c894ce", "#ffbe3d", "#6fcac4", "#ff6b70"),
)
SERIES = (LIGHT.grey, LIGHT.blue, LIGHT.orange, LIGHT.green, LIGHT.purple, LIGHT.gold, LIGHT.teal)
WIDTH = 4.8  # inches: narrow, so that the letters can be read on a phone
WIDE = 2 * WIDTH  # for all games side by side, at the top of a page

_TICKS = {"color": LIGHT.line, "labelcolor": LIGHT.faint, "major.size": 0, "minor.size": 0}
_STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": LIGHT.line,
    "axes.facecolor": LIGHT.card,
    "axes.labelcolor": LIGHT.faint,
    "axes.prop_cycle": cycler(color=SERIES[1:]),
    **{f"axes.spines.{side}": False for side in ("left", "right", "top")},
    "axes.titlecolor": LIGHT.ink,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "figure.constrained_layout.use": True,
    "figure.facecolor": LIGHT.card,
    "font.size": 9.5,
    "grid.color": LIGHT.line,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.handlelength": 1.2,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "vaeiw_jax",
    "text.color": LIGHT.ink,
    **{f"{axis}tick.{name}": value for axis in "xy" for name, value in _TICKS.items()},
}
styled = matplotlib.rc_context(_STYLE)
"""Decorates every function that draws."""


@dataclass(frozen=True)
class Chart:
    """A figure, by its axes, with its name and a sentence on what it shows."""

    name: str
    caption: str
    axes: Axes

    def svg(self, theme: Theme = LIGHT) -> bytes:
        """Equal figures give equal bytes."""
        exchange = dict(zip(LIGHT, theme, strict=True))
        colour = re.compile("#[0-9a-f]{6}")
        return colour.sub(lambda found: exchange.get(found[0], found[0]), self._light).encode()

    @property
    def _figure(self) -> Figure:
        figure = self.axes.figure
        assert isinstance(figure, Figure)
        return figure

    @functools.cached_property
    @styled
    def _light(self) -> str:
        return _saved(self._figure, format="svg", metadata={"Date": None}).decode()

    def png(self) -> bytes:
        return png(self._figure)


@styled
def png(figure: Figure) -> bytes:
    return _saved(figure, format="png", metadata={"Software": None})


def _saved(figure: Figure, **options: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, **options)
    return buffer.getvalue()


@styled
def axes(height: float, width: float = WIDTH) -> Axes:
    """Empty axes of a new figure, `height` inches high."""
    return Figure(figsize=(width, height)).add_subplot()


def number(value: float, _: object = None) -> str:
    """A tick's label; also a formatter of matplotlib."""
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def logarithmic_ticks(axis: Axis) -> None:
    """Round numbers: powers of ten and, where those are few, twice and five times them."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(number)


def legend(axes: Axes, side: str = "left", width: float = WIDTH) -> None:
    """Above the axes, in as many columns as fit, flush with their left or right side."""
    titles = axes.get_legend_handles_labels()[1]
    times = width / WIDTH
    columns = max(1, int(min(3 * times, 62 * times / (max(map(len, titles)) + 6))))
    place: dict[str, Any] = {"loc": f"lower {side}", "bbox_to_anchor": (side == "right", 1)}
    axes.legend(**place, ncols=columns, borderaxespad=0.2)


@styled
def by_game(
    values: Mapping[str, Mapping[str, float]],
    order: Mapping[str, float] | None = None,
    colours: Sequence[Any] = (),
) -> tuple[Axes, list[str]]:
    """A row for each game: bars of one or two methods, dots of more. Returns the games as well, from bottom to top.

    Args:
      values: by the title of a method, then by game.
      order: games are sorted by these values, or by name.
      colours: of the methods.
    """
    games = sorted({game for scores in values.values() for game in scores}, reverse=order is None)
    if order is not None:
        games.sort(key=lambda game: order.get(game, -math.inf))
    as_bars = len(values) < 3
    colours = colours or SERIES[as_bars:]
    height = 0.8 / max(1, len(values))
    drawn = axes(1.1 + 0.2 * math.ceil(len(values) / 2) + 0.2 * len(games))
    for i, (title, scores) in enumerate(values.items()):
        rows = np.array([row for row, game in enumerate(games) if game in scores])
        shown = [scores[games[row]] for row in rows]
        look: dict[str, Any] = {"label": title, "color": colours[i % len(colours)]}
        if as_bars:
            drawn.barh(rows + 0.4 - height * (i + 0.5), shown, height, **look)
        else:
            drawn.scatter(shown, rows, s=26, linewidth=0, zorder=2.5, **look)
    for row, game in enumerate(games if not as_bars else ()):
        found = [scores[game] for scores in values.values() if game in scores]
        drawn.hlines(row, min(found), max(found), color=LIGHT.line, zorder=2)
    drawn.set_yticks(range(len(games)), games)
    drawn.set_ylim(-0.7, len(games) - 0.3)
    drawn.grid(axis="x")
    drawn.axvline(0, color=LIGHT.grey, linewidth=0.8)
    legend(drawn, side="right")
    return drawn, games


@styled
def across_games(
    values: Mapping[str, Mapping[str, float]], order: Mapping[str, float], colours: Sequence[Any]
) -> Axes:
    """A column for each game, the largest of `order` first, with a dot for each method."""
    games = sorted({game for scores in values.values() for game in scores})
    games.sort(key=lambda game: order.get(game, -math.inf), reverse=True)
    drawn = axes(4.4, WIDE)
    for column, game in enumerate(games):
        found = [scores[game] for scores in values.values() if game in scores]
        drawn.vlines(column, min(found), max(found), color=LIGHT.line, linewidth=2)
    for (title, scores), colour in zip(values.items(), colours, strict=True):
        columns = [column for column, game in enumerate(games) if game in scores]
        shown = [scores[games[column]] for column in columns]
        drawn.scatter(columns, shown, s=22, linewidth=0, zorder=3, color=colour, label=title)
    drawn.set_xticks(range(len(games)), games, rotation=90)
    drawn.set_xlim(-0.7, len(games) - 0.3)
    drawn.grid(axis="y")
    legend(drawn, side="right", width=WIDE)
    return drawn


@styled
def intervals(estimates: Mapping[str, Interval], label: str, reference: float) -> Axes:
    """Estimates by title, with their intervals where they have one; a line at the reference if it is not far away."""
    titles = [textwrap.fill(title, 26, break_on_hyphens=False) for title in estimates]
    drawn = axes(0.8 + 0.3 * len(titles) + 0.12 * sum(title.count("\n") for title in titles))
    for row, estimate in enumerate(estimates.values()):
        colour = SERIES[(row + (len(titles) < 3)) % len(SERIES)]
        if estimate.is_known:
            width = estimate.high - estimate.low
            drawn.barh(row, width, 0.4, estimate.low, color=colour, alpha=0.5)
        drawn.plot(estimate.value, row, "|", color=LIGHT.ink, markersize=11, markeredgewidth=2)
    drawn.set_yticks(range(len(titles)), titles)
    low, high = drawn.get_xlim()
    if low - (high - low) <= reference <= high + (high - low):
        drawn.axvline(reference, color=LIGHT.faint, linewidth=0.8, linestyle=(0, (4, 3)))
    drawn.invert_yaxis()
    drawn.set_xlabel(label, loc="right")
    drawn.grid(axis="x")
    return drawn


@styled
def dots(scores: Mapping[str, Sequence[float]], marks: Mapping[str, float]) -> Axes:
    """A row for each method with a dot for each run; marks are lines across, such as the human score."""
    drawn = axes(0.75 + 0.28 * len(scores))
    for row, (title, runs) in enumerate(scores.items()):
        colour = SERIES[row % len(SERIES)]
        drawn.scatter(runs, [title] * len(runs), s=40, color=colour, alpha=0.65, linewidth=0)
    middle = sum(marks.values()) / max(1, len(marks))
    for title, at in marks.items():  # labelled away from one another
        drawn.axvline(at, color=LIGHT.faint, linewidth=0.8, linestyle=(0, (4, 3)))
        side = "right" if at < middle else "left" if at > middle else "center"
        above: dict[str, Any] = {
            "transform": drawn.get_xaxis_transform(),
            "ha": side,
            "va": "bottom",
        }
        drawn.text(at, 1.01, f" {title} ", size=9, color=LIGHT.faint, **above)
    drawn.set_ylim(len(scores) - 0.5, -0.5)
    drawn.margins(x=0.08)
    drawn.xaxis.set_major_formatter(number)
    drawn.locator_params(axis="x", nbins=5)
    drawn.grid(axis="x")
    return drawn
