"""The encoder network for one screen after another: computes only what no screen before had, on one thread.

`patches.py` says how. The values agree with those of the compiled network (`networks.Encoder`) up to rounding.
"""

import contextlib
import functools
import math
import mmap
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from vaeiw_jax import frames
from vaeiw_jax.features import patches
from vaeiw_jax.features.patches import INNER, LAST, OUTER, STRIDED, TILE_COLUMNS, Layer, Resize
from vaeiw_jax.frames import FRAME_SIZE
from vaeiw_jax.vae.architecture import ENCODER_LAYERS, NORM_EPSILON
from vaeiw_jax.vae.config import ModelConfig

CAPACITY = 2**17
"""Distinct patches a layer has room for, on average: some 330 MB in all, for codes of 15x15, if all tables are full.

With half of that, a fifth more patches are computed: they were forgotten too early.
"""

_CAPACITY_SHARES = {STRIDED: 0.75, INNER: 1.0, OUTER: 1.5, LAST: 0.6}
"""The patches of some layers repeat more often than those of others: their tables fill up more slowly."""

REFERENCES = 16
"""Screens kept to compare a new one with."""


class PatchNetwork:
    """From screens to posteriors, in float32 whatever the config says. Threads may share one, and take turns.

    A posterior is a function of the screen alone, to the last bit, for each patch goes through the same arithmetic
    whenever it is first met; nothing is carried from one screen to the next but what is equal on both.

    Args:
      config: which autoencoder.
      variables: its "params" and "batch_stats", as NumPy arrays.
      screen_shape: of the palette screens it will be given.
      capacity: of the layers' tables, on average; when one is full, all are emptied.
    """

    def __init__(
        self,
        config: ModelConfig,
        variables: Mapping[str, Any],
        screen_shape: tuple[int, int],
        capacity: int = CAPACITY,
    ):
        self._resize = _resize(screen_shape)
        self._layers = _layers(config, variables, capacity)
        self._sides = _sides(self._layers)
        self._references = patches.references(REFERENCES, screen_shape, self._sides)
        self._words = patches.words(self._references.screens)
        self._channels = config.posterior_channels
        self._lock = threading.Lock()
        self._room = 0
        """How many more screens there certainly is room for."""
        self._forget_all()

    def encode(self, screen: np.ndarray) -> np.ndarray:
        """The posterior, float32[H, W, posterior_channels], of a screen, uint8[rows, columns] of palette colours."""
        with self._lock:
            if not self._room:
                self._room = self._count_room()
            if not self._room:
                self._forget_all()
            self._room -= 1
            known = min(self._encoded, REFERENCES)
            like = patches.nearest(patches.words(screen), self._words[:known])
            into = self._encoded % REFERENCES  # where the oldest reference is
            if into == like and known:  # which is needed still
                into = (into + 1) % REFERENCES
            patches.encode(
                screen, self._references, like, into, known == 0, self._layers, self._resize
            )
            self._encoded += 1
            ids = self._references.grids[-1][into, 1:-1, 1:-1]
            return patches.outputs(ids, self._layers[-1].values, self._channels)

    def _count_room(self) -> int:
        """How many more screens there is room for, whatever is on them."""
        return min(
            (len(layer.keys) - int(layer.used[0])) // side**2
            for layer, side in zip(self._layers, self._sides[1:], strict=True)
        )

    def _forget_all(self) -> None:
        for layer in self._layers:
            layer.slots[:] = 0
            layer.used[0] = 1
        self._encoded = 0
        self._room = self._count_room()


