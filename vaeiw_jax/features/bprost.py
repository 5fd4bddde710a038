"""B-PROST (Liang et al., AAMAS 2016): colours in tiles, pairs of them in space, pairs of them in time.

The screen is cut into 14 rows and 16 columns of tiles, 15 x 10 pixels each. A basic feature is a colour in a tile. A
B-PROS feature is a pair of colours at an offset between their tiles; a B-PROT feature likewise, between this screen and
the one before. Only that a pair occurs counts, not where: so pairs are found by sliding the tile map of one colour over
that of another, a column of 14 tiles at a time, held as bits of a word.
"""

import numba
import numpy as np

from vaeiw_jax.errors import UserError
from vaeiw_jax.features.config import FeaturesConfig, Seen, Setting
from vaeiw_jax.features.numba_compilation import read_only
from vaeiw_jax.frames import SCREEN_SHAPE

ROWS, COLUMNS = 14, 16
COLOURS = 128
_TILE_HEIGHT, _TILE_WIDTH = SCREEN_SHAPE[0] // ROWS, SCREEN_SHAPE[1] // COLUMNS
_ROW_OFFSETS, _COLUMN_OFFSETS = 2 * ROWS - 1, 2 * COLUMNS - 1
_COLOUR_PAIRS = COLOURS * (COLOURS - 1) // 2

NUM_BASIC = ROWS * COLUMNS * COLOURS
_NUM_TWO_COLOURS = _COLUMN_OFFSETS * _ROW_OFFSETS * _COLOUR_PAIRS
_NUM_ONE_COLOUR_ASIDE = (COLUMNS - 1) * _ROW_OFFSETS * COLOURS
_NUM_ONE_COLOUR_BELOW = (ROWS - 1) * COLOURS
NUM_BPROS = _NUM_TWO_COLOURS + _NUM_ONE_COLOUR_ASIDE + _NUM_ONE_COLOUR_BELOW + COLOURS
NUM_BPROT = _COLUMN_OFFSETS * _ROW_OFFSETS * COLOURS * COLOURS

SETS = {
    "basic": NUM_BASIC,
    "bpros": NUM_BASIC + NUM_BPROS,
    "bprost": NUM_BASIC + NUM_BPROS + NUM_BPROT,
}
"""How many features each set has: `bpros` includes `basic`, `bprost` includes both and B-PROT."""

NO_BACKGROUND = -1
"""Marks the pixels of a background that have none."""

_ONE = np.uint32(1)
_DE_BRUIJN = np.uint32(0x077CB531)
"""Every 5-bit pattern occurs once in it, so that the top 5 bits of its product with 2^b tell b."""
_BIT_NUMBERS = np.empty(32, np.int32)
_BIT_NUMBERS[[(0x077CB531 << b & 0xFFFFFFFF) >> 27 for b in range(32)]] = np.arange(32)


class BPROST:
    """One of the `SETS` as a feature set.

    Args:
      config: names the set, and says whether a background is masked or subtracted.
      setting: its screens must be 210 x 160; it may have a background.
    """

    def __init__(self, config: FeaturesConfig, setting: Setting):
        name = config.features
        if setting.screen_shape != SCREEN_SHAPE:
            height, width = setting.screen_shape
            raise UserError(
                f"{name} needs a screen of 210 x 160 pixels, and that of {setting.game} has "
                f"{height} x {width}; use --features=ram"
            )
        self.num_features = SETS[name]
        self._name = name
        self._background = setting.background
        self._subtract = config.background_subtract

    def atoms(self, seen: Seen, previous: Seen | None) -> np.ndarray:
        before = previous.screen if previous is not None and self._name == "bprost" else None
        return atoms(seen.screen, before, self._name, self._background, self._subtract)


