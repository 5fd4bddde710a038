"""Compiled loops of the CPU encoder: which patches of a screen are new, and what the network makes of those.

A layer's output at a position is a function of a patch of the layer below. So every distinct patch that was ever seen
gets a number, and its output is computed once: an image becomes a grid of such numbers, *ids*, and a patch of the layer
above is named by the ids it holds. Two positions, on one screen or on two, have the same id if and only if everything
they depend on is the same, for keys are compared and not only their hashes. In a game, whose sprites move over a
standing background, nearly all patches of a new screen are known.

Positions whose patch did not change since a reference screen keep their id and are not even looked up. They are tracked
as bit sets: one word per row of a grid, for no grid has more than 64 columns.

An output depends on its patch alone, to the last bit: every row goes through the same additions in the same order.

Everything that is compiled is in this one file: Numba compiles anew when a function's own file changes, and would go on
using an old version of what it calls in another.
"""

import contextlib
from typing import NamedTuple

import numba
import numpy as np
from llvmlite import binding, ir
from numba.extending import intrinsic

from vaeiw_jax.vae.architecture import LEAK

BORDER = 1
"""Grids of ids have this many columns and rows of zeros around them: the id of padding."""

STRIDED, INNER, OUTER, LAST = range(4)
"""What follows a convolution: BatchNorm and LeakyReLU, keeping the sum for the residual; LeakyReLU, BatchNorm being
folded in; the addition of the residual and LeakyReLU; nothing."""


def _tile() -> tuple[int, int]:
    """Rows and columns of a tile whose sums fill most of the registers: 24 of AVX-512's 32, 12 of AVX2's 16."""
    with contextlib.suppress(RuntimeError):  # LLVM does not know the features of every CPU
        if binding.get_host_cpu_features().get("avx512f"):
            return 12, 32
    return 6, 16


TILE_ROWS, TILE_COLUMNS = _tile()
"""Matrix products are computed in tiles of this size. It changes their speed and not their results."""


class Layer(NamedTuple):
    """A convolution, what follows it, and all its patches so far. Row 0 of the tables is padding."""

    kind: int
    size: int
    stride: int
    padding: int
    residual: bool
    """Whether a block adds its input (and a strided convolution has no LeakyReLU before it)."""
    kernel: np.ndarray
    """float32[out / TILE_COLUMNS, size * size, in, TILE_COLUMNS]"""
    bias: np.ndarray
    """float32[out], where `out` is a multiple of TILE_COLUMNS."""
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
    used: np.ndarray
    """int64[2], how many rows are in use, and nothing."""


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


def words(screens: np.ndarray) -> np.ndarray:
    """Screens as flat rows of 64-bit words, where that goes, to be read eight pixels at a time.

    Args:
      screens: uint8[..., rows, columns].

    Returns:
      uint64[..., n], or uint8[..., n] if the pixels do not fill words.
    """
    flat = screens.reshape(*screens.shape[:-2], -1)
    return flat.view(np.uint64) if flat.shape[-1] % 8 == 0 else flat


# Loops below are written out where NumPy has a word for them: whole-array operations compile for seconds.


_COMPARED_WORDS = 256
"""How many words of two screens are compared before it is asked whether another screen is nearer."""


@numba.njit(cache=True, nogil=True)
def nearest(screen, screens):  # type: ignore[no-untyped-def]
    """The number of the screen, among `screens`, in which the fewest words differ from the given one.

    Args:
      screen: its pixels as `words`.
      screens: alike, [number, words].
    """
    best, least = 0, len(screen) + 1
    for i in range(len(screens)):
        different = 0
        for start in range(0, len(screen), _COMPARED_WORDS):
            for k in range(start, min(start + _COMPARED_WORDS, len(screen))):
                different += screen[k] != screens[i, k]
            if different >= least:
                break
        else:
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
        first = layer.used[0]
        _look_up(
            references.grids[i][into],
            references.grids[i + 1][like],
            references.grids[i + 1][into],
            changed,
            layer,
        )
        last = layer.used[0]
        if i == 0:
            _convolve(layer, first, last, layer.keys.view(np.float32), False)
        else:
            _convolve(layer, first, last, layers[i - 1].values, True)
        if layer.kind == OUTER and layer.residual:
            _add_residual(layer, first, last, layers[i - 1].keys, layers[i - 2].sums)
        _finish(layer, first, last)


