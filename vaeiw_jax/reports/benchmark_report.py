"""What was measured: tables in Markdown for each suite, and everything on one picture."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaeiw_jax import durable
from vaeiw_jax.benchmarks import features_suite, planner_suite, scaling_suite, training_suite
from vaeiw_jax.benchmarks.config import PLANNER_PARTS
from vaeiw_jax.benchmarks.machine_load import DISTURBED
from vaeiw_jax.benchmarks.measurements import PICTURE, Measurements, geometric_mean, machine
from vaeiw_jax.playing.planned_episode import LATE_SECONDS
from vaeiw_jax.reports import charts
from vaeiw_jax.reports.charts import LIGHT
from vaeiw_jax.reports.pages import plural
from vaeiw_jax.reports.tables import Column, Table, Value

_METHODS = (
    planner_suite.ONE_EMULATOR,
    planner_suite.PARALLEL,
    planner_suite.BPROST,
    planner_suite.ONE_CORE,
)


def to_markdown(suite: str, measurements: Measurements) -> str:
    """The tables of a suite."""
    tables = {
        planner_suite.SUITE: _planner_tables,
        features_suite.SUITE: _features_tables,
        scaling_suite.SUITE: _scaling_tables,
        training_suite.SUITE: _training_tables,
    }[suite](measurements)
    return "\n\n".join(table.to_markdown() for table in tables)


def _table(titles: Sequence[str], rows: Sequence[Sequence[Value]], **options: Any) -> Table:
    """The first column is text, the others are numbers."""
    columns = [Column(title, format=".0f", text=i == 0) for i, title in enumerate(titles)]
    return Table(columns, rows, **options)


def _planner_tables(measurements: Measurements) -> list[Table]:
    disturbed = [
        f"{part} of {game} ({each['others']:.0%})"
        for part in PLANNER_PARTS
        for game, each in measurements.of(planner_suite.SUITE, part).items()
        if each["others"] > DISTURBED
    ]
    note = f"The machine was not idle, others using a share of it, in {', '.join(disturbed)}."
    titles = ("what", "at least", "aim", "measured")
    rows = _planner_rows(measurements)
    tables = [_table(titles, rows, notes=[note] if disturbed else [])]
    rates = measurements.of(planner_suite.SUITE, "rates")
    if rates:
        shares = [planner_suite.ratios(rates, name) for name in _METHODS]
        by_game = [
            [game, each["rates"][planner_suite.BOUND], *(f"{share[game]:.2f}" for share in shares)]
            for game, each in rates.items()
        ]
        tables.append(_table(("game", f"nodes/s, {planner_suite.BOUND}", *_METHODS), by_game))
    tables += [
        _compared_on_one_core({game: each["rates"] for game, each in measured.items()})
        for part in planner_suite.ON_ONE_CORE
        if (measured := measurements.of(planner_suite.SUITE, part))
    ]
    return tables


def _compared_on_one_core(rates: dict[str, dict[str, float]]) -> Table:
    """Nodes per second by game and setting, and in the mean as a share of those with the first setting."""
    first, *others = names = list(next(iter(rates.values())))
    shares = [
        geometric_mean(each[name] / each[first] for each in rates.values()) for name in others
    ]
    rows: list[list[Value]] = [
        [game, *(each[name] for name in names)] for game, each in rates.items()
    ]
    rows.append([f"geometric mean, of {first}", "1", *(f"{share:.2f}" for share in shares)])
    return _table(("nodes/s on one core", *names), rows)


def _planner_rows(measurements: Measurements) -> list[tuple[str, str, str, str]]:
    """What was measured beside what it should be."""
    rows = []
    rates = measurements.of(planner_suite.SUITE, "rates")
    for name, what, at_least, aim in (
        (planner_suite.ONE_EMULATOR, "VAE-IW, one emulator", "0.60", "0.95"),
        (planner_suite.PARALLEL, "VAE-IW, parallel emulators", "1.00", "1.6"),
        (planner_suite.BPROST, "RolloutIW with B-PROST, one emulator", "0.55", "0.9"),
        (planner_suite.ONE_CORE, "VAE-IW on one core", "0.30", "0.6"),
    ):
        if rates:
            ratio = geometric_mean(planner_suite.ratios(rates, name).values())
            rows.append((f"{what}, of the emulator bound", at_least, aim, f"{ratio:.2f}"))
    if symbols := measurements.of(planner_suite.SUITE, "symbols"):
        seconds = next(iter(symbols.values()))["seconds_a_decision"]
        pairs = [each["nodes_a_decision"][planner_suite.PAIRS] for each in symbols.values()]
        what = f"{planner_suite.PAIRS} on one core, nodes in {seconds:g} s, the median game"
        rows.append((what, "150", "", f"{np.median(pairs):.0f}"))
        shares = (
            each["rates"][planner_suite.RECOMMENDED] / each["rates"][planner_suite.HAND_MADE]
            for each in symbols.values()
        )
        what = "the recommended protocol on one core, nodes/s, of those with B-PROST"
        rows.append((what, "0.95", "1.1", f"{geometric_mean(shares):.2f}"))
    if bprost := measurements.of(planner_suite.SUITE, "bprost"):
        mean = geometric_mean(each["milliseconds"] for each in bprost.values())
        rows.append(("B-PROST atoms of a new screen", "1.5 ms", "0.5 ms", f"{mean:.2f} ms"))
    if growth := measurements.of(planner_suite.SUITE, "growth"):
        short, long = next(iter(growth.values()))["seconds"]
        for name in planner_suite.GROWING:
            mean = geometric_mean(
                each[name]["long"] / each[name]["short"] for each in growth.values()
            )
            most = max(each[name]["long_nodes"] for each in growth.values())
            what = f"growth, {name}: nodes/s at {long:g} s a decision, of those at {short:g} s"
            rows.append((what, "0.8", "1.0", f"{mean:.2f} (at most {most:,} nodes)"))
    if memory := measurements.of(planner_suite.SUITE, "memory"):
        rows += _memory_rows(memory)
    if start := measurements.of(planner_suite.SUITE, "start"):
        worst = max(each["second"] for each in start.values())
        rows.append(("start: to the end of the first decision", "10 s", "4 s", f"{worst:.1f} s"))
    if rates:
        late = sum(sum(each["late"].values()) for each in rates.values())
        number = sum(sum(each["decisions"].values()) for each in rates.values())
        what = f"decisions that end more than {1e3 * LATE_SECONDS:.0f} ms late"
        rows.append((what, "1%", "", f"{late / number:.1%} of {number:,}"))
    return rows


def _memory_rows(memory: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    last = max(each["player"][-1] + each["emulators"][-1] for each in memory.values())
    player = max(each["player"][-1] for each in memory.values())
    decisions = next(iter(memory.values()))["decisions"]
    early = 1 + min(range(len(decisions)), key=lambda i: abs(decisions[i] - planner_suite.EARLY))
    grown = max(max(each["player"]) - max(each["player"][:early]) for each in memory.values())
    measured = f"{player:.0f} MB, {last:.0f} MB with its emulators"
    rows = [(f"memory after {decisions[-1]:,} decisions", "1,000 MB", "500 MB", measured)]
    if decisions[-1] > planner_suite.EARLY:
        what = f"growth of its peak from decision {planner_suite.EARLY} on"
        rows.append((what, "flat", "", f"{grown:+.0f} MB"))
    return rows


def _features_tables(measurements: Measurements) -> list[Table]:
    if not measurements.of(features_suite.SUITE, features_suite.PART):
        return []
    means = features_suite.means(measurements).items()
    rows = [[name, f"{mean['new']:.3f}", f"{mean['again']:.3f}"] for name, mean in means]
    tables = [_table(("features", "ms per new screen", "ms per screen seen before"), rows)]
    encoders = features_suite.encoder_means(measurements)
    if encoders:
        sizes = list(encoders["xla"])
        games = measurements.of(features_suite.SUITE, features_suite.ENCODERS).values()
        devices = ", ".join(sorted({game["device"] for game in games}))
        titles = [f"ms per new screen, xla on {devices}", *(f"batches of {n}" for n in sizes)]
        rows = [
            [name, *(f"{by_size[size]:.2f}" if size in by_size else "" for size in sizes)]
            for name, by_size in encoders.items()
        ]
        tables.append(_table(titles, rows))
    return tables


def _scaling_tables(measurements: Measurements) -> list[Table]:
    tables = []
    for game, each in measurements.of(scaling_suite.SUITE, "emulators").items():
        emulators, in_flight = scaling_suite.axes(each["rates"])
        titles = [f"{game}: nodes/s", *(f"{n} in flight" for n in in_flight)]
        rows = [
            [f"{number} emulator processes"]
            + [each["rates"].get(f"{number}x{n}") for n in in_flight]
            + [each["alone"].get(f"{number}")]
            for number in emulators
        ]
        tables.append(_table([*titles, "no planner, emulators alone"], rows))
    if budgets := measurements.of(scaling_suite.SUITE, "budgets"):
        seconds = sorted({s for each in budgets.values() for s in each["seconds"]})
        by_seconds = {
            g: dict(zip(b["seconds"], b["rates"], strict=True)) for g, b in budgets.items()
        }
        rows = [[game, *map(rates.get, seconds)] for game, rates in by_seconds.items()]
        titles = ["nodes/s, by seconds a decision", *(f"{s:g}" for s in seconds)]
        tables.append(_table(titles, rows))
    return tables


def _training_tables(measurements: Measurements) -> list[Table]:
    tables = []
    for name, seconds in training_suite.medians(measurements).items():
        jax = seconds[training_suite.JAX]
        rows = [
            [each, f"{median:.3f}", "" if each == training_suite.JAX else f"{jax / median:.2f}"]
            for each, median in seconds.items()
        ]
        tables.append(_table((f"a training step, {name}", "seconds", "jax / this"), rows))
    return tables


@charts.styled
def draw(measurements: Measurements, workdir: Path) -> Path:
    """Writes the picture, two panels to a row but for the first; returns where it is."""
    panels: dict[tuple[str, str], Any] = {
        (planner_suite.SUITE, "rates"): _rates,
        (planner_suite.SUITE, "growth"): _growth,
        (planner_suite.SUITE, "memory"): _memory,
        (planner_suite.SUITE, "bprost"): partial(
            _values, "bprost", "milliseconds", "B-PROST atoms of a new screen, ms"
        ),
        (planner_suite.SUITE, "start"): partial(
            _values, "start", "second", "from the command to the end of its first decision, s"
        ),
        (features_suite.SUITE, features_suite.PART): _features,
        (scaling_suite.SUITE, "emulators"): _emulators,
        (scaling_suite.SUITE, "budgets"): _budgets,
        (training_suite.SUITE, training_suite.PART): _training,
    }
    drawn = [panel for key, panel in panels.items() if measurements.of(*key)]
    places = [*drawn[:1], *drawn] if _rates in drawn else drawn  # the first twice as wide
    places += places[-1:] * (len(places) % 2)
    mosaic: Any = [places[i : i + 2] for i in range(0, len(places), 2)]
    figure = Figure(figsize=(11, 0.7 + 3.5 * max(1, len(mosaic))))
    figure.set_layout_engine("constrained", h_pad=0.12, w_pad=0.12)
    about = machine()
    title = f"{about['cores']} cores of {about['processor']}"
    figure.suptitle(title, fontsize=11, color=LIGHT.faint)
    for panel, axes in figure.subplot_mosaic(mosaic).items() if drawn else ():
        panel(axes, measurements)
        axes.grid(axis="y")
    durable.write_bytes(workdir / PICTURE, charts.png(figure))
    return workdir / PICTURE


def _bars(
    axes: Axes, groups: list[str], series: dict[str, list[float]], slanted: bool = False
) -> None:
    """Bars side by side, a group per name."""
    width = 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        places = np.arange(len(groups)) + (i - (len(series) - 1) / 2) * width
        axes.bar(places, values, width * 0.92, label=name)
    axes.set_xticks(np.arange(len(groups)), groups)
    if slanted:
        axes.tick_params(axis="x", labelrotation=25)
    if len(series) > 1:
        axes.legend(ncols=2)
        axes.margins(y=0.3)  # room for the legend


def _lines(axes: Axes, lines: dict[str, tuple[Sequence[float], Sequence[float]]]) -> None:
    for name, (x, y) in lines.items():
        axes.plot(x, y, marker="o" if len(x) < 20 else "", markersize=3, label=name)
    axes.set_ylim(0)
    axes.legend(ncols=2)


def _values(part: str, key: str, title: str, axes: Axes, measurements: Measurements) -> None:
    """One number for each game."""
    found = measurements.of(planner_suite.SUITE, part)
    _bars(axes, list(found), {"": [each[key] for each in found.values()]}, slanted=True)
    axes.set_title(title)


def _rates(axes: Axes, measurements: Measurements) -> None:
    rates = measurements.of(planner_suite.SUITE, "rates")
    _bars(axes, list(rates), {m: list(planner_suite.ratios(rates, m).values()) for m in _METHODS})
    axes.axhline(1, color=LIGHT.ink, linewidth=1, linestyle="--")
    axes.set_title("new nodes per second, as a share of the emulator bound")


def _growth(axes: Axes, measurements: Measurements) -> None:
    growth = measurements.of(planner_suite.SUITE, "growth")
    short, long = next(iter(growth.values()))["seconds"]
    series = {
        f"{name}, {seconds:g} s": [each[name][which] for each in growth.values()]
        for name in planner_suite.GROWING
        for which, seconds in (("short", short), ("long", long))
    }
    _bars(axes, list(growth), series, slanted=True)
    axes.set_title("new nodes per second, in short and long decisions")


def _memory(axes: Axes, measurements: Measurements) -> None:
    memory = measurements.of(planner_suite.SUITE, "memory")
    _lines(axes, {game: (each["decisions"], each["player"]) for game, each in memory.items()})
    axes.set(xlabel="decisions", title="resident memory of the player, MB")


def _features(axes: Axes, measurements: Measurements) -> None:
    means = features_suite.means(measurements)
    names = {"new": "new screens", "again": "screens seen before"}
    _bars(axes, list(means), {names[n]: [each[n] for each in means.values()] for n in names})
    axes.set_yscale("log")
    charts.logarithmic_ticks(axes.yaxis)
    axes.set_title("atoms of a screen, ms")


def _emulators(axes: Axes, measurements: Measurements) -> None:
    """Means over the games."""
    games = list(measurements.of(scaling_suite.SUITE, "emulators").values())
    emulators, in_flight = scaling_suite.axes({name for game in games for name in game["rates"]})
    lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for number in emulators:
        at = [n for n in in_flight if all(f"{number}x{n}" in g["rates"] for g in games)]
        mean = [float(np.mean([g["rates"][f"{number}x{n}"] for g in games])) for n in at]
        if at:
            lines[plural(number, "emulator") if number else "none but the planner's"] = (at, mean)
    _lines(axes, lines)
    axes.set_xscale("log", base=2)
    axes.set_xticks(in_flight, [str(n) for n in in_flight])
    axes.set(xlabel="rollouts in flight", title="new nodes per second, by emulator processes")


def _budgets(axes: Axes, measurements: Measurements) -> None:
    budgets = measurements.of(scaling_suite.SUITE, "budgets")
    _lines(axes, {game: (each["seconds"], each["rates"]) for game, each in budgets.items()})
    axes.set_xscale("log")
    axes.set_xticks(scaling_suite.SECONDS, [f"{s:g}" for s in scaling_suite.SECONDS])
    axes.set(xlabel="seconds a decision", title="new nodes per second, by the length of a decision")


def _training(axes: Axes, measurements: Measurements) -> None:
    medians = training_suite.medians(measurements)
    steps = list(next(iter(medians.values())))
    _bars(axes, list(medians), {step: [m[step] for m in medians.values()] for step in steps})
    axes.set_title("a training step, s")
