"""Compiled loops of the fast encoder: which patches of a screen are new, and what the network makes of those.

A layer's output at a position is a function of a patch of the layer below. So every distinct patch that was ever seen
gets a number, and its output is computed once: an image becomes a grid of such numbers, *ids*, and a patch of the layer
above is named by the ids it holds. Two positions, on one screen or on two, have the same id if and only if everything
they depend on is the same, for keys are compared and not only their hashes. In a game, whose sprites move over a
standing background, nearly all patches of a new screen are known.

Positions whose patch did not change since a reference screen keep their id and are not even looked up. They are tracked
as bit sets: one word per row of a grid, for no grid has more than 64 columns.

An output depends on its patch alone, to the last bit: every row goes through the same additions in the same order.
"""

from typing import NamedTuple

import numba
import numpy as np

from vaeiw_jax.vae.networks import LEAK

BORDER = 1
"""Grids of ids have this many columns and rows of zeros around them: the id of padding."""

STRIDED, INNER, OUTER, LAST = range(4)
"""What follows a convolution: BatchNorm and LeakyReLU, keeping the sum for the residual; LeakyReLU, BatchNorm being
folded in; the addition of the residual and LeakyReLU; nothing."""


class Layer(NamedTuple):
    """A convolution, what follows it, and all its patches so far. Row 0 of the tables is padding."""

    kind: int
    size: int
    stride: int
    padding: int
    residual: bool
    """Whether a block adds its input (and a strided convolution has no LeakyReLU before it)."""
    kernel: np.ndarray
    """float32[size * size * in, out]"""
    bias: np.ndarray
    """float32[out]"""
    factor: np.ndarray
    """float32[out], of the BatchNorm that follows a strided convolution."""
    offset: np.ndarray
    """float32[out]"""
    keys: np.ndarray
    """int32[capacity, size * size], the ids in a patch; those of the first layer are float32 pixels, bit for bit."""
    slots: np.ndarray
    """int32[power of two], a hash table of rows in `keys`, 0 where free."""
    values: np.ndarray
    """float32[capacity, out], what the next layer convolves."""
    sums: np.ndarray
    """float32[capacity, out], what a residual block adds; of one row where that is never needed."""
    count: np.ndarray
    """int64[1], how many rows are in use."""


class Resize(NamedTuple):
    """The two matrices from grey screen to frame, whose rows are zero but for a few neighbours."""

    grey: np.ndarray
    """float32[256]"""
    row_starts: np.ndarray
    """int64[128], the first screen row that a frame row depends on."""
    row_weights: np.ndarray
    """float32[128, taps]"""
    column_starts: np.ndarray
    column_weights: np.ndarray
    scale: np.ndarray
    """float32[128, 128]"""


class References(NamedTuple):
    """Screens and what was made of them."""

    screens: np.ndarray
    """uint8[number, rows, columns]"""
    grids: tuple[np.ndarray, ...]
    """The frames' pixels, as int32 bit for bit, then the ids of each layer: int32[number, n + 2, n + 2]."""


def references(number: int, screen_shape: tuple[int, int], sides: list[int]) -> References:
    shapes = [(number, side + 2 * BORDER, side + 2 * BORDER) for side in sides]
    return References(
        np.zeros((number, *screen_shape), np.uint8),
        tuple(np.zeros(shape, np.int32) for shape in shapes),
    )


# Loops below are written out where NumPy has a word for them: whole-array operations compile for seconds.


@numba.njit(cache=True, nogil=True)
def nearest(screen, screens):  # type: ignore[no-untyped-def]
    """The number of the screen, among `screens`, that differs from the given one in the fewest pixels."""
    best, least = 0, screen.size + 1
    for i in range(len(screens)):
        different = 0
        for y in range(screen.shape[0]):
            row = np.int32(0)
            for x in range(screen.shape[1]):
                row += screen[y, x] != screens[i, y, x]
            different += row
        if different < least:
            best, least = i, different
    return best


@numba.njit(cache=True, nogil=True)
def encode(screen, references, like, into, fresh, layers, resize):  # type: ignore[no-untyped-def]
    """Makes a screen a reference, computing what no screen before it had.

    Args:
      screen: uint8[rows, columns].
      references: where it is put, and compared with another.
      like: the number of the one it is compared with.
      into: the number of the one it replaces.
      fresh: whether there is none to compare with yet.
      layers: of the encoder, in order; each with room for as many more rows as it has positions.
      resize: from screen to frame.
    """
    changed = _update_frame(
        screen,
        references.screens[like],
        references.screens[into],
        references.grids[0][like],
        references.grids[0][into],
        fresh,
        resize,
    )
    for i in range(len(layers)):
        layer = layers[i]
        if i > 0:
            changed = _changed_outputs(changed, layer, references.grids[i + 1].shape[1])
        first = layer.count[0]
        _look_up(
            references.grids[i][into],
            references.grids[i + 1][like],
            references.grids[i + 1][into],
            changed,
            layer,
        )
        last = layer.count[0]
        if i == 0:
            _convolve_pixels(layer, first, last)
        else:
            _convolve(layer, first, last, layers[i - 1].values)
        if layer.kind == OUTER and layer.residual:
            _add_residual(layer, first, last, layers[i - 1].keys, layers[i - 2].sums)
        _finish(layer, first, last)


