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


class Reference(NamedTuple):
    """A screen and what was made of it."""

    screen: np.ndarray
    """uint8[rows, columns]"""
    grids: tuple[np.ndarray, ...]
    """The frame's pixels, as int32 bit for bit, then the ids of each layer: int32[n + 2, n + 2]."""


def grid(side: int) -> np.ndarray:
    return np.zeros((side + 2 * BORDER, side + 2 * BORDER), np.int32)


@numba.njit(cache=True, nogil=True)
def nearest(screen, references, known):  # type: ignore[no-untyped-def]
    """The number of the reference, among the first `known`, that differs from the screen in the fewest pixels."""
    best, least = 0, screen.size + 1
    for i in range(known):
        reference = references[i].screen
        different = 0
        for y in range(screen.shape[0]):
            row = np.int32(0)
            for x in range(screen.shape[1]):
                row += screen[y, x] != reference[y, x]
            different += row
        if different < least:
            best, least = i, different
    return best


@numba.njit(cache=True, nogil=True)
def encode(screen, reference, fresh, into, layers, resize):  # type: ignore[no-untyped-def]
    """Fills `into` with the ids of a screen, computing what no screen before it had.

    Args:
      screen: uint8[rows, columns].
      reference: an encoded screen, best one that is like it.
      fresh: whether there is none yet; then `reference` may hold anything.
      into: another Reference, overwritten.
      layers: of the encoder, in order; with room for as many more rows as they have positions.
      resize: from screen to frame.
    """
    changed = _update_frame(screen, reference, fresh, into, resize)
    for i in range(len(layers)):
        layer = layers[i]
        below, above, before = into.grids[i], into.grids[i + 1], reference.grids[i + 1]
        side = len(above) - 2 * BORDER
        if i > 0:
            changed = _changed_outputs(changed, layer, side)
        above[:] = before
        first = layer.count[0]
        _look_up(below, above, changed[:side], layer)
        last = layer.count[0]
        if i == 0:
            _convolve_pixels(layer, first, last)
        else:
            _convolve(layer, first, last, layers[i - 1].values)
        if layer.kind == OUTER and layer.residual:
            _add_residual(layer, first, last, layers[i - 1].keys, layers[i - 2].sums)
        _finish(layer, first, last)


@numba.njit(cache=True, nogil=True)
def _update_frame(screen, reference, fresh, into, resize):  # type: ignore[no-untyped-def]
    """Makes `into` the screen and its frame, and finds the outputs of the first layer that may change.

    Returns:
      changed: uint64[64], bit x of word y of which says that output (y, x) may differ from the reference's.
    """
    rows, columns = screen.shape
    differs = np.empty(rows, np.bool_)
    for y in range(rows):
        differs[y] = fresh or (screen[y] != reference.screen[y]).any()
    frame, before = into.grids[0].view(np.float32), reference.grids[0].view(np.float32)
    frame[:] = before
    into.screen[:] = screen

    side, row_taps = resize.row_weights.shape
    column_taps = resize.column_weights.shape[1]
    narrow = np.empty((rows, side), np.float32)  # the screen resized along its rows, where needed
    is_narrow = np.zeros(rows, np.bool_)
    grey = np.empty(columns, np.float32)
    sums = np.empty(side, np.float32)
    pairs = np.zeros(side // 2 + 1, np.uint64)  # bit x of word y: any of pixels 2x, 2x+1 of rows 2y, 2y+1
    for f in range(side):
        start = resize.row_starts[f]
        if not differs[start : start + row_taps].any():
            continue
        sums[:] = 0
        for a in range(row_taps):
            y = start + a
            if not is_narrow[y]:
                is_narrow[y] = True
                for x in range(columns):
                    grey[x] = resize.grey[screen[y, x]]
                for g in range(side):
                    total = np.float32(0)
                    for b in range(column_taps):
                        total += resize.column_weights[g, b] * grey[resize.column_starts[g] + b]
                    narrow[y, g] = total
            weight = resize.row_weights[f, a]
            for g in range(side):
                sums[g] += weight * narrow[y, g]
        for g in range(side):
            pixel = sums[g] * resize.scale[f, g]
            if fresh or pixel != before[f + BORDER, g + BORDER]:
                frame[f + BORDER, g + BORDER] = pixel
                pairs[f // 2] |= np.uint64(1) << np.uint64(g // 2)
    changed = np.zeros(64, np.uint64)
    for y in range(side // 2):  # kernels of size 3 or 4 and stride 2 see two pairs
        both = pairs[y] | pairs[y + 1]
        changed[y] = both | both >> np.uint64(1)
    return changed


@numba.njit(cache=True, nogil=True)
def _changed_outputs(changed, layer, side):  # type: ignore[no-untyped-def]
    """The outputs whose patch holds a changed input, as bit sets: uint64[64] to uint64[64]."""
    above = np.zeros(64, np.uint64)
    for y in range(side):
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
        for x in range(side):
            bit = spread >> np.uint64(x * layer.stride) & np.uint64(1)
            above[y] |= bit << np.uint64(x)
    return above


_MULTIPLIERS = np.random.default_rng(0).integers(0, 2**63, 17, np.uint64) * 2 + 1


@numba.njit(cache=True, nogil=True)
def _look_up(below, above, changed, layer):  # type: ignore[no-untyped-def]
    """Writes the ids of the changed positions, giving new ones to patches that were never seen."""
    size, keys, slots = layer.size, layer.keys, layer.slots
    start = BORDER - layer.padding
    key = np.empty(size * size, np.int32)
    count = layer.count[0]
    last_slot = len(slots) - 1
    for y in range(len(changed)):
        if not changed[y]:
            continue
        for x in range(len(changed)):
            if not changed[y] >> np.uint64(x) & np.uint64(1):
                continue
            mixed = np.uint64(0)
            for a in range(size):
                for b in range(size):
                    part = below[y * layer.stride + start + a, x * layer.stride + start + b]
                    key[a * size + b] = part
                    mixed += np.uint64(np.uint32(part)) * _MULTIPLIERS[a * size + b]
            mixed = (mixed ^ mixed >> np.uint64(32)) * _MULTIPLIERS[16]
            slot = np.int64(mixed >> np.uint64(32)) & last_slot
            while True:
                row = slots[slot]
                if row == 0:
                    row = count
                    count += 1
                    slots[slot] = row
                    keys[row] = key
                    break
                same = True
                for i in range(size * size):
                    same &= keys[row, i] == key[i]
                if same:
                    break
                slot = slot + 1 & last_slot
            above[y + BORDER, x + BORDER] = row
    layer.count[0] = count


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def _convolve_pixels(layer, first, last):  # type: ignore[no-untyped-def]
    """Rows `first` to `last` of the first layer, whose keys are the pixels themselves."""
    patches = layer.keys.view(np.float32)
    for row in range(first, last):
        values = layer.values[row]
        values[:] = layer.bias
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
            layer.sums[row] = values
        else:
            _leaky(values)
        for j in range(len(values)):
            values[j] = values[j] * layer.factor[j] + layer.offset[j]
        _leaky(values)


@numba.njit(cache=True, nogil=True)
def _leaky(values):  # type: ignore[no-untyped-def]
    for j in range(len(values)):
        values[j] = max(values[j], np.float32(LEAK) * values[j])
