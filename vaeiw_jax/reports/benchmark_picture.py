"""All that was measured, on one picture."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vaeiw_jax import durable
from vaeiw_jax.benchmarks import features, planner, scaling, training
from vaeiw_jax.benchmarks.measurements import PICTURE, Results, machine

_COLOURS = ("#33658a", "#86bbd8", "#f6ae2d", "#f26419", "#758e4f", "#7d5ba6", "#2f4858", "#c9a0a0")


def draw(results: Results, workdir: Path) -> Path:
    """Writes the picture; returns where it is."""
    panels: list[tuple[bool, Callable[[Axes, Results], None]]] = [
        (wide, panel)
        for suite, part, wide, panel in (
            (planner.SUITE, "rates", True, _rates),
            (planner.SUITE, "growth", False, _growth),
            (planner.SUITE, "memory", False, _memory),
            (planner.SUITE, "bprost", False, _bprost),
            (planner.SUITE, "start", False, _start),
            (features.SUITE, features.PART, False, _features),
            (scaling.SUITE, "emulators", False, _emulators),
            (scaling.SUITE, "budgets", False, _budgets),
            (training.SUITE, training.PART, False, _training),
        )
        if results.of(suite, part)
    ]
    rows: list[list[int]] = []
    for i, (wide, _) in enumerate(panels):
        if wide or not rows or len(rows[-1]) == 2 or panels[rows[-1][0]][0]:
            rows.append([i])
        else:
            rows[-1].append(i)
    figure = Figure(figsize=(11, 0.7 + 3.5 * max(1, len(rows))), layout="constrained")
    FigureCanvasAgg(figure)
    about = machine()
    figure.suptitle(f"{about['cores']} cores of {about['processor']}", fontsize=11, color="#555555")
    mosaic: Any = [[f"{i}" for i in row] if len(row) == 2 else [f"{row[0]}"] * 2 for row in rows]
    if panels:
        axes = figure.subplot_mosaic(mosaic)
        for i, (_, panel) in enumerate(panels):
            panel(axes[f"{i}"], results)
            axes[f"{i}"].spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=110)
    durable.write_bytes(workdir / PICTURE, picture.getvalue())
    return workdir / PICTURE


def _bars(
    axes: Axes, groups: list[str], series: dict[str, list[float]], slanted: bool = False
) -> None:
    """Bars side by side, a group per name."""
    width = 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        places = np.arange(len(groups)) + (i - (len(series) - 1) / 2) * width
        axes.bar(places, values, width * 0.92, label=name, color=_COLOURS[i % len(_COLOURS)])
    axes.set_xticks(np.arange(len(groups)), groups)
    for label in axes.get_xticklabels() if slanted else ():
        label.set(rotation=25, ha="right")
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=8, ncols=2)


def _rates(axes: Axes, results: Results) -> None:
    rates = results.of(planner.SUITE, "rates")
    methods = (planner.ONE_EMULATOR, planner.PARALLEL, planner.BPROST, planner.ONE_CORE)
    series = {name: list(planner.ratios(rates, name).values()) for name in methods}
    _bars(axes, list(rates), series)
    axes.axhline(1, color="#333333", linewidth=1, linestyle="--")
    axes.set_ylim(0, 1.25 * max(map(max, series.values())))
    axes.set_title("new nodes per second, as a share of the emulator bound")


def _growth(axes: Axes, results: Results) -> None:
    growth = results.of(planner.SUITE, "growth")
    short, long = next(iter(growth.values()))["seconds"]
    _bars(
        axes,
        list(growth),
        {
            f"{name}, {seconds:g} s": [each[name][which] for each in growth.values()]
            for name in planner.GROWING
            for which, seconds in (("short", short), ("long", long))
        },
        slanted=True,
    )
    axes.set_ylim(0, 1.4 * axes.get_ylim()[1])
    axes.set_title("new nodes per second, in short and long decisions")


def _memory(axes: Axes, results: Results) -> None:
    for i, (game, each) in enumerate(results.of(planner.SUITE, "memory").items()):
        axes.plot(each["decisions"], each["player"], label=game, color=_COLOURS[i])
    axes.set_ylim(0)
    axes.set_xlabel("decisions")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.set_title("resident memory of the player, MB")


def _bprost(axes: Axes, results: Results) -> None:
    bprost = results.of(planner.SUITE, "bprost")
    _bars(
        axes, list(bprost), {"": [each["milliseconds"] for each in bprost.values()]}, slanted=True
    )
    axes.set_title("B-PROST atoms of a new screen, ms")


def _start(axes: Axes, results: Results) -> None:
    start = results.of(planner.SUITE, "start")
    _bars(axes, list(start), {"": [each["second"] for each in start.values()]}, slanted=True)
    axes.set_title("from the command to the end of its first decision, s")


def _features(axes: Axes, results: Results) -> None:
    means = features.means(results)
    series = {
        "new screens": [each["new"] for each in means.values()],
        "screens seen before": [each["again"] for each in means.values()],
    }
    _bars(axes, list(means), series)
    axes.set_yscale("log")
    axes.set_title("atoms of a screen, ms")


def _emulators(axes: Axes, results: Results) -> None:
    """Means over the games."""
    games = list(results.of(scaling.SUITE, "emulators").values())
    emulators, in_flight = scaling.axes(games[0]["rates"])
    for i, number in enumerate(emulators):
        at = [n for n in in_flight if all(f"{number}x{n}" in g["rates"] for g in games)]
        mean = [np.mean([game["rates"][f"{number}x{n}"] for game in games]) for n in at]
        label = f"{number} emulator{'s' * (number > 1)}" if number else "none but the planner's"
        axes.plot(at, mean, marker="o", markersize=3, label=label, color=_COLOURS[i])
    axes.set_xscale("log", base=2)
    axes.set_xticks(in_flight, [str(n) for n in in_flight])
    axes.minorticks_off()
    axes.set_ylim(0)
    axes.set_xlabel("rollouts in flight")
    axes.legend(frameon=False, fontsize=8)
    axes.set_title("new nodes per second, by emulator processes")


def _budgets(axes: Axes, results: Results) -> None:
    for i, (game, each) in enumerate(results.of(scaling.SUITE, "budgets").items()):
        axes.plot(
            each["seconds"], each["rates"], marker="o", markersize=3, label=game, color=_COLOURS[i]
        )
    axes.set_xscale("log")
    axes.set_xticks(scaling.SECONDS, [f"{s:g}" for s in scaling.SECONDS])
    axes.minorticks_off()
    axes.set_ylim(0)
    axes.set_xlabel("seconds a decision")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    axes.set_title("new nodes per second, by the length of a decision")


def _training(axes: Axes, results: Results) -> None:
    medians = training.medians(results)
    who = list(next(iter(medians.values())))
    _bars(axes, list(medians), {each: [m[each] for m in medians.values()] for each in who})
    axes.set_ylim(0, 1.25 * axes.get_ylim()[1])  # room for the legend
    axes.set_title("a training step, s")