def atoms(
    screen: np.ndarray,
    previous: np.ndarray | None = None,
    features: str = "bprost",
    background: np.ndarray | None = None,
    subtract: bool = False,
) -> np.ndarray:
    """The true atoms of a screen.

    Args:
      screen: uint8[210, 160] palette colours.
      previous: uint8[210, 160], the screen of the decision before; without it there are no B-PROT atoms.
      features: `basic`, `bpros` or `bprost`.
      background: int16[210, 160], `NO_BACKGROUND` where there is none. Pixels equal to it count as colour 0.
      subtract: instead, it is subtracted from every pixel that is not below it, which counts as it is.

    Returns:
      int32[n], without duplicates.
    """
    colours, maps = _tile_maps(_without(background, screen, subtract))
    if features == "basic":
        return _basic_atoms(colours, maps)
    if features == "bpros" or previous is None:
        previous_colours, previous_maps = _NOTHING
    else:
        previous_colours, previous_maps = _tile_maps(_without(background, previous, subtract))
    return _pair_atoms(colours, maps, previous_colours, previous_maps)


def background(screens: np.ndarray) -> np.ndarray:
    """int16[210, 160]: the colour of each pixel that is the same on all screens, NO_BACKGROUND elsewhere.

    Args:
      screens: uint8[n, 210, 160].
    """
    constant = (screens == screens[0]).all(axis=0)
    return np.where(constant, screens[0].astype(np.int16), np.int16(NO_BACKGROUND))


def _without(background: np.ndarray | None, screen: np.ndarray, subtract: bool) -> np.ndarray:
    if background is None:
        return read_only(screen)
    if not subtract:
        return read_only(np.where(screen == background, np.uint8(0), screen))
    known = np.where(background == NO_BACKGROUND, 0, background).astype(np.uint8)
    return read_only(np.where(screen < known, screen, screen - known))


