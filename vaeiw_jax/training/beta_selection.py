"""Choosing beta without playing: the elbow of reconstruction against KL.

A smaller beta lets more information into the code (a larger KL) and so reconstructs better. Past
the elbow, more information hardly helps: the paper suggests to stop there, game by game.
"""

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.progress import Interrupted, Tell, never, silent
from vaeiw_jax.training.loop import train
from vaeiw_jax.vae.config import TrainConfig


@dataclasses.dataclass(frozen=True)
class Tradeoff:
    """The best validation of the model trained with one beta, in nats per frame."""

    beta: float
    kl: float
    excess_bce: float  # reconstruction error above the entropy of the frames


@dataclasses.dataclass(frozen=True)
class Selection:
    """What was tried, from the largest beta to the smallest, and what was picked."""

    tradeoffs: tuple[Tradeoff, ...]
    picked: Tradeoff
    is_elbow: bool
    why: str


def select_beta(
    config: TrainConfig,
    betas: Sequence[float],
    workdir: Path,
    interrupted: Interrupted = never,
    tell: Tell = silent,
) -> Selection | None:
    """Trains a model per beta in a folder of its own and picks the elbow; None if interrupted.

    Leaves `selection.json` and `selection.png` in `workdir`. Models trained already are not trained
    again, so that an interrupted selection goes on where it stopped.
    """
    if len(set(betas)) < 3:
        raise UserError(f"an elbow needs three betas or more, not {len(set(betas))}")
    # All at once, so that a beta that makes no sense is refused before anything is trained.
    trainings = {
        beta: dataclasses.replace(config, model=dataclasses.replace(config.model, beta=beta))
        for beta in sorted(set(betas), reverse=True)
    }
    tradeoffs = []
    for beta, training in trainings.items():
        record = train(training, workdir / f"beta-{beta:g}", interrupted, tell)
        if record is None:
            return None
        best = record["validation"]
        tradeoffs.append(Tradeoff(beta, kl=best["kl"], excess_bce=best["excess_bce"]))
    selection = elbow(tradeoffs)
    durable.write_json(workdir / "selection.json", dataclasses.asdict(selection))
    durable.write_bytes(workdir / "selection.png", _draw(selection))
    return selection


def elbow(tradeoffs: Sequence[Tradeoff]) -> Selection:
    """Picks the point farthest below the line from the largest to the smallest beta.

    Both axes are scaled to run from 0 to 1, so that the line falls from (0, 1) to (1, 0). Where no
    point lies below it, the best reconstruction is picked.
    """
    ordered = tuple(sorted(tradeoffs, key=lambda point: -point.beta))
    kl = np.array([point.kl for point in ordered])
    error = np.array([point.excess_bce for point in ordered])
    at = 0
    if kl[-1] > kl[0] and error[-1] < error[0]:
        below = 1 - (kl - kl[0]) / (kl[-1] - kl[0]) - (error - error[-1]) / (error[0] - error[-1])
        at = int(np.argmax(below))
    if at in (0, len(ordered) - 1):
        picked = ordered[int(np.argmin(error))]
        why = (
            f"there is no elbow between these betas; beta {picked.beta:g} reconstructs best."
            " Train for more epochs, or try betas between and beyond these."
        )
        return Selection(ordered, picked, False, why)
    before, picked, after = ordered[at - 1 : at + 2]
    why = (
        f"beta {picked.beta:g} is the elbow. From {before.beta:g} to it, {_change(before, picked)};"
        f" from it to {after.beta:g}, {_change(picked, after)}."
    )
    return Selection(ordered, picked, True, why)


def _change(a: Tradeoff, b: Tradeoff) -> str:
    kl, gain = b.kl - a.kl, a.excess_bce - b.excess_bce
    rate = f" ({gain / kl:,.2g} a nat)" if kl > 0 else ""
    return f"{kl:,.0f} more nats of KL buy {gain:,.0f} nats of reconstruction{rate}"


def _draw(selection: Selection) -> bytes:
    """Reconstruction against KL, the elbow marked, as a PNG file."""
    figure = Figure(figsize=(9, 6), dpi=120, facecolor="white", layout="constrained")
    axis = figure.subplots()
    points, picked = selection.tradeoffs, selection.picked
    kl, error = [point.kl for point in points], [point.excess_bce for point in points]
    axis.plot(kl[:: len(kl) - 1], error[:: len(error) - 1], ":", color="#bbbbbb", zorder=1)
    axis.plot(kl, error, "-o", color="#4c72b0", linewidth=1.8, markersize=7, zorder=2)
    ring: dict[str, Any] = {"s": 320, "facecolors": "none", "edgecolors": "#c44e52"}
    axis.scatter([picked.kl], [picked.excess_bce], linewidths=2.2, zorder=3, **ring)
    mark = "the elbow" if selection.is_elbow else "the best reconstruction"
    for point in points:
        chosen = point is picked
        axis.annotate(
            f"β = {point.beta:g}" + (f", {mark}" if chosen else ""),
            (point.kl, point.excess_bce),
            xytext=(14, 10),
            textcoords="offset points",
            color="#c44e52" if chosen else "#444444",
            weight="bold" if chosen else "normal",
        )
    axis.margins(x=0.18, y=0.14)
    axis.set_xlabel("KL to the prior, nats per frame")
    axis.set_ylabel("reconstruction above the entropy floor, nats per frame")
    axis.set_title("Reconstruction against KL, on validation frames", loc="left", pad=12)
    axis.grid(color="#eeeeee")
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()
