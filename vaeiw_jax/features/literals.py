"""What of a code of bits is an atom: that a bit is true, its value, that it is unusual, that it has changed.

The code of a Bernoulli prior has no preferred sign: where an object is, bits may be off that are usually on. A planner
sees what is true, and so it does not see these, unless their being off is an atom of its own.
"""

import numba
import numpy as np

from vaeiw_jax.features.config import EITHER


class Literals:
    """Turns codes into atoms.

    Codes are bits as `np.packbits` packs them. Atoms, in this order: one per bit, that it is true (`true`, `either`) or
    not as it usually is (`unusual`); for `either` one per bit, that it is false; with changes one per bit, that it was
    switched on since the parent, and one that it was switched off.

    Args:
      num_bits: of a code.
      kind: one of `config.LITERALS`.
      changes: whether there are atoms for changes. A node without a parent has none.
      usual: for `unusual`, the code of usual values.
    """

    def __init__(self, num_bits: int, kind: str, changes: bool, usual: np.ndarray | None = None):
        self._num_bits = num_bits
        self._either = kind == EITHER
        self._changes = changes
        self.usual = np.zeros(-(-num_bits // 8), np.uint8) if usual is None else usual

    def atoms(self, code: np.ndarray, previous: np.ndarray | None) -> np.ndarray:
        """int32[n], rising.

        Args:
          code: uint8[ceil(num_bits / 8)].
          previous: the parent's, if there is one.
        """
        unusual = code ^ self.usual  # which is the code itself, unless something else is usual
        places = _values if self._either else _true_bits
        found = places(unusual, self._num_bits, 0)
        if not self._changes or previous is None:
            return found
        first = self._num_bits * (1 + self._either)
        on = _true_bits(code & ~previous, self._num_bits, first)
        off = _true_bits(~code & previous, self._num_bits, first + self._num_bits)
        return np.concatenate([found, on, off])


def usual_values(codes: np.ndarray) -> np.ndarray:
    """The value that each bit has in most of the codes.

    Args:
      codes: uint8[n, bytes], packed.
    """
    shares = np.unpackbits(codes, axis=1).mean(axis=0)
    return np.packbits(shares > 0.5)


@numba.njit(cache=True, nogil=True)
def _true_bits(code, number, first):  # type: ignore[no-untyped-def]
    """The places, int32[n], of the ones among the first `number` bits, counted from `first`."""
    places = np.empty(number + 1, np.int32)
    found = 0
    for i in range(number):
        places[found] = first + i
        found += code[i >> 3] >> (7 - (i & 7)) & 1
    return places[:found].copy()


@numba.njit(cache=True, nogil=True)
def _values(code, number, first):  # type: ignore[no-untyped-def]
    """int32[number]: for each bit its place if it is one, else its place beyond all of those; in rising order."""
    places = np.empty(number, np.int32)
    ones = 0
    for i in range(number):
        ones += code[i >> 3] >> (7 - (i & 7)) & 1
    true, false = 0, ones
    for i in range(number):
        if code[i >> 3] >> (7 - (i & 7)) & 1:
            places[true] = first + i
            true += 1
        else:
            places[false] = first + number + i
            false += 1
    return places