@numba.njit(cache=True)
def _tile_maps(screen):  # type: ignore[no-untyped-def]
    """The colours on the screen, in order, and the tiles that have them.

    Returns:
      colours: int32[m].
      maps: uint32[m, COLUMNS], whose bit r says whether the colour is in row r of the column of tiles.
    """
    maps = np.zeros((COLOURS, COLUMNS), np.uint32)
    for y in range(SCREEN_SHAPE[0]):
        bit = np.uint32(1) << np.uint32(y // _TILE_HEIGHT)
        for column in range(COLUMNS):
            x = column * _TILE_WIDTH
            last = -1
            for pixel in screen[y, x : x + _TILE_WIDTH]:
                if pixel != last:
                    maps[pixel >> 1, column] |= bit
                    last = pixel
    present = np.zeros(COLOURS, np.bool_)
    for colour in range(COLOURS):
        present[colour] = maps[colour].any()
    colours = np.flatnonzero(present).astype(np.int32)
    return colours, maps[present]


_NOTHING = np.zeros(0, np.int32), np.zeros((0, COLUMNS), np.uint32)
"""The tile maps of no screen."""


@numba.njit(cache=True)
def _basic_atoms(colours, maps):  # type: ignore[no-untyped-def]
    found = np.empty(_count(maps.ravel()), np.int32)
    _write_basic(colours, maps, found)
    return found


@numba.njit(cache=True)
def _pair_atoms(colours, maps, previous_colours, previous_maps):  # type: ignore[no-untyped-def]
    """Basic, B-PROS and B-PROT atoms, from the tile maps of this screen and the one before."""
    m, n = len(colours), len(previous_colours)
    pros = np.zeros((m, m, _COLUMN_OFFSETS), np.uint32)
    for i in range(m):
        for j in range(i, m):
            _slide(maps[i], maps[j], pros[i, j])
        # Of one colour's offsets, which come in opposite pairs, those to the right or straight below.
        pros[i, i, : COLUMNS - 1] = 0
        pros[i, i, COLUMNS - 1] &= np.uint32((1 << _ROW_OFFSETS) - (1 << (ROWS - 1)))
    prot = np.zeros((m, n, _COLUMN_OFFSETS), np.uint32)
    for i in range(m):
        for j in range(n):
            _slide(maps[i], previous_maps[j], prot[i, j])

    total = _count(maps.ravel()) + _count(pros.ravel()) + _count(prot.ravel())
    found = np.empty(total, np.int32)
    end = _write_basic(colours, maps, found)
    end = _write_pros(colours, pros, found, end)
    _write_prot(colours, previous_colours, prot, found, end)
    return found


@numba.njit(cache=True)
def _slide(first, second, offsets):  # type: ignore[no-untyped-def]
    """Marks the offsets at which tiles of one map lie from tiles of another.

    Args:
      first, second: uint32[COLUMNS] tile maps.
      offsets: uint32[2 * COLUMNS - 1] of zeros, where bit 13 + dr of word 15 + dc is set if (dc, dr) occurs.
    """
    for column in range(COLUMNS):
        for row in range(ROWS):
            if second[column] >> np.uint32(row) & _ONE:
                shift = np.uint32(ROWS - 1 - row)
                for other in range(COLUMNS):
                    offsets[COLUMNS - 1 - column + other] |= first[other] << shift


@numba.njit(cache=True)
def _write_basic(colours, maps, found):  # type: ignore[no-untyped-def]
    end = 0
    for i, colour in enumerate(colours):
        for column in range(COLUMNS):
            start = ROWS * column * COLOURS + colour
            end = _write(maps[i, column], start, COLOURS, found, end)
    return end


@numba.njit(cache=True)
def _write_pros(colours, offsets, found, end):  # type: ignore[no-untyped-def]
    aside = NUM_BASIC + _NUM_TWO_COLOURS
    below = aside + _NUM_ONE_COLOUR_ASIDE
    same_tile = below + _NUM_ONE_COLOUR_BELOW
    for i, p1 in enumerate(colours):
        found[end] = same_tile + p1
        straight = offsets[i, i, COLUMNS - 1] >> np.uint32(ROWS)
        end = _write(straight, below + p1, COLOURS, found, end + 1)
        for word in range(COLUMNS, _COLUMN_OFFSETS):
            start = aside + (word - COLUMNS) * _ROW_OFFSETS * COLOURS + p1
            end = _write(offsets[i, i, word], start, COLOURS, found, end)
        for j in range(i + 1, len(colours)):
            pair = p1 * (COLOURS - 1) - p1 * (p1 + 1) // 2 + colours[j] - 1
            for word in range(_COLUMN_OFFSETS):
                start = NUM_BASIC + word * _ROW_OFFSETS * _COLOUR_PAIRS + pair
                end = _write(offsets[i, j, word], start, _COLOUR_PAIRS, found, end)
    return end


@numba.njit(cache=True)
def _write_prot(colours, previous_colours, offsets, found, end):  # type: ignore[no-untyped-def]
    stride = COLOURS * COLOURS
    for i, p1 in enumerate(colours):
        for j, p2 in enumerate(previous_colours):
            for word in range(_COLUMN_OFFSETS):
                start = NUM_BASIC + NUM_BPROS + word * _ROW_OFFSETS * stride + p1 * COLOURS + p2
                end = _write(offsets[i, j, word], start, stride, found, end)
    return end


@numba.njit(cache=True)
def _write(bits, start, stride, found, end):  # type: ignore[no-untyped-def]
    """Appends `start + b * stride` for every bit b that is set; returns where the next one goes."""
    while bits:
        lowest = _BIT_NUMBERS[np.uint32((bits & (~bits + _ONE)) * _DE_BRUIJN) >> np.uint32(27)]
        found[end] = start + lowest * stride
        end += 1
        bits &= bits - _ONE
    return end


@numba.njit(cache=True)
def _count(words):  # type: ignore[no-untyped-def]
    """How many bits are set in all words together."""
    total = 0
    for word in words:
        while word:
            word &= word - _ONE
            total += 1
    return total
