"""How a training run went: its learning curve and its reconstructions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax.reports import charts, images
from vaeiw_jax.reports.charts import LIGHT, Chart
from vaeiw_jax.reports.pages import embedded
from vaeiw_jax.training import metrics

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
    return TrainingProgress(
        learning_curve(metrics.read(path)) if path.exists() else None,
        embedded(images.reduced(pictures[-1], 1200), "image/jpeg") if pictures else None,
    )


@charts.styled
def learning_curve(lines: Sequence[dict[str, Any]], title: str = "") -> Chart | None:
    """Nats above the entropy of the frames, which no reconstruction can pass, by step."""

    def points(kind: str) -> list[tuple[float, float]]:
        of_kind = [line for line in lines if line["kind"] == kind]
        return [(line["step"], max(line["excess_bce"], LEAST_NATS)) for line in of_kind]

    training, validation = points("train"), points("validation")
    if not training:
        return None
    axes = charts.axes(2.7)
    every = max(1, len(training) // 300)
    steps, nats = zip(*training[::every], strict=True)
    axes.plot(steps, nats, color=LIGHT.blue, alpha=0.5, linewidth=1, label="training batches")
    if validation:
        axes.plot(*zip(*validation, strict=True), "o-", ms=4, color=LIGHT.red, label="validation")
    axes.set(yscale="log", xlabel="steps", ylabel="nats a frame above the floor", title=title)
    axes.set_ylim(top=float(np.quantile(nats, 0.99)) * 1.5)
    axes.xaxis.set_major_formatter(charts.number)
    charts.logarithmic_ticks(axes.yaxis)
    axes.grid(axis="y")
    charts.legend(axes)
    caption = (
        "Nats a frame above the entropy of the frame itself, which no reconstruction can pass."
    )
    return Chart("learning_curve", caption, charts.figure_of(axes))
