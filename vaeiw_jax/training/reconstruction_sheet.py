"""A sheet that shows at a glance what an autoencoder has learned."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from vaeiw_jax import frames as frames_lib
from vaeiw_jax.vae import latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import VAE

COLUMNS = 6
WORST_GAMES = 10
"""Columns where there are that many games, each of which then has one."""
_INK, _FAINT = "#222222", "#777777"
_TITLE, _LABELS, _CELL, _PANEL = 70, 200, 264, 540  # pixels


def draw(
    config: ModelConfig,
    variables: dict[str, Any],
    screens: np.ndarray,
    feature_shares: np.ndarray,
    features: np.ndarray,
    key: jax.Array,
    title: str,
    labels: Sequence[str] = (),
) -> np.ndarray:
    """The sheet as uint8[rows, columns, 3].

    Args:
      config: which autoencoder.
      variables: its "params" and "batch_stats".
      screens: uint8[n, rows, columns], those to show, one a column.
      feature_shares: float[F], the share of frames in which each feature is true.
      features: int[N], how many features are true in each frame.
      key: for the samples from the prior.
      title: a line above it all.
      labels: a line above each screen.
    """
    frames, reconstructions, samples = map(
        np.asarray, _decode(config, variables, jnp.asarray(screens), key)
    )
    sheet = _Sheet(_LABELS + len(screens) * _CELL + _PANEL, _TITLE + 4 * _CELL)
    sheet.figure.text(
        0.01, 1 - 0.5 * _TITLE / sheet.height, title, size=19, color=_INK, va="center"
    )
    rows = (
        ("frames", "", frames, "gray", (0, 1)),
        ("reconstructions", "", reconstructions, "gray", (0, 1)),
        (
            "differences",
            "red: too bright\nblue: too dark",
            reconstructions - frames,
            "RdBu_r",
            (-0.6, 0.6),
        ),
        ("samples", "of the prior", samples, "gray", (0, 1)),
    )
    for row, (name, note, images, colours, (low, high)) in enumerate(rows):
        top = _TITLE + row * _CELL
        sheet.text(_LABELS - 14, top + 112, name, size=15, color=_INK, ha="right")
        sheet.text(_LABELS - 14, top + 132, note, size=11, color=_FAINT, ha="right", va="top")
        for column, image in enumerate(images):
            axis = sheet.axes(_LABELS + column * _CELL, top, 256, 256)
            axis.imshow(image, cmap=colours, vmin=low, vmax=high, interpolation="nearest")
            _frame_only(axis)
            if labels and not row:
                axis.set_title(labels[column], size=12, color=_FAINT, pad=4)
    left = _LABELS + len(screens) * _CELL + 60
    _draw_map(sheet, left, _TITLE + 36, config, feature_shares)
    _draw_histogram(sheet.axes(left + 20, _TITLE + 600, 360, 380), features)
    return sheet.pixels()


def draw_games(excess: Mapping[str, float], title: str) -> np.ndarray:
    """A bar per game, uint8[rows, columns, 3]: how far its reconstruction is above the floor, the worst first.

    Args:
      excess: nats a frame, by game.
      title: a line above it all.
    """
    games = sorted(excess, key=lambda game: excess[game])
    sheet = _Sheet(1000, 140 + 18 * len(games))
    axis = sheet.axes(190, 80, 760, 18 * len(games))
    axis.barh(games, [excess[game] for game in games], color="#4c72b0", height=0.7)
    axis.set_ylim(-0.6, len(games) - 0.4)
    axis.set_title(title, size=15, color=_INK, pad=12, loc="left")
    axis.set_xlabel("nats a frame above the entropy of the frame itself", size=12, color=_FAINT)
    axis.tick_params(labelsize=10, colors=_FAINT)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    return sheet.pixels()


def png(picture: np.ndarray) -> bytes:
    """picture: uint8[rows, columns, 3] as a PNG file."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _decode(
    config: ModelConfig, variables: dict[str, Any], screens: jax.Array, key: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Frames, their reconstructions and samples of the prior: float32[B, 128, 128] each."""
    model = VAE(config)
    noise_key, prior_key = jax.random.split(key)
    frames = frames_lib.from_screens(screens)
    noise = latents.noise(config, noise_key, len(screens))
    codes = latents.prior_sample(config, prior_key, len(screens))

    @jax.jit
    def apply(variables: dict[str, Any]) -> tuple[jax.Array, jax.Array]:
        output: Any = model.apply(variables, frames[..., None], noise, False)
        sampled: Any = model.apply(variables, codes, False, method="decode")
        return jax.nn.sigmoid(output.pixel_logits[..., 0]), jax.nn.sigmoid(sampled[..., 0])

    return frames, *apply(variables)


class _Sheet:
    """A figure laid out in pixels from the top left: frames are shown at twice their size."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.figure = Figure(figsize=(width / 100, height / 100), dpi=100, facecolor="white")

    def axes(self, left: int, top: int, width: int, height: int) -> Axes:
        bottom = self.height - top - height
        return self.figure.add_axes(
            (left / self.width, bottom / self.height, width / self.width, height / self.height)
        )

    def text(self, left: int, top: int, text: str, **style: Any) -> None:
        self.figure.text(left / self.width, 1 - top / self.height, text, **style)

    def pixels(self) -> np.ndarray:
        canvas = FigureCanvasAgg(self.figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _draw_map(sheet: _Sheet, left: int, top: int, config: ModelConfig, shares: np.ndarray) -> None:
    """Where bits are on: per position of the code, how many of its features are true on average."""
    by_place = shares.reshape(config.height, config.width, -1).sum(axis=-1)
    axis = sheet.axes(left, top, 380, 380)
    image = axis.imshow(by_place, cmap="magma", vmin=0, interpolation="nearest")
    _frame_only(axis)
    axis.set_title("true features per position", size=15, color=_INK, pad=12)
    bar = sheet.figure.colorbar(image, cax=sheet.axes(left + 392, top, 16, 380))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=11, colors=_FAINT)
    varying = int(((shares > 0) & (shares < 1)).sum())
    axis.set_xlabel(
        f"{shares.sum():,.0f} of {len(shares):,} true in a frame, {varying:,} vary",
        size=12,
        color=_FAINT,
        labelpad=10,
    )


def _draw_histogram(axis: Axes, features: np.ndarray) -> None:
    axis.hist(features, bins=min(20, np.ptp(features) + 1), color="#4c72b0", edgecolor="white")
    axis.set_title("true features per frame", size=15, color=_INK, pad=12)
    axis.set_ylabel("frames", size=12, color=_FAINT)
    axis.tick_params(labelsize=11, colors=_FAINT)
    for ticks in (axis.xaxis, axis.yaxis):
        ticks.set_major_locator(MaxNLocator(nbins=6, integer=True))
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _frame_only(axis: Axes) -> None:
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_color("#cccccc")
