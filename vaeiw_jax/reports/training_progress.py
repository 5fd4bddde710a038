"""How a training run went: its learning curve and its reconstructions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from vaeiw_jax import durable, records
from vaeiw_jax.reports import charts, images
from vaeiw_jax.reports.charts import LIGHT, Chart
from vaeiw_jax.reports.pages import embedded
from vaeiw_jax.training import metrics

Minutes = Sequence[tuple[int, float]]
"""Steps, rising, and how many minutes had been spent on training by then."""

LEAST_NATS = 0.01
"""Less than this is drawn as this, for a logarithm."""


@dataclass(frozen=True)
class TrainingProgress:
    """What a page shows of a training run; None for what it did not leave."""

    curve: Chart | None
    picture: str | None


def of_run(directory: Path) -> TrainingProgress:
    path = directory / metrics.FILE
    pictures = sorted((directory / "pictures").glob("epoch-*.png"))
    curve = (
        learning_curve(metrics.read(path), minutes=minutes(directory)) if path.exists() else None
    )
    return TrainingProgress(
        curve,
        embedded(images.reduced(pictures[-1], 1200), "image/jpeg") if pictures else None,
    )


def minutes(directory: Path) -> Minutes:
    """The minutes that a run had taken at certain steps: where its processes began and ended."""
    path = records.host_path(directory / records.TRAINING)
    taken, seconds = [(0, 0.0)], 0.0
    for session in durable.read_json(path).get("sessions", []) if path.exists() else []:
        step = session.get("until_step", 0)
        seconds += session.get("seconds", 0.0)
        if step > taken[-1][0]:
            taken.append((step, seconds / 60))
    return taken


@charts.styled
def learning_curve(
    lines: Sequence[dict[str, Any]], title: str = "", minutes: Minutes = ()
) -> Chart | None:
    """Nats above the entropy of the frames, which no reconstruction can pass, by step and, if known, by minutes.

    Of a run on several games also game by game.
    """

    def points(kind: str) -> list[tuple[float, float]]:
        of_kind = [line for line in lines if line["kind"] == kind]
        return [(line["step"], max(line["excess_bce"], LEAST_NATS)) for line in of_kind]

    training, validation = points("train"), points("validation")
    if not training:
        return None
    by_game = _by_game(lines)
    axes = charts.axes(4.2 if by_game else 2.7)
    every = max(1, len(training) // 300)
    steps, nats = zip(*training[::every], strict=True)
    axes.plot(steps, nats, color=LIGHT.blue, alpha=0.5, linewidth=1, label="training batches")
    for number, points_of_game in enumerate(by_game.values()):
        label = None if number else "validation, each game"
        axes.plot(*points_of_game, color=LIGHT.grey, alpha=0.6, linewidth=0.6, label=label)
    if validation:
        axes.plot(*zip(*validation, strict=True), "o-", ms=4, color=LIGHT.red, label="validation")
    axes.set(yscale="log", xlabel="steps", ylabel="nats a frame above the floor", title=title)
    _name_ends(axes, by_game)
    last_of_games = [nats[-1] for _, nats in by_game.values()]
    most = max([np.quantile(nats, 0.99), *(nats for _, nats in validation), *last_of_games])
    axes.set_ylim(top=1.5 * float(most))
    axes.xaxis.set_major_formatter(charts.number)
    charts.logarithmic_ticks(axes.yaxis)
    axes.grid(axis="y")
    if by_game:
        axes.figure.legend(loc="outside lower center", ncols=3)
    else:
        axes.legend(loc="upper right")
    if len(minutes) > 1:
        _add_minutes(axes, minutes)
    caption = (
        "Nats a frame above the entropy of the frame itself, which no reconstruction can pass."
    )
    return Chart("learning_curve", caption, axes)


def _by_game(lines: Sequence[dict[str, Any]]) -> dict[str, tuple[list[int], list[float]]]:
    """Steps and nats of the validations of each game, of a run on several; the worst in the end first."""
    validations = [line for line in lines if line["kind"] == "validation" and "games" in line]
    if not validations:
        return {}
    last = {game: values["excess_bce"] for game, values in validations[-1]["games"].items()}
    steps = [line["step"] for line in validations]
    return {
        game: (steps, [max(line["games"][game]["excess_bce"], LEAST_NATS) for line in validations])
        for game in sorted(last, key=lambda game: -last[game])
    }


def _name_ends(axes: Axes, by_game: dict[str, tuple[list[int], list[float]]]) -> None:
    """Writes the worst, the median and the best game beside the ends of their curves."""
    games = list(by_game)
    if len(games) < 3:
        return
    for game in (games[0], games[len(games) // 2], games[-1]):
        steps, nats = by_game[game]
        axes.annotate(
            game,
            (steps[-1], nats[-1]),
            (4, 0),
            textcoords="offset points",
            va="center",
            size=8,
            color=LIGHT.faint,
        )


def _add_minutes(axes: Axes, minutes: Minutes) -> None:
    """An axis on top that says when a step was taken, as if each process had taken its steps evenly."""
    steps, taken = (np.array(values, np.float64) for values in zip(*minutes, strict=True))
    last = taken[-1] / steps[-1]  # by which the axis goes on beyond the last step

    def to_minutes(step: Any) -> Any:
        return np.interp(step, steps, taken) + np.maximum(0, step - steps[-1]) * last

    def to_steps(minute: Any) -> Any:
        return np.interp(minute, taken, steps) + np.maximum(0, minute - taken[-1]) / last

    axes.set_xlim(left=0)
    above = axes.secondary_xaxis("top", functions=(to_minutes, to_steps))
    above.set_xlabel("minutes")