@numba.njit(cache=True, nogil=True)
def outputs(ids, values, channels):  # type: ignore[no-untyped-def]
    """What a layer computed for a grid of ids, as far as its first channels go: float32[rows, columns, channels].

    Args:
      ids: int32[rows, columns].
      values: float32[n, at least `channels`].
    """
    rows, columns = ids.shape
    found = np.empty((rows, columns, channels), np.float32)
    for y in range(rows):
        for x in range(columns):
            for c in range(channels):
                found[y, x, c] = values[ids[y, x], c]
    return found


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
        different = np.uint8(fresh)
        for x in range(columns):
            different |= screen[y, x] ^ like[y, x]
            into[y, x] = screen[y, x]
        differs[y] = different != 0

    frame, before = frame_into.view(np.float32), frame_like.view(np.float32)
    side, taps = resize.row_weights.shape
    grey = np.empty((rows, columns), np.float32)  # where it is needed
    is_grey = np.zeros(rows, np.bool_)
    wide, pixels = np.empty(columns, np.float32), np.empty(side, np.float32)
    pairs = np.zeros(side // 2 + 1, np.uint64)  # bit x of word y: pixels 2x, 2x+1 of rows 2y, 2y+1
    for f in range(side):
        old, new = before[f + BORDER], frame[f + BORDER]
        for g in range(len(new)):
            new[g] = old[g]
        start = resize.row_starts[f]
        needed = False
        for y in range(start, start + taps):
            needed |= differs[y]
        if not needed:
            continue
        for x in range(columns):
            wide[x] = 0
        for a in range(taps):
            y = start + a
            if not is_grey[y]:
                is_grey[y] = True
                for x in range(columns):
                    grey[y, x] = resize.grey[screen[y, x]]
            weight = resize.row_weights[f, a]
            for x in range(columns):
                wide[x] += weight * grey[y, x]
        _narrow(wide, resize, f, pixels)
        for g in range(side):
            if fresh or pixels[g] != old[g + BORDER]:
                new[g + BORDER] = pixels[g]
                pairs[f // 2] |= np.uint64(1) << np.uint64(g // 2)
    changed = np.zeros(64, np.uint64)
    for y in range(side // 2):  # kernels of size 3 or 4 and stride 2 see two pairs
        both = pairs[y] | pairs[y + 1]
        changed[y] = both | both >> np.uint64(1)
    return changed


@numba.njit(cache=True, nogil=True)
def _narrow(wide, resize, f, pixels):  # type: ignore[no-untyped-def]
    """The pixels of row f of the frame, float32[128], from weighted sums of the screen's rows, float32[columns]."""
    taps = resize.column_weights.shape[1]
    for g in range(len(pixels)):
        start = resize.column_starts[g]
        total = np.float32(0)
        for b in range(taps):
            total += resize.column_weights[g, b] * wide[start + b]
        pixels[g] = total * resize.scale[f, g]


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
    side, size, stride = len(above) - 2 * BORDER, layer.size, layer.stride
    start = BORDER - layer.padding
    found = 0
    outputs = np.empty(side * side, np.int32)
    keys = np.empty((side * side, size * size), np.int32)
    slots = np.empty(side * side, np.int32)
    for y in range(side):
        for x in range(side):
            above[y + BORDER, x + BORDER] = like[y + BORDER, x + BORDER]
        if not changed[y]:
            continue
        for x in range(side):
            if changed[y] >> np.uint64(x) & np.uint64(1):
                outputs[found] = y * side + x
                mixed, i = np.uint64(0), 0
                for a in range(size):
                    for b in range(size):
                        part = below[y * stride + start + a, x * stride + start + b]
                        keys[found, i] = part
                        mixed += np.uint64(np.uint32(part)) * _MULTIPLIERS[i]
                        i += 1
                mixed = (mixed ^ mixed >> np.uint64(32)) * _MULTIPLIERS[16]
                slots[found] = (mixed >> np.uint64(32)) & np.uint64(len(layer.slots) - 1)
                found += 1
    _touch(layer, slots[:found])
    for i in range(found):
        y, x = divmod(outputs[i], side)
        above[y + BORDER, x + BORDER] = _row_of(keys[i], slots[i], layer)


@numba.njit(cache=True, nogil=True)
def _touch(layer, slots):  # type: ignore[no-untyped-def]
    """Reads what `_row_of` will, in a loop that waits for many cache lines at once."""
    touched = 0
    for slot in slots:
        touched ^= layer.keys[layer.slots[slot], 0]
    layer.used[1] = touched  # so that the loop has an effect


@numba.njit(cache=True, nogil=True)
def _row_of(key, slot, layer):  # type: ignore[no-untyped-def]
    """The row that a key has, or is now given; it is looked for from `slot` on."""
    while layer.slots[slot]:
        row = layer.slots[slot]
        same = True
        for i in range(len(key)):
            same &= layer.keys[row, i] == key[i]
        if same:
            return row
        slot = (slot + 1) & (len(layer.slots) - 1)
    row = layer.used[0]
    layer.used[0] = row + 1
    layer.slots[slot] = row
    for i in range(len(key)):
        layer.keys[row, i] = key[i]
    return row


@numba.njit(cache=True, nogil=True)
def _convolve(layer, first, last, below, gathered):  # type: ignore[no-untyped-def]
    """Rows `first` to `last` of a matrix product: patches times the kernel, plus the bias.

    Args:
      below: float32[rows, in]. The keys say which of its rows are in a patch, if `gathered`; else each row is a patch.
    """
    tiles, taps, inputs, _ = layer.kernel.shape
    addresses = np.empty((taps, TILE_ROWS), np.int64)
    sums = np.empty((TILE_ROWS, TILE_COLUMNS), np.float32)
    for row in range(first, last, TILE_ROWS):
        for r in range(TILE_ROWS):
            this = min(row + r, last - 1)  # where too few are left, the last one again
            for tap in range(taps):
                source = np.int64(layer.keys[this, tap]) if gathered else this
                addresses[tap, r] = below.ctypes.data + source * inputs * below.itemsize
        for tile in range(tiles):
            for r in range(TILE_ROWS):
                for j in range(TILE_COLUMNS):
                    sums[r, j] = layer.bias[tile * TILE_COLUMNS + j]
            for tap in range(taps):
                _add_products(
                    addresses[tap].ctypes.data,
                    layer.kernel[tile, tap].ctypes.data,
                    sums.ctypes.data,
                    inputs,
                )
            for r in range(min(TILE_ROWS, last - row)):
                for j in range(TILE_COLUMNS):
                    layer.values[row + r, tile * TILE_COLUMNS + j] = sums[r, j]


@intrinsic
def _add_products(typing_context, rows, weights, sums, inputs):  # type: ignore[no-untyped-def]
    """sums[r] += sum over i of rows[r][i] * weights[i], for TILE_ROWS rows r and TILE_COLUMNS columns at once.

    Written in LLVM's own language, since its vectoriser does not see that all sums can stay in registers, which makes
    this twice as fast. A vector of TILE_COLUMNS becomes as many registers as the CPU needs for it.

    Args:
      rows: address of int64[TILE_ROWS] addresses of float32[inputs].
      weights: address of float32[inputs, TILE_COLUMNS].
      sums: address of float32[TILE_ROWS, TILE_COLUMNS].
      inputs: how many, at least 1.
    """
    address = numba.types.intp
    return numba.types.void(address, address, address, address), _emit_products


def _emit_products(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    integer, number = arguments[0].type, ir.FloatType()
    vector = ir.VectorType(number, TILE_COLUMNS)
    nothing = ir.Constant(vector, ir.Undefined)
    first_lane = ir.Constant(ir.IntType(32), 0)
    all_first = ir.Constant(ir.VectorType(ir.IntType(32), TILE_COLUMNS), [0] * TILE_COLUMNS)

    def pointer(base, index, kind):  # type: ignore[no-untyped-def]
        return builder.gep(builder.inttoptr(base, kind.as_pointer()), [index])

    def load(base, index, kind):  # type: ignore[no-untyped-def]
        return builder.load(pointer(base, index, kind), align=4)

    rows, weights, sums, inputs = arguments
    each = [ir.Constant(integer, r) for r in range(TILE_ROWS)]
    inputs_of = [load(rows, r, integer) for r in each]
    sums_before = [load(sums, r, vector) for r in each]
    entry, loop = builder.block, builder.append_basic_block("inputs")
    builder.branch(loop)
    builder.position_at_end(loop)
    i = builder.phi(integer)
    i.add_incoming(ir.Constant(integer, 0), entry)
    so_far = [builder.phi(vector) for _ in each]
    weight = load(weights, i, vector)
    added = []
    for row, total in zip(inputs_of, so_far, strict=True):
        lane = builder.insert_element(nothing, load(row, i, number), first_lane)
        product = builder.fmul(
            builder.shuffle_vector(lane, nothing, all_first), weight, flags=("contract",)
        )
        added.append(builder.fadd(product, total, flags=("contract",)))
    following = builder.add(i, ir.Constant(integer, 1))
    i.add_incoming(following, loop)
    for total, before, after in zip(so_far, sums_before, added, strict=True):
        total.add_incoming(before, entry)
        total.add_incoming(after, loop)
    done = builder.append_basic_block("done")
    builder.cbranch(builder.icmp_signed("<", following, inputs), loop, done)
    builder.position_at_end(done)
    for r, total in zip(each, added, strict=True):
        builder.store(total, pointer(sums, r, vector), align=4)
    return context.get_dummy_value()


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
