"""What a decision teaches: how probable its actions should have been."""

import numpy as np

TARGETS = SOFTMAX, RANK, BEST = "softmax", "rank", "best"


def target(values: np.ndarray, kind: str, temperature: float) -> np.ndarray:
    """float32[num_actions]: probabilities, 0 for actions not tried.

    A risk-averse planner's returns span six orders of magnitude. In the softmax of returns as they are, an action that
    loses a life has no weight, and others are told apart by points; ranks make the least difference count as the most.

    Args:
      values: float64[num_actions], the returns of the actions; NaN where one was not tried. Some must be known.
      kind: softmax: of returns / temperature, as pi-IW has it; rank: of ranks / temperature, from 0 for the lowest
        return to 1 for the highest; best: the same for all actions of the highest return.
      temperature: above 0.
    """
    tried = ~np.isnan(values)
    known = values[tried]
    if kind == BEST:
        weights = (known == known.max()).astype(np.float64)
    else:
        scores = known
        if kind == RANK:
            distinct, scores = np.unique(known, return_inverse=True)
            scores = scores / max(1, len(distinct) - 1)
        weights = np.exp((scores - scores.max()) / temperature)
    probabilities = np.zeros(len(values), np.float32)
    probabilities[tried] = weights / weights.sum()
    return probabilities
