"""What scores amount to: counts as the paper has them, and intervals, which it has not.

Interquartile mean and stratified bootstrap are those of Agarwal et al. (NeurIPS 2021).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # which loads scipy.stats when it is used: that takes a second

Scores = Mapping[str, float]
"""By game."""

REPETITIONS = 2000
"""How often a bootstrap draws."""

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate, and where it lies with 95% confidence; NaN where that cannot be told."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def is_known(self) -> bool:
        return not math.isnan(self.low)


@dataclass(frozen=True)
class Share:
    """Games won, tied and lost against another method; a tie is half a win."""

    won: int
    tied: int
    lost: int
    interval: Interval

    @property
    def games(self) -> int:
        return self.won + self.tied + self.lost


@dataclass(frozen=True)
class Paired:
    """Two methods on the same games with the same seeds."""

    won: int
    tied: int
    lost: int
    p_value: float
    """Of a Wilcoxon signed-rank test of the mean normalised difference in each game; NaN with too few games."""


def mean(scores: Sequence[float]) -> float:
    return float(np.mean(scores))


def standard_error(scores: Sequence[float]) -> float | None:
    """Of the mean; None for a single run."""
    if len(scores) < 2:
        return None
    return float(np.std(scores, ddof=1) / math.sqrt(len(scores)))


def in_words(scores: Sequence[float]) -> str:
    """Mean, standard error and number of games."""
    error = standard_error(scores)
    if error is None:
        return f"score {scores[0]:,} in one game"
    return f"mean score {mean(scores):,.1f} ± {error:,.1f} (standard error, {len(scores)} games)"


def count_above(scores: Scores, human: Scores, share: float = 1.0) -> int:
    """In how many games a score exceeds this share of the human one."""
    return sum(scores[game] > share * human[game] for game in scores.keys() & human.keys())


def normalised(score: float, random: float, human: float) -> float:
    """Percent of the way from random play to a human (the paper's Figure 1)."""
    return 100 * (score - random) / (human - random)


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """The mean of the middle half of the last axis."""
    return scipy.stats.trim_mean(values, 0.25, axis=-1)


def overall_mean(values: np.ndarray) -> np.ndarray:
    """The mean of the last axis."""
    return values.mean(axis=-1)


def bootstrap(
    groups: Sequence[Sequence[float]],
    statistic: Callable[[np.ndarray], np.ndarray],
) -> Interval:
    """The statistic of all runs together, and its interval when the runs of each game are drawn again.

    Where a game has a single run there is nothing to draw from, and no interval.

    Args:
      groups: the runs of each game.
      statistic: of the last axis, along which the runs of all games lie.
    """
    rng = np.random.default_rng(0)
    arrays = [np.asarray(group, float) for group in groups]
    value = float(statistic(np.concatenate(arrays)))
    if min(map(len, arrays)) < 2:
        return Interval(value)
    drawn = [rng.choice(array, (REPETITIONS, len(array))) for array in arrays]
    low, high = np.quantile(
        statistic(np.concatenate(drawn, axis=1)), [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    )
    return Interval(value, float(low), float(high))


def wilson(successes: float, trials: int) -> Interval:
    """A share and its Wilson score interval."""
    z = float(scipy.stats.norm.ppf((1 + LEVEL) / 2))
    share = successes / trials
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = (
        z / (1 + z**2 / trials) * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    )
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))


def share_won(ours: Scores, theirs: Scores) -> Share | None:
    """Of the games both have scores in."""
    games = ours.keys() & theirs.keys()
    if not games:
        return None
    won = sum(ours[game] > theirs[game] for game in games)
    tied = sum(ours[game] == theirs[game] for game in games)
    return Share(won, tied, len(games) - won - tied, wilson(won + tied / 2, len(games)))


def probability_of_improvement(
    ours: Sequence[Sequence[float]],
    theirs: Sequence[Sequence[float]],
) -> Interval:
    """How probable it is that a run of ours scores higher than one of theirs, in a game drawn at random.

    Ties count half. As in Agarwal et al.; the interval is that of drawing the runs of each game again. Where a game has
    a single run there is none.

    Args:
      ours, theirs: the runs of each game, the games in the same order.
    """
    rng = np.random.default_rng(0)
    value, drawn = 0.0, np.zeros(REPETITIONS)
    for one, other in zip(ours, theirs, strict=True):
        a, b = np.asarray(one, float), np.asarray(other, float)
        value += float(_higher(a, b))
        drawn += _higher(rng.choice(a, (REPETITIONS, len(a))), rng.choice(b, (REPETITIONS, len(b))))
    if min(map(len, (*ours, *theirs))) < 2:
        return Interval(value / len(ours))
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) / len(ours)
    return Interval(value / len(ours), float(low), float(high))


def _higher(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The share of pairs, one of the last axis of each, in which that of a is higher; ties are half."""
    difference = a[..., :, None] - b[..., None, :]
    return ((difference > 0) + (difference == 0) / 2).mean(axis=(-1, -2))


def paired(
    ours: Mapping[tuple[str, int], float], theirs: Mapping[tuple[str, int], float]
) -> Paired | None:
    """Compares runs of the same game and seed; scores are by game and seed."""
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return None
    differences = {key: ours[key] - theirs[key] for key in common}
    games = sorted({game for game, _ in common})
    by_game = [
        _relative(
            [differences[key] for key in common if key[0] == game],
            [abs(scores[key]) for scores in (ours, theirs) for key in common if key[0] == game],
        )
        for game in games
    ]
    signs = np.sign(list(differences.values()))
    return Paired(
        won=int((signs > 0).sum()),
        tied=int((signs == 0).sum()),
        lost=int((signs < 0).sum()),
        p_value=_signed_rank(by_game),
    )


def _relative(differences: list[float], sizes: list[float]) -> float:
    """The mean difference on a scale that games share: points mean something else in each."""
    return float(np.mean(differences)) / max(float(np.mean(sizes)), 1.0)


def _signed_rank(differences: list[float]) -> float:
    if np.count_nonzero(differences) < 6:  # five cannot reach 5% however they fall
        return math.nan
    return float(scipy.stats.wilcoxon(differences).pvalue)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> tuple[float, float] | None:
    """Spearman's rho and its p-value; None where there is too little to rank."""
    if len(one) < 3 or len(set(one)) < 2 or len(set(other)) < 2:
        return None
    result = scipy.stats.spearmanr(one, other)
    return float(result.statistic), float(result.pvalue)
