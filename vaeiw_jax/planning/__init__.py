"""Width-based planning on anything that steps from a snapshot. NumPy only."""

from vaeiw_jax.planning.config import PlannerConfig
from vaeiw_jax.planning.planner import Decision, Planner
from vaeiw_jax.planning.search import Statistics
from vaeiw_jax.planning.world import PlainWorld, Transition, World

__all__ = [
    "Decision",
    "PlainWorld",
    "Planner",
    "PlannerConfig",
    "Statistics",
    "Transition",
    "World",
]
