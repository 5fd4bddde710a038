"""The figures of a report, as matplotlib draws them: games down the page, so that they can be read on a phone."""

import io
import math
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vaeiw_jax.reports.score_statistics import Interval

COLOURS = ("#9aa5b1", "#4c78a8", "#e4572e", "#54a24b", "#b279a2", "#eeca3b", "#72b7b2", "#9d755d")
_INK, _FAINT = "#222222", "#888888"
_WIDTH = 6.4  # inches

Bars = Mapping[str, Mapping[str, float]]
"""Values by the title of a method, then by game."""


def normalised_bars(bars: Bars, percents: Mapping[str, float], highlighted: int) -> Figure:
    """The paper's Figure 1: percent of the way from random play to a human.

    Args:
      bars: percents of each method in each game.
      percents: those written beside the bars.
      highlighted: which of the methods is ours; those after it, the same in the paper, are paler.
    """
    others = (COLOURS[1], COLOURS[0], *COLOURS[3:])[:highlighted]
    figure, axes = _bar_chart(bars, percents, [*others, COLOURS[2], "#f4b9a7"])
    axes.axvline(100, color=_INK, linewidth=0.8, linestyle=(0, (4, 3)), zorder=3)
    axes.set_xscale("symlog", linthresh=100, linscale=1.5)
    values = [value for by_game in bars.values() for value in by_game.values()]
    low, high = min([*values, 0.0]), max([*values, 120.0])
    axes.set_xlim(low * 1.6 if low < 0 else -4, high * 6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}%")
    axes.tick_params(axis="x", labelrotation=30)
    axes.set_xlabel("0%: random play, 100%: human (linear up to 100%, logarithmic beyond)")
    for row, game in enumerate(_ordered(bars, percents)):
        if game in percents:
            axes.annotate(
                f"{round(percents[game]):,}%",
                (1, row),
                xycoords=("axes fraction", "data"),
                va="center",
                ha="right",
                size=8,
                color=_INK,
            )
    return figure


def game_bars(bars: Bars, label: str, logarithmic: bool = False) -> Figure:
    """A value of each method in each game (the paper's Figures 2 and 3)."""
    figure, axes = _bar_chart(bars)
    if logarithmic:
        axes.set_xscale("symlog", linthresh=10)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel(label)
    return figure


def _ordered(bars: Bars, order: Mapping[str, float] | None) -> list[str]:
    """The games from bottom to top: by the value given for them, or by name."""
    games = {game for by_game in bars.values() for game in by_game}
    if order is None:
        return sorted(games, reverse=True)
    return sorted(games, key=lambda game: (order.get(game, -math.inf), game))


def _bar_chart(
    bars: Bars, order: Mapping[str, float] | None = None, colours: Sequence[str] = ()
) -> tuple[Figure, Axes]:
    games = _ordered(bars, order)
    height = 0.8 / max(1, len(bars))
    figure, axes = _figure(1.3 + len(games) * max(0.2, 0.09 * len(bars)))
    for i, (title, by_game) in enumerate(bars.items()):
        rows = [row for row, game in enumerate(games) if game in by_game]
        values = [by_game[games[row]] for row in rows]
        offset = 0.4 - height * (i + 0.5)
        colour = colours[i] if len(bars) <= len(colours) else _colour(i, len(bars))
        axes.barh(np.array(rows) + offset, values, height, label=title, color=colour)
    axes.set_yticks(range(len(games)), games)
    axes.set_ylim(-0.7, len(games) - 0.3)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    axes.axvline(0, color=_FAINT, linewidth=0.8)
    _legend_above(axes, list(bars))
    return figure, axes


def intervals(
    estimates: Mapping[str, Interval], label: str, reference: float | None = None
) -> Figure:
    """Estimates by title, with their intervals."""
    figure, axes = _figure(0.9 + 0.42 * len(estimates))
    for row, estimate in enumerate(reversed(list(estimates.values()))):
        colour = _colour(len(estimates) - 1 - row, len(estimates))
        axes.plot(
            [estimate.low, estimate.high],
            [row, row],
            color=colour,
            linewidth=7,
            alpha=0.4,
            solid_capstyle="butt",
        )
        axes.plot([estimate.value], [row], "|", color=_INK, markersize=14, markeredgewidth=2)
    if reference is not None:
        axes.axvline(reference, color=_FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_yticks(range(len(estimates)), list(estimates)[::-1])
    axes.set_ylim(-0.6, len(estimates) - 0.4)
    axes.set_xlabel(label)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6)
    return figure


def correlation(
    points: Mapping[str, tuple[float, float]], labels: tuple[str, str], title: str
) -> Figure:
    """A point for each game."""
    figure, axes = _figure(4.4)
    x, y = zip(*points.values(), strict=True)
    axes.scatter(x, y, s=22, color=COLOURS[2], zorder=3)
    for game, at in points.items():
        axes.annotate(game, at, (4, 3), textcoords="offset points", size=7, color=_FAINT)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.set_title(title, size=10, loc="left", color=_INK)
    axes.margins(x=0.15)
    axes.grid(color="#e4e4e4", linewidth=0.6)
    return figure


def curves(
    lines: Mapping[str, Sequence[tuple[float, Interval]]], labels: tuple[str, str]
) -> Figure:
    """Estimates against a budget, with a band for their intervals."""
    figure, axes = _figure(4.2)
    for i, (title, points) in enumerate(lines.items()):
        colour = COLOURS[1 + i % (len(COLOURS) - 1)]
        x = [budget for budget, _ in points]
        axes.plot(x, [value.value for _, value in points], "o-", color=colour, label=title)
        low, high = [value.low for _, value in points], [value.high for _, value in points]
        axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    axes.grid(color="#e4e4e4", linewidth=0.6)
    _legend_above(axes, list(lines))
    return figure


def _colour(index: int, of: int) -> str:
    """With three or fewer, the last is the one that stands out."""
    return COLOURS[index % len(COLOURS)] if of > 2 else COLOURS[index + 1]


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_FAINT)
    axes.tick_params(axis="both", length=0, labelsize=8, colors=_INK)
    axes.set_axisbelow(True)
    return figure, axes


def _legend_above(axes: Axes, titles: list[str]) -> None:
    """In as many columns as fit the page."""
    columns = max(1, min(3, 90 // (max(map(len, titles)) + 8)))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=8)


def rendered(figure: Figure) -> dict[str, bytes]:
    """The figure's files, by suffix; equal figures give equal bytes."""
    files = {}
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "vaeiw_jax"}):
        for suffix in ("svg", "png"):
            buffer = io.BytesIO()
            metadata = {"Date": None} if suffix == "svg" else {"Software": None}
            figure.savefig(buffer, format=suffix, dpi=150, metadata=metadata)
            files[suffix] = buffer.getvalue()
    return files
