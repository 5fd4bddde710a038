"""How good features are: which ever change, which flip for nothing, which screens they cannot tell apart.

Good features change when what matters on the screen does, and only then. Three ways to fail can be counted without
knowing what matters: a feature that never changes says nothing; one that flips between screens that look alike says
something about noise, and the planner takes it for novelty; different screens with equal features are one to the
planner, which prunes the second.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Pairs:
    """All pairs of distinct screens, how far apart they look and how far apart their features are."""

    first: np.ndarray  # int[P], rows of the screens
    second: np.ndarray  # int[P]
    pixels: np.ndarray  # int[P], pixels in which the screens differ
    flips: np.ndarray  # int[P], features in which they differ


@dataclass(frozen=True)
class Quality:
    """The features of some screens, and how good they are."""

    bits: np.ndarray  # bool[N, F]
    pairs: Pairs
    alike_pixels: int
    distinct_screens: int
    distinct_codes: int

    @functools.cached_property
    def shares(self) -> np.ndarray:
        """float64[F]: the share of the frames in which each feature is true."""
        return self.bits.mean(axis=0)

    @property
    def varying(self) -> np.ndarray:
        """bool[F]: features that are true in some frames and false in others."""
        return (self.shares > 0) & (self.shares < 1)

    @functools.cached_property
    def alike(self) -> np.ndarray:
        """int[A]: the pairs that look alike, of those each screen with its nearest only, nearest first."""
        pairs = self.pairs
        order = np.argsort(pairs.pixels, kind="stable")
        order = order[pairs.pixels[order] <= self.alike_pixels]
        nearest: dict[int, int] = {}
        for pair in order.tolist():
            nearest.setdefault(int(pairs.first[pair]), pair)
            nearest.setdefault(int(pairs.second[pair]), pair)
        return order[np.isin(order, list(nearest.values()))]

    @functools.cached_property
    def flip_rates(self) -> np.ndarray:
        """float64[F]: the share of the pairs that look alike between which each feature flips."""
        if not len(self.alike):
            return np.zeros(self.bits.shape[1])
        first, second = self.pairs.first[self.alike], self.pairs.second[self.alike]
        return (self.bits[first] != self.bits[second]).mean(axis=0)

    @functools.cached_property
    def confused(self) -> np.ndarray:
        """int[C]: the pairs of different screens with equal features, the most different first."""
        equal = np.flatnonzero(self.pairs.flips == 0)
        return equal[np.argsort(-self.pairs.pixels[equal], kind="stable")]

    def most_frequent(self, number: int) -> np.ndarray:
        """The features that fire most often, but not always."""
        return self._ranked(-self.shares, number)

    def least_frequent(self, number: int) -> np.ndarray:
        """The features that fire least often, but at times."""
        return self._ranked(self.shares, number)

    def most_informative(self, number: int) -> np.ndarray:
        """The features that say most about a frame: true about as often as not."""
        return self._ranked(np.abs(self.shares - 0.5), number)

    def most_flipping(self, number: int) -> np.ndarray:
        """The features that flip most often between screens that look alike."""
        ranked = self._ranked(-self.flip_rates, number)
        return ranked[self.flip_rates[ranked] > 0]

    def _ranked(self, key: np.ndarray, number: int) -> np.ndarray:
        # Of equals, any: in the order of their numbers they would all be of one corner of the screen.
        shuffled = np.random.default_rng(0).permutation(len(key))
        order = shuffled[np.argsort(key[shuffled], kind="stable")]
        return order[self.varying[order]][:number]

    def summary(self) -> dict[str, Any]:
        """The numbers, for a file."""
        pairs, alike = self.pairs, self.alike
        return {
            "frames": len(self.bits),
            "features": self.bits.shape[1],
            "true_per_frame": float(self.bits.sum(axis=1).mean()),
            "always_true": int((self.shares == 1).sum()),
            "never_true": int((self.shares == 0).sum()),
            "varying": int(self.varying.sum()),
            "distinct_screens": self.distinct_screens,
            "distinct_codes": self.distinct_codes,
            "alike_pixels": self.alike_pixels,
            "alike_pairs": len(alike),
            "flips_between_alike": float(pairs.flips[alike].mean()) if len(alike) else None,
            "flips_between_any": float(pairs.flips.mean()) if len(pairs.flips) else None,
            "flipping_features": int((self.flip_rates > 0).sum()),
            "confused_pairs": len(self.confused),
        }


def measure_quality(screens: np.ndarray, bits: np.ndarray, alike_pixels: int) -> Quality:
    """Judges features by the screens they come from.

    Args:
      screens: uint8[N, rows, columns].
      bits: bool[N, F], their features.
      alike_pixels: screens that differ in at most this many pixels look alike.
    """
    _, distinct = np.unique(screens.reshape(len(screens), -1), axis=0, return_index=True)
    distinct = np.sort(distinct)
    codes = len(np.unique(bits[distinct], axis=0))
    return Quality(bits, _pairs(screens, bits, distinct), alike_pixels, len(distinct), codes)


def _pairs(screens: np.ndarray, bits: np.ndarray, rows: np.ndarray) -> Pairs:
    flat = screens[rows].reshape(len(rows), -1)
    flat = np.ascontiguousarray(flat[:, (flat != flat[0]).any(axis=0)])  # the rest never differs
    pixels = [np.count_nonzero(flat[i + 1 :] != flat[i], axis=1) for i in range(len(rows))]
    true = bits[rows].astype(np.float32)  # whole numbers: a product of matrices counts exactly
    both = true @ true.T
    flips = both.diagonal()[:, None] + both.diagonal() - 2 * both
    first, second = np.triu_indices(len(rows), k=1)
    return Pairs(
        rows[first],
        rows[second],
        np.concatenate(pixels),
        np.rint(flips[first, second]).astype(np.int64),
    )
