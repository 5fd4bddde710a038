"""What is seen, decoded or counted, as small RGB images, and sheets of them."""

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from vaeiw_jax.frames import FRAME_SIZE, RGB
from vaeiw_jax.reports import charts

BITS_COLOURS, DIFFERENCE_COLOURS = "magma", "RdBu_r"
DIFFERENCE_RANGE = 0.6
"""The difference of grey levels that is drawn in full colour."""

_MARK, _BRIGHTER, _DARKER = (255, 190, 40), (255, 92, 84), (92, 160, 255)

_WINDOWS = {15: 64, 4: FRAME_SIZE}
"""The part of a frame shown around a feature, by the side of the code: features see 42 pixels, or all there are."""


def screen(palette: np.ndarray) -> np.ndarray:
    """palette: uint8[rows, columns] -> its colours, uint8[rows, columns, 3]."""
    return RGB[palette]


def grey(frame: np.ndarray) -> np.ndarray:
    """frame: float[128, 128] in [0, 1] -> uint8[128, 128, 3]."""
    return np.repeat(np.rint(255 * np.clip(frame, 0, 1)).astype(np.uint8)[..., None], 3, axis=2)


def difference(values: np.ndarray) -> np.ndarray:
    """values: float[rows, columns] -> red where above zero, blue where below, white at zero."""
    return _coloured(DIFFERENCE_COLOURS, (values / DIFFERENCE_RANGE + 1) / 2)


def bits(counts: np.ndarray, most: float) -> np.ndarray:
    """counts: float[H, W] -> from dark (none) to bright (`most`)."""
    return _coloured(BITS_COLOURS, counts / max(most, 1e-9))


def scale(colours: str) -> np.ndarray:
    """uint8[1, 256, 3]: the colours from least to most, to put beside a picture."""
    return _coloured(colours, np.linspace(0, 1, 256)[None])


def contrast(
    frames: np.ndarray, on: np.ndarray, place: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """What a feature stands for: uint8[256, 256, 3], red where pixels are brighter when it is true, blue where darker.

    Coloured is the difference between the mean frames with and without it; below lies the mean of all, in grey. Shown
    is what the feature can depend on, a part of the frame around its place, which is marked.

    Args:
      frames: float[N, 128, 128].
      on: bool[N], true in some frames and false in others.
      place: row, column, ... of the feature.
      shape: H, W, ... of all features.
    """
    contrast = frames[on].mean(axis=0) - frames[~on].mean(axis=0)
    window = _WINDOWS[shape[0]]
    rows, columns = (
        _window(index, size, window) for index, size in zip(place[:2], shape[:2], strict=True)
    )
    contrast, mean = contrast[rows, columns], frames.mean(axis=0)[rows, columns]
    strength = np.abs(contrast) / max(0.1, float(np.abs(contrast).max()))
    colour = np.where(contrast[..., None] > 0, np.array(_BRIGHTER), np.array(_DARKER))
    image = (1 - strength[..., None]) * 0.55 * grey(mean) + strength[..., None] * colour
    zoom = 2 * FRAME_SIZE // window
    image = np.rint(image).astype(np.uint8).repeat(zoom, axis=0).repeat(zoom, axis=1)
    top, left = (
        zoom * (FRAME_SIZE * index // size - part.start)
        for index, size, part in zip(place[:2], shape[:2], (rows, columns), strict=True)
    )
    side = zoom * FRAME_SIZE // shape[0]
    inside = image[top + 2 : top + side - 2, left + 2 : left + side - 2].copy()
    image[top : top + side, left : left + side] = _MARK
    image[top + 2 : top + side - 2, left + 2 : left + side - 2] = inside
    return image


def _window(index: int, size: int, window: int) -> slice:
    """The part of a frame's side around a position of the code, moved inward at the borders."""
    centre = int((index + 0.5) * FRAME_SIZE / size)
    start = min(max(centre - window // 2, 0), FRAME_SIZE - window)
    return slice(start, start + window)


def differing_pixels(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Two screens uint8[rows, columns] -> the first in dim grey, bright where the second differs from it."""
    dim = RGB[first].mean(axis=2, keepdims=True) * 0.35 + 20
    marked = np.where((first != second)[..., None], np.array(_MARK), dim)
    return np.rint(marked).astype(np.uint8)


def png(image: np.ndarray) -> bytes:
    """image: uint8[rows, columns, 3] as a PNG, with a palette where few colours are in it."""
    picture = Image.fromarray(np.ascontiguousarray(image))
    if (colours := picture.getcolors(256)) is not None:
        picture = picture.quantize(len(colours), Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    return _saved(picture, "PNG", optimize=True)


def reduced(path: Path, width: int, colours: int = 0) -> bytes:
    """A picture of fewer pixels: a JPEG or, with a number of colours, a PNG."""
    with Image.open(path) as image:
        size = (width, round(image.height * width / image.width))
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    if colours:
        return _saved(small.quantize(colours), "PNG", optimize=True)
    return _saved(small, "JPEG", quality=82)


def _saved(picture: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def _coloured(colours: str, values: np.ndarray) -> np.ndarray:
    rgba = matplotlib.colormaps[colours](np.clip(values, 0, 1))
    return np.rint(255 * rgba[..., :3]).astype(np.uint8)


@dataclass(frozen=True)
class Captioned:
    """An image, uint8[rows, columns, 3], and what to say below it."""

    image: np.ndarray
    caption: str
    note: str = ""


@dataclass(frozen=True)
class Row:
    """Images side by side, under a common title."""

    title: str
    images: list[Captioned]


_CELL, _CAPTION, _MARGIN = 2.1, 0.5, 0.16  # inches


@charts.styled
def sheet(title: str, rows: Sequence[Row]) -> bytes:
    """The rows below each other as one PNG, for slides and papers."""
    row_height = _CELL + _CAPTION + 2 * _MARGIN
    width = _MARGIN + max(len(row.images) for row in rows) * (_CELL + _MARGIN)
    height = 0.6 + len(rows) * row_height
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    figure.text(_MARGIN / width, 1 - 0.25 / height, title, size=13, va="center")
    for i, row in enumerate(rows):
        top = 0.6 + i * row_height
        figure.text(_MARGIN / width, 1 - top / height, row.title, size=10, color=charts.LIGHT.faint)
        for j, cell in enumerate(row.images):
            left, bottom = _MARGIN + j * (_CELL + _MARGIN), height - top - _MARGIN / 2 - _CELL
            place = (left / width, bottom / height, _CELL / width, _CELL / height)
            axes = figure.add_axes(place, xticks=[], yticks=[])
            axes.spines["bottom"].set_visible(False)
            # Screens are wider than their pixels are many; drawn square, they look as frames do.
            axes.imshow(cell.image, interpolation="nearest", aspect="auto")
            axes.set_xlabel("\n".join([cell.caption, *textwrap.wrap(cell.note, 32)]), size=8)
    return charts.png(figure)
