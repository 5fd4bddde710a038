"""Which screens a batch holds, where they come from one store or from many, each store as often as any other.

A *store* is the screens of one game; the screens of all stores lie in one array, one store after another.
"""

from collections.abc import Sequence

import numpy as np


def split(
    counts: Sequence[int], share: float, seed: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Which screens to train on and which to validate on: per store, rows in ascending order.

    Args:
      counts: screens of each store.
      share: of each store's screens that is kept for validation: at least one screen, and not all of several.
      seed: of the draw; a store's part depends on its own number of screens alone, not on other stores.
    """
    training, validation = [], []
    starts = np.cumsum([0, *counts[:-1]])
    for start, count in zip(starts.tolist(), counts, strict=True):
        kept = min(max(1, round(count * share)), max(1, count - 1))
        order = np.random.default_rng(seed).permutation(count)
        training.append(start + np.sort(order[kept:]))
        validation.append(start + np.sort(order[:kept]))
    return training, validation


def epoch_rows(counts: Sequence[int], seed: int, epoch: int) -> np.ndarray:
    """int32[sum(counts) // len(counts) * len(counts)]: the screens of an epoch, shuffled.

    Every store gives as many, whatever it has: a larger one is drawn from without replacement, a smaller one is gone
    through several times, so that no screen comes twice before all of its store have come once.
    """
    rng = np.random.default_rng([seed, epoch])
    share = sum(counts) // len(counts)
    rows = []
    start = 0
    for count in counts:
        passes = [rng.permutation(count) for _ in range(-(-share // count))]
        rows.append(start + np.concatenate(passes)[:share])
        start += count
    return rng.permutation(np.concatenate(rows)).astype(np.int32)