@numba.njit(cache=True, nogil=True)
def _update_frame(screen, like, into, frame_like, frame_into, fresh, resize):  # type: ignore[no-untyped-def]
    """Writes a screen and its frame, and finds the outputs of the first layer that may change.

    Args:
      screen, like, into: uint8[rows, columns].
      frame_like, frame_into: int32[130, 130].

    Returns:
      changed: uint64[64], bit x of word y of which says that output (y, x) may differ from the reference's.
    """
    rows, columns = screen.shape
    differs = np.zeros(rows, np.bool_)
    for y in range(rows):
        different = np.int32(fresh)
        for x in range(columns):
            different += screen[y, x] != like[y, x]
            into[y, x] = screen[y, x]
        differs[y] = different != 0

    frame, before = frame_into.view(np.float32), frame_like.view(np.float32)
    side, taps = resize.row_weights.shape
    narrow = np.empty((rows, side), np.float32)  # the screen resized along its rows, where needed
    is_narrow = np.zeros(rows, np.bool_)
    pairs = np.zeros(side // 2 + 1, np.uint64)  # bit x of word y: any of pixels 2x, 2x+1 of rows 2y, 2y+1
    for f in range(side):
        start = resize.row_starts[f]
        needed = False
        for y in range(start, start + taps):
            needed |= differs[y]
        if not needed:
            for g in range(side):
                frame[f + BORDER, g + BORDER] = before[f + BORDER, g + BORDER]
            continue
        for y in range(start, start + taps):
            if not is_narrow[y]:
                is_narrow[y] = True
                _narrow(screen[y], resize, narrow[y])
        for g in range(side):
            total = np.float32(0)
            for a in range(taps):
                total += resize.row_weights[f, a] * narrow[start + a, g]
            pixel = total * resize.scale[f, g]
            frame[f + BORDER, g + BORDER] = pixel
            if fresh or pixel != before[f + BORDER, g + BORDER]:
                pairs[f // 2] |= np.uint64(1) << np.uint64(g // 2)
    changed = np.zeros(64, np.uint64)
    for y in range(side // 2):  # kernels of size 3 or 4 and stride 2 see two pairs
        both = pairs[y] | pairs[y + 1]
        changed[y] = both | both >> np.uint64(1)
    return changed


@numba.njit(cache=True, nogil=True)
def _narrow(row, resize, narrow):  # type: ignore[no-untyped-def]
    """Resizes a row: uint8[columns] colours to float32[128] sums of grey."""
    taps = resize.column_weights.shape[1]
    for g in range(len(narrow)):
        start = resize.column_starts[g]
        total = np.float32(0)
        for b in range(taps):
            total += resize.column_weights[g, b] * resize.grey[row[start + b]]
        narrow[g] = total


@numba.njit(cache=True, nogil=True)
def _changed_outputs(changed, layer, side):  # type: ignore[no-untyped-def]
    """The outputs whose patch holds a changed input, as bit sets: uint64[64] to uint64[64]."""
    above = np.zeros(64, np.uint64)
    for y in range(side - 2 * BORDER):
        any_row = np.uint64(0)
        for a in range(layer.size):
            below = y * layer.stride - layer.padding + a
            if 0 <= below < 64:
                any_row |= changed[below]
        if not any_row:
            continue
        spread = np.uint64(0)  # bit x: any of columns x - padding ... x - padding + size - 1
        for b in range(layer.size):
            shift = b - layer.padding
            if shift >= 0:
                spread |= any_row >> np.uint64(shift)
            else:
                spread |= any_row << np.uint64(-shift)
        for x in range(side - 2 * BORDER):
            bit = spread >> np.uint64(x * layer.stride) & np.uint64(1)
            above[y] |= bit << np.uint64(x)
    return above


_MULTIPLIERS = np.random.default_rng(0).integers(0, 2**63, 17, np.uint64) * 2 + 1


@numba.njit(cache=True, nogil=True)
def _look_up(below, like, above, changed, layer):  # type: ignore[no-untyped-def]
    """Writes the ids of a layer's outputs, giving new ones to patches that were never seen.

    Args:
      below: int32[m + 2, m + 2], the ids of its inputs.
      like: int32[n + 2, n + 2], those of its outputs on the reference screen.
      above: int32[n + 2, n + 2], those on this screen.
      changed: uint64[64], where the two may differ.
    """
    side = len(above) - 2 * BORDER
    start = BORDER - layer.padding
    key = np.empty(layer.size * layer.size, np.int32)
    for y in range(side):
        for x in range(side):
            above[y + BORDER, x + BORDER] = like[y + BORDER, x + BORDER]
        if not changed[y]:
            continue
        for x in range(side):
            if not changed[y] >> np.uint64(x) & np.uint64(1):
                continue
            for a in range(layer.size):
                for b in range(layer.size):
                    key[a * layer.size + b] = below[
                        y * layer.stride + start + a, x * layer.stride + start + b
                    ]
            above[y + BORDER, x + BORDER] = _row_of(key, layer)


@numba.njit(cache=True, nogil=True)
def _row_of(key, layer):  # type: ignore[no-untyped-def]
    """The row that a key has, or is now given."""
    mixed = np.uint64(0)
    for i in range(len(key)):
        mixed += np.uint64(np.uint32(key[i])) * _MULTIPLIERS[i]
    mixed = (mixed ^ mixed >> np.uint64(32)) * _MULTIPLIERS[16]
    slot = np.int64(mixed >> np.uint64(32)) % len(layer.slots)
    while layer.slots[slot]:
        row = layer.slots[slot]
        same = True
        for i in range(len(key)):
            same &= layer.keys[row, i] == key[i]
        if same:
            return row
        slot = (slot + 1) % len(layer.slots)
    row = layer.count[0]
    layer.count[0] = row + 1
    layer.slots[slot] = row
    for i in range(len(key)):
        layer.keys[row, i] = key[i]
    return row


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _convolve_pixels(layer, first, last):  # type: ignore[no-untyped-def]
    """Rows `first` to `last` of the first layer, whose keys are the pixels themselves."""
    patches = layer.keys.view(np.float32)
    for row in range(first, last):
        values = layer.values[row]
        for j in range(len(values)):
            values[j] = layer.bias[j]
        for k in range(patches.shape[1]):
            pixel, weights = patches[row, k], layer.kernel[k]
            for j in range(len(values)):
                values[j] += pixel * weights[j]


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _convolve(layer, first, last, below):  # type: ignore[no-untyped-def]
    """Rows `first` to `last` of a matrix product: patches, gathered from `below`, times the kernel.

    Four rows and two inputs at a time, so that what is loaded is used often; the inner loop becomes vector code. Where
    fewer than four are left, the last is computed more than once.
    """
    keys, kernel, values = layer.keys, layer.kernel, layer.values
    taps, inputs, outputs = keys.shape[1], below.shape[1], kernel.shape[1]
    sums = np.empty((4, outputs), np.float32)
    sum0, sum1, sum2, sum3 = sums[0], sums[1], sums[2], sums[3]
    for row in range(first, last, 4):
        row1, row2, row3 = min(row + 1, last - 1), min(row + 2, last - 1), min(row + 3, last - 1)
        for j in range(outputs):
            sum0[j] = sum1[j] = sum2[j] = sum3[j] = layer.bias[j]
        for tap in range(taps):
            in0, in1 = below[keys[row, tap]], below[keys[row1, tap]]
            in2, in3 = below[keys[row2, tap]], below[keys[row3, tap]]
            for c in range(0, inputs, 2):
                one, two = kernel[tap * inputs + c], kernel[tap * inputs + c + 1]
                a0, a1, a2, a3 = in0[c], in1[c], in2[c], in3[c]
                b0, b1, b2, b3 = in0[c + 1], in1[c + 1], in2[c + 1], in3[c + 1]
                for j in range(outputs):
                    a, b = one[j], two[j]
                    sum0[j] += a0 * a + b0 * b
                    sum1[j] += a1 * a + b1 * b
                    sum2[j] += a2 * a + b2 * b
                    sum3[j] += a3 * a + b3 * b
        for j in range(outputs):
            values[row, j], values[row1, j] = sum0[j], sum1[j]
            values[row2, j], values[row3, j] = sum2[j], sum3[j]


@numba.njit(cache=True, nogil=True)
def _add_residual(layer, first, last, inner_keys, sums):  # type: ignore[no-untyped-def]
    """Adds the block's input, the centre of the patch at the centre of the patch."""
    centre = layer.size * layer.size // 2
    for row in range(first, last):
        source = sums[inner_keys[layer.keys[row, centre], centre]]
        for j in range(len(source)):
            layer.values[row, j] += source[j]


@numba.njit(cache=True, nogil=True)
def _finish(layer, first, last):  # type: ignore[no-untyped-def]
    """What follows the convolution, on the rows `first` to `last`."""
    if layer.kind == LAST:
        return
    for row in range(first, last):
        values = layer.values[row]
        if layer.kind != STRIDED:
            _leaky(values)
            continue
        if layer.residual:
            for j in range(len(values)):
                layer.sums[row, j] = values[j]
        else:
            _leaky(values)
        for j in range(len(values)):
            values[j] = values[j] * layer.factor[j] + layer.offset[j]
        _leaky(values)


@numba.njit(cache=True, nogil=True)
def _leaky(values):  # type: ignore[no-untyped-def]
    for j in range(len(values)):
        values[j] = max(values[j], np.float32(LEAK) * values[j])
