"""An episode that a planner plays, in any world: what was decided, and what came of it."""

from typing import Any

import numpy as np

from vaeiw_jax.planning import Decision, Planner, Statistics

LATE_SECONDS = 0.02
"""A decision may end this long after its budget of seconds without being counted as late."""


class PlannedEpisode:
    """Decides, acts and keeps the record.

    Args:
      planner: it stands at the start.
      snapshot: the start.
    """

    def __init__(self, planner: Planner, snapshot: Any):
        self.planner = planner
        self.snapshot = snapshot
        self.actions: list[int] = []
        self.rewards: list[float] = []
        self.statistics: list[Statistics] = []

    def advance(self) -> Decision:
        """Makes a decision and acts on it."""
        decision = self.planner.decide()
        self.act(decision)
        return decision

    def act(self, decision: Decision) -> None:
        transition = self.planner.act(decision.action)
        self.snapshot = transition.snapshot
        self.actions.append(decision.action)
        self.rewards.append(transition.reward)
        self.statistics.append(decision.statistics)

    def summary(self) -> dict[str, Any]:
        """The means of the decisions' statistics, and how often each ended how."""
        columns = self.columns()
        endings, counts = np.unique(columns.pop("ended"), return_counts=True)
        widened = np.bincount(columns.pop("widened"))
        far = {"widened": widened.tolist()} if self.planner.config.widen else {}
        return {
            "ended": dict(zip(endings.tolist(), counts.tolist(), strict=True)),
            **far,  # how many decisions widened novelty not at all, once, twice, ...
            "random_actions": int(columns.pop("random_action").sum()),
            "late": self._late(columns["seconds"]),
            **{
                f"mean_{name.removeprefix('mean_')}": float(column.mean())
                for name, column in columns.items()
                if not name.endswith("seconds")
            },
        }

    def _late(self, seconds: np.ndarray) -> int:
        """How many decisions overran their budget of seconds by more than is tolerable."""
        budget = self.planner.config.budget_seconds
        return 0 if budget is None else int((seconds > budget + LATE_SECONDS).sum())

    def seconds(self) -> dict[str, float]:
        """Where the time of the decisions went."""
        columns = self.columns()
        return {name: float(columns[name].sum()) for name in columns if name.endswith("seconds")}

    def columns(self) -> dict[str, np.ndarray]:
        """The statistics, one array per name, one entry per decision."""
        return {
            name: np.array([getattr(entry, name) for entry in self.statistics])
            for name in Statistics.names()
        }

    def decisions(self) -> dict[str, np.ndarray]:
        """Everything there is to tell about the decisions, as arrays."""
        return {
            "actions": np.array(self.actions, np.int32),
            "rewards": np.array(self.rewards, np.float64),
            **self.columns(),
        }