def _layers(config: ModelConfig, variables: Mapping[str, Any], capacity: int) -> tuple[Layer, ...]:
    """The encoder's convolutions in order, with BatchNorm folded in where it follows one alone."""
    params, averages = variables["params"]["encoder"], variables["batch_stats"]["encoder"]
    layer = functools.partial(_layer, capacity, config.variant == "paper")
    *strided, (_, last_padding) = ENCODER_LAYERS[config.height]
    layers = []
    for i, (_, padding) in enumerate(strided):
        conv, block = params[f"conv_{i}"], params[f"block_{i}"]
        norms = averages[f"block_{i}"]
        before_inner = _norm(block["norm_0"], norms["norm_0"])
        factor, offset = _norm(block["norm_1"], norms["norm_1"])
        inner = {
            "kernel": block["conv_0"]["kernel"] * factor,
            "bias": block["conv_0"]["bias"] * factor + offset,
        }
        layers += [
            layer(STRIDED, conv, stride=2, padding=padding, norm=before_inner),
            layer(INNER, inner, stride=1, padding=1),
            layer(OUTER, block["conv_1"], stride=1, padding=1),
        ]
    last = params[f"conv_{len(strided)}"]
    return (*layers, layer(LAST, last, stride=2, padding=last_padding))


def _norm(
    params: Mapping[str, np.ndarray], averages: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """BatchNorm as one multiplication and one addition."""
    factor = params["scale"] / np.sqrt(averages["var"] + np.float32(NORM_EPSILON))
    return factor, params["bias"] - averages["mean"] * factor


def _layer(
    capacity: int,
    residual: bool,
    kind: int,
    conv: Mapping[str, np.ndarray],
    *,
    stride: int,
    padding: int,
    norm: tuple[np.ndarray, np.ndarray] = (np.zeros(0), np.zeros(0)),
) -> Layer:
    kernel, bias = conv["kernel"], conv["bias"]
    size, _, inputs, outputs = kernel.shape
    taps = (1, size * size) if inputs == 1 else (size * size, inputs)  # pixels are not gathered
    tiles = -(-outputs // TILE_COLUMNS)
    padding_outputs = tiles * TILE_COLUMNS - outputs
    kernel = np.pad(kernel.reshape(*taps, outputs), ((0, 0), (0, 0), (0, padding_outputs)))
    kernel = kernel.reshape(*taps, tiles, TILE_COLUMNS).transpose(2, 0, 1, 3)
    outputs = tiles * TILE_COLUMNS
    rows = int(capacity * _CAPACITY_SHARES[kind])
    slots = 2 ** (2 * rows - 1).bit_length()
    return Layer(
        kind=kind,
        size=size,
        stride=stride,
        padding=padding,
        residual=residual,
        kernel=np.ascontiguousarray(kernel, np.float32),
        bias=np.pad(bias, (0, padding_outputs)).astype(np.float32),
        factor=norm[0].astype(np.float32),
        offset=norm[1].astype(np.float32),
        keys=_untouched_zeros((rows, size * size), np.int32),
        slots=_untouched_zeros((slots,), np.int32),
        values=_untouched_zeros((rows, outputs), np.float32),
        sums=_untouched_zeros((rows if kind == STRIDED and residual else 1, outputs), np.float32),
        used=np.ones(2, np.int64),
    )


def _untouched_zeros(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Zeros that take no memory before they are written, and give it back afterwards.

    `np.zeros` may take memory that was used before, which it has to write to.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if hasattr(mmap, "MADV_HUGEPAGE"):  # as NumPy asks for: rows are looked up all over a table
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # not given if shared
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    else:
        memory = mmap.mmap(-1, size)
    return np.frombuffer(memory, dtype).reshape(shape)


def _sides(layers: tuple[Layer, ...]) -> list[int]:
    """The sides of the frame and of each layer's output."""
    sides = [FRAME_SIZE]
    for layer in layers:
        sides.append((sides[-1] + 2 * layer.padding - layer.size) // layer.stride + 1)
    return sides


def _resize(screen_shape: tuple[int, int]) -> Resize:
    rows, row_sums = frames.resize_weights(screen_shape[0])
    columns, column_sums = frames.resize_weights(screen_shape[1])
    scale = (1 / (255.0 * np.outer(row_sums, column_sums))).astype(np.float32)
    return Resize(frames.GREY, *_band(rows), *_band(columns), scale)


def _band(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The non-zero part of a banded matrix: float32[128, size] -> starts int64[128], float32[128, taps]."""
    starts = (weights != 0).argmax(axis=1)
    taps = int((weights != 0).sum(axis=1).max())
    starts = np.minimum(starts, weights.shape[1] - taps)
    return starts, np.take_along_axis(weights, starts[:, None] + np.arange(taps), axis=1)
