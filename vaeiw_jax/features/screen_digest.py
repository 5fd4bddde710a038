"""What tells screens apart: a hash ten times as fast as those of hashlib."""

import numba
import numpy as np

from vaeiw_jax.features.numba_compilation import read_only

_SEEDS, _MULTIPLIERS = np.random.default_rng(0).integers(1, 2**64, (2, 8), np.uint64) | 1


def digest(screen: np.ndarray) -> bytes:
    """64 bytes for a screen, uint8[rows, columns]."""
    word = np.uint64 if screen.size % 8 == 0 else np.uint8
    lanes: np.ndarray = _lanes(read_only(screen).ravel().view(word))
    return lanes.tobytes()


@numba.njit(cache=True, nogil=True)
def _lanes(words):  # type: ignore[no-untyped-def]
    """uint64[8]: two hashes of every fourth word."""
    lanes = _SEEDS.copy()
    for i in range(len(words)):
        for lane in range(2 * (i & 3), 2 * (i & 3) + 2):
            mixed = (lanes[lane] ^ np.uint64(words[i])) * _MULTIPLIERS[lane]
            lanes[lane] = mixed ^ mixed >> np.uint64(29)
    return lanes
