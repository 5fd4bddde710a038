"""Width-based planning on anything that steps from a snapshot. NumPy only."""

from vaeiw_jax.planning.config import PlannerConfig
from vaeiw_jax.planning.planner import Decision, Planner
from vaeiw_jax.planning.rules import Rules
from vaeiw_jax.planning.search import Search, Statistics
from vaeiw_jax.planning.searches import SEARCHES, SearchEntry, SearchFunction, register_search
from vaeiw_jax.planning.world import PlainWorld, Transition, World

__all__ = [
    "SEARCHES",
    "Decision",
    "PlainWorld",
    "Planner",
    "PlannerConfig",
    "Rules",
    "Search",
    "SearchEntry",
    "SearchFunction",
    "Statistics",
    "Transition",
    "World",
    "register_search",
]
