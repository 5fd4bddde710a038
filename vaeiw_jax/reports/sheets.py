"""Small images in rows with their captions, as one PNG: for slides and papers."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from vaeiw_jax.reports import inspection_charts
from vaeiw_jax.reports.inspection_charts import LIGHT

_CELL, _CAPTION, _LABELS, _TITLE = 210, 34, 190, 60  # pixels


@dataclass(frozen=True)
class Row:
    """Images side by side, under a common label."""

    label: str
    images: list[np.ndarray]  # uint8[rows, columns, 3] each
    captions: list[str]  # one each, or none at all


def sheet(title: str, rows: list[Row]) -> bytes:
    """The rows below each other."""
    heights = [_CELL + _CAPTION * bool(row.captions) + 10 for row in rows]
    width = _LABELS + max(len(row.images) for row in rows) * (_CELL + 10)
    height = _TITLE + sum(heights)
    figure = Figure(figsize=(width / 100, height / 100), dpi=150, facecolor="white")
    figure.text(16 / width, 1 - _TITLE / 2 / height, title, size=14, color=LIGHT.ink, va="center")
    top = _TITLE
    for row, row_height in zip(rows, heights, strict=True):
        middle = 1 - (top + _CELL / 2) / height
        place = (_LABELS - 16) / width
        figure.text(place, middle, row.label, size=11, color=LIGHT.ink, ha="right", va="center")
        for column, image in enumerate(row.images):
            left = _LABELS + column * (_CELL + 10)
            box = (left / width, 1 - (top + _CELL) / height, _CELL / width, _CELL / height)
            axes = figure.add_axes(box)
            # Screens are wider than their pixels are many; drawn square, they look as frames do.
            axes.imshow(image, interpolation="nearest", aspect="auto")
            axes.axis("off")
            if row.captions:
                caption = axes.text(0.5, -0.03, row.captions[column], transform=axes.transAxes)
                caption.set(size=9, color=LIGHT.faint, ha="center", va="top")
        top += row_height
    return inspection_charts.png(figure)
