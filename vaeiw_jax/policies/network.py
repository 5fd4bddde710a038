"""A policy over atoms as the planner asks it: one sparse layer, perhaps a hidden one. NumPy only."""

from collections.abc import Mapping

import numpy as np

TABLE_ROWS = 2**16
"""The first layer has a row for every feature, or else this many, which features then share by their hash."""

_LANES = 64
"""Rows are added this many at a time: long inner loops are what NumPy is fast at."""

_LARGEST_SYMLOG = 20.0
"""Beyond what any return is, so that a prediction gone astray stays a number."""

Parameters = dict[str, np.ndarray]
"""`weights`: float32[rows or hidden, outputs], `bias`: float32[outputs] and, with a hidden layer, `hidden_weights`:
float32[rows, hidden], `hidden_bias`: float32[hidden]. Outputs are the logits of the actions, then perhaps the value."""


def num_rows(num_features: int) -> int:
    return min(num_features, TABLE_ROWS)


def rows_of(atoms: np.ndarray, num_features: int) -> np.ndarray:
    """int[m]: the rows that atoms, int32[n], stand for, without duplicates."""
    if num_features <= TABLE_ROWS:
        return atoms
    # Knuth's multiplicative hash.
    hashed = (atoms.astype(np.uint32) * np.uint32(2654435769)) >> np.uint32(16)
    taken = np.zeros(TABLE_ROWS, np.bool_)
    taken[hashed] = True
    return np.flatnonzero(taken)


def symlog(values: np.ndarray) -> np.ndarray:
    """Returns on a scale where points, and a life that counts as half a million of them, are of one order."""
    return np.sign(values) * np.log1p(np.abs(values))


def symexp(scaled: float) -> float:
    """The inverse of `symlog`."""
    scaled = float(np.clip(scaled, -_LARGEST_SYMLOG, _LARGEST_SYMLOG))
    return float(np.sign(scaled) * np.expm1(abs(scaled)))


def sum_of_rows(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """float32[width]: `table[rows].sum(axis=0)`, the same on every number of cores and four times as fast."""
    taken = table.take(rows, axis=0)
    whole = len(rows) // _LANES * _LANES
    lanes = taken[:whole].reshape(-1, _LANES * table.shape[1]).sum(axis=0)
    return lanes.reshape(_LANES, -1).sum(axis=0) + taken[whole:].sum(axis=0)


class Network:
    """A policy, and perhaps a value, of atoms: what `planning.policy.Policy` asks for.

    An input is 1 / sqrt(m) where m rows are true, so that a step of learning moves codes of many bits as much as codes
    of few.

    Attributes:
      parameters: may be replaced between decisions.
    """

    def __init__(
        self,
        parameters: Mapping[str, np.ndarray],
        num_features: int,
        num_actions: int,
        share: float = 1.0,
        values_leaves: bool = False,
    ):
        self.parameters = dict(parameters)
        self.num_features = num_features
        self.num_actions = num_actions
        self.share = share
        self.values_leaves = values_leaves

    def logits(self, atoms: np.ndarray) -> np.ndarray:
        return self.outputs(atoms)[: self.num_actions]

    def value(self, atoms: np.ndarray) -> float:
        return symexp(float(self.outputs(atoms)[self.num_actions]))

    def outputs(self, atoms: np.ndarray) -> np.ndarray:
        """float32[outputs]"""
        known = self.parameters
        if "hidden_weights" not in known:
            return self._first_layer(atoms, known["weights"], known["bias"])
        units = np.maximum(self.hidden(atoms), 0)
        # Not a matrix product: what BLAS adds in which order depends on the machine.
        return (units[:, None] * known["weights"]).sum(axis=0) + known["bias"]

    def hidden(self, atoms: np.ndarray) -> np.ndarray:
        """float32[hidden]: the units of the hidden layer, before what is negative becomes zero."""
        known = self.parameters
        return self._first_layer(atoms, known["hidden_weights"], known["hidden_bias"])

    def _first_layer(self, atoms: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
        rows = rows_of(atoms, self.num_features)
        scale = np.float32(1 / max(1, len(rows)) ** 0.5)
        return scale * sum_of_rows(weights, rows) + bias


def initial_parameters(
    num_features: int, num_actions: int, hidden: int, value: bool, rng: np.random.Generator
) -> Parameters:
    """Of a policy that knows nothing: all actions are alike to it."""
    rows, outputs = num_rows(num_features), num_actions + value
    bias = np.zeros(outputs, np.float32)
    if not hidden:
        return {"weights": np.zeros((rows, outputs), np.float32), "bias": bias}
    return {
        "hidden_weights": rng.standard_normal((rows, hidden), np.float32),
        "hidden_bias": np.zeros(hidden, np.float32),
        "weights": np.zeros((hidden, outputs), np.float32),
        "bias": bias,
    }
