"""The page and the picture of online learning: scores, losses and data against simulator calls."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vaeiw_jax import durable, features
from vaeiw_jax.experiments.online_config import Line
from vaeiw_jax.reports import charts, score_statistics, training_progress
from vaeiw_jax.reports.charts import LIGHT, Chart
from vaeiw_jax.reports.pages import ended_by, plural, render
from vaeiw_jax.reports.tables import Column, Table

PAGE, PICTURE = "report.html", "curve.png"


def write(
    game: str, lines: Sequence[Line], evaluation: Sequence[dict[str, Any]], workdir: Path
) -> None:
    """Writes page and picture on what has been learned so far.

    Args:
      game: its name.
      lines: the curve.
      evaluation: games played with the last VAE, if it has come to that.
      workdir: where the learning is, and the page and the picture go.
    """
    curve = Chart("curve", CAPTION, draw(lines, evaluation))
    trained = [line for line in lines if line["model"]]
    last = workdir / "rounds" / str(trained[-1]["round"]) / "vae" if trained else None
    page = render(
        "online.html",
        title=f"{game}: an encoder that learns while it plays",
        numbers=_numbers(lines, evaluation),
        summary=summary(evaluation) if evaluation else None,
        curve=curve,
        rounds=_rounds_table(lines),
        evaluation=_evaluation_table(evaluation) if evaluation else None,
        last=trained[-1]["round"] if trained else None,
        progress=training_progress.of_run(last) if last else None,
    )
    durable.write_bytes(workdir / PICTURE, curve.png())
    durable.write_bytes(workdir / PAGE, page.encode())


def summary(evaluation: Sequence[dict[str, Any]]) -> str:
    """The scores of the games played with the last VAE."""
    scores = [played["score"] for played in evaluation]
    return score_statistics.in_words(scores) if scores else "no games were asked for"


CAPTION = (
    "Against simulator calls, a dot for each game. Score: of the games learned from and, at the end, of those played "
    "with the last VAE. Misfit: how badly the model that played explains the new screens of its game, and those of "
    "them that were added, before it is trained on them. Reconstruction: of validation frames after training, above "
    "their entropy, which no model can pass. Data set: its screens after the game."
)


@charts.styled
def draw(lines: Sequence[Line], evaluation: Sequence[dict[str, Any]]) -> Axes:
    """One panel above another; returns the axes of the first."""
    figure = Figure(figsize=(charts.WIDTH, 6.4))
    scores, misfits, losses, sizes = figure.subplots(4, 1, sharex=True, height_ratios=[3, 2, 2, 2])
    _plot(scores, lines, "score", LIGHT.blue, "while learning")
    end = lines[-1]["simulator_calls"]
    if evaluation:
        played = [each["score"] for each in evaluation]
        scores.scatter(
            [end] * len(played), played, s=40, color=LIGHT.orange, alpha=0.65, label="the last VAE"
        )
        charts.legend(scores)
    _plot(misfits, lines, "chosen_misfit", LIGHT.orange, "of those added")
    _plot(misfits, lines, "mean_misfit", LIGHT.blue, "of all new screens")
    if misfits.lines:
        charts.legend(misfits)
    _plot(losses, lines, "excess_bce", LIGHT.green, "")
    _plot(sizes, lines, "screens", LIGHT.purple, "")
    labels = {
        scores: "score",
        misfits: "misfit,\nnats",
        losses: "reconstruction,\nnats",
        sizes: "data set,\nscreens",
    }
    for axes, label in labels.items():
        axes.set_ylabel(label)
        axes.grid(axis="y")
        axes.margins(y=0.12)
        axes.yaxis.set_major_formatter(charts.number)
        axes.locator_params(axis="y", nbins=4)
    sizes.set_ylim(bottom=0)
    sizes.set_xlim(0, end * 1.03)
    sizes.set_xlabel("simulator calls")
    sizes.xaxis.set_major_formatter(charts.number)
    figure.align_ylabels()
    return scores


def _plot(axes: Axes, lines: Sequence[Line], name: str, colour: str, label: str) -> None:
    known = [(line["simulator_calls"], line[name]) for line in lines if line[name] is not None]
    if known:
        axes.plot(*zip(*known, strict=True), "o-", ms=4, color=colour, linewidth=1, label=label)


def _numbers(lines: Sequence[Line], evaluation: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    last = lines[-1]
    trainings = sum(line["model"] is not None for line in lines)
    tiles = [
        (f"{last['simulator_calls']:,}", "simulator calls"),
        (f"{len(lines):,}", "game to learn from" if len(lines) == 1 else "games to learn from"),
        (f"{trainings:,}", "training" if trainings == 1 else "trainings"),
        (f"{last['screens']:,}", "screens in the data set"),
    ]
    if evaluation:
        mean = sum(played["score"] for played in evaluation) / len(evaluation)
        tiles.append(
            (f"{mean:,.1f}", f"score with the last VAE, {plural(len(evaluation), 'game')}")
        )
    return tiles


def _rounds_table(lines: Sequence[Line]) -> Table:
    columns = {
        "round": Column("game"),
        "features": Column("played with", text=True),
        "score": Column("score"),
        "actions": Column("actions"),
        "stop": Column("ended by", text=True),
        "simulator_calls": Column("simulator calls", "so far"),
        "generated": Column("screens", "distinct"),
        "new": Column("new", "screens"),
        "mean_misfit": Column("misfit", "of the new", ",.1f"),
        "chosen_misfit": Column("misfit", "of the added", ",.1f"),
        "added": Column("added", "screens"),
        "screens": Column("data set", "screens"),
        "steps": Column("training", "steps"),
        "loss": Column("loss", "validation", ",.1f"),
        "excess_bce": Column("reconstruction", "above the floor", ",.1f"),
    }
    return Table(list(columns.values()), [_row(line, lines, list(columns)) for line in lines])


def _row(line: Line, lines: Sequence[Line], names: Sequence[str]) -> list[Any]:
    trained = {each["model"]: each["round"] for each in lines if each["model"]}
    kind, _, model = line["features"].partition(":")
    after = f"the VAE after game {trained[model]}" if model in trained else "the given VAE"
    title = after if kind == "vae" else features.lookup(kind).title
    shown = {"features": title, "stop": ended_by(line)}
    return [shown.get(name, line[name]) for name in names]


def _evaluation_table(evaluation: Sequence[dict[str, Any]]) -> Table:
    return Table(
        [Column("seed"), Column("score"), Column("actions"), Column("ended by", text=True)],
        [
            [played["seed"], played["score"], played["actions"], ended_by(played)]
            for played in evaluation
        ],
    )
