"""What a planner is asked to do."""

import math
from dataclasses import dataclass, field

from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.planning.action_choice import ACTION_CHOICES, UNIFORM
from vaeiw_jax.planning.bandits import RETURNS, UTILITY
from vaeiw_jax.planning.novelty import MAX_DEPTH
from vaeiw_jax.planning.rules import PUBLISHED, Rules
from vaeiw_jax.planning.searches import SEARCHES, SearchEntry, lookup_search

CACHING = ("partial", "none")


@dataclass(frozen=True)
class PlannerConfig:
    """The planner and its budget. Defaults: Table 2 of the paper."""

    planner: str = field(
        default="rollout_iw",
        metadata={"help": f"{', '.join(SEARCHES)}; package.module:FUNCTION for your own"},
    )
    width: int = field(
        default=1,
        metadata={"help": "1: atoms must be new; 2: pairs of atoms (at most 10,000 features)"},
    )
    budget_seconds: float | None = field(
        default=0.5,
        metadata={"help": "seconds a decision may take; 0.5 unless --budget_nodes is given alone"},
    )
    budget_nodes: int | None = field(
        default=None, metadata={"help": "new nodes, that is simulator steps, a decision may take"}
    )
    discount: float = field(default=0.99, metadata={"help": "gamma, of rewards along a branch"})
    risk_averse: bool = field(
        default=True, metadata={"help": "magnify losses of points and lives when comparing actions"}
    )
    risk_alpha: float = field(
        default=50_000.0, metadata={"help": "alpha, by which negative rewards are multiplied"}
    )
    caching: str = field(
        default="partial",
        metadata={
            "help": "partial: the chosen branch is kept for the next decision; none: it is not"
        },
    )
    action_choice: str = field(
        default=UNIFORM,
        metadata={
            "help": "how rollouts choose among open actions: uniform; or, by the returns of earlier rollouts in the "
            "decision: top_two (Thompson sampling, as Olive has it), thompson, ucb1, maximum"
        },
    )
    choice_returns: str = field(
        default=UTILITY,
        metadata={
            "help": "what rollouts return to --action_choice: utility, rewards as the planner values them, with losses "
            "magnified where it is risk-averse; reward, as the game pays them (Olive, which is not risk-averse)"
        },
    )
    rollouts_in_flight: int = field(
        default=1,
        metadata={
            "help": "rollouts going on at once; 1 is the sequential algorithm. Without this flag commands that plan "
            "against the clock on several cores have 6"
        },
    )
    widen: bool = field(
        default=False,
        metadata={
            "help": "where nothing new is left to find and budget is, go on with a wider notion of novelty: learned "
            "features by true bits, then by --literals, then by --changes, then by pairs of unusual bits in their place"
        },
    )
    max_depth: int = field(
        default=MAX_DEPTH, metadata={"help": "no node lies deeper below the root than this"}
    )
    max_tree_nodes: int | None = field(
        default=None, metadata={"help": "a decision ends when the tree has this many nodes"}
    )
    rules: Rules = field(default_factory=Rules)

    def __post_init__(self) -> None:
        lookup_search(self.planner)
        if self.caching not in CACHING:
            raise unknown("caching", self.caching, CACHING)
        if self.action_choice not in ACTION_CHOICES:
            raise unknown("action_choice", self.action_choice, ACTION_CHOICES)
        if self.action_choice != UNIFORM and self.planner != "rollout_iw":
            raise UserError(
                f"action_choice={self.action_choice} is for the planner rollout_iw, whose rollouts choose actions, not "
                f"for {self.planner}; leave it {UNIFORM}"
            )
        if self.choice_returns not in RETURNS:
            raise unknown("choice_returns", self.choice_returns, RETURNS)
        if self.choice_returns != UTILITY and self.action_choice == UNIFORM:
            raise UserError(
                f"choice_returns={self.choice_returns} changes nothing while action_choice is {UNIFORM}; try top_two"
            )
        if self.width not in (1, 2):
            raise UserError(f"width must be 1 or 2, not {self.width}; wider tables fit no memory")
        if self.budget_seconds is None and self.budget_nodes is None:
            raise UserError("no budget is given; set budget_seconds, budget_nodes or both")
        if self.budget_seconds is not None and not 0 < self.budget_seconds < math.inf:
            raise UserError(f"budget_seconds must be above 0, not {self.budget_seconds}; try 0.5")
        if self.budget_nodes is not None and self.budget_nodes < 1:
            raise UserError(f"budget_nodes must be at least 1, not {self.budget_nodes}; try 150")
        if not 0 < self.discount <= 1:
            raise UserError(f"discount must be above 0 and at most 1, not {self.discount}")
        if not 1 <= self.risk_alpha < math.inf:
            raise UserError(f"risk_alpha must be at least 1, not {self.risk_alpha}")
        if not 1 <= self.rollouts_in_flight <= 1000:
            raise UserError(
                f"rollouts_in_flight must be from 1 to 1,000, not {self.rollouts_in_flight}"
            )
        if self.widen and (self.planner != "rollout_iw" or self.width != 1):
            raise UserError("widen is for the planner rollout_iw with width 1, where it begins")
        if not 1 <= self.max_depth <= MAX_DEPTH:
            raise UserError(f"max_depth must be from 1 to {MAX_DEPTH:,}, not {self.max_depth}")
        if self.max_tree_nodes is not None and self.max_tree_nodes < 2:
            raise UserError(f"max_tree_nodes must be at least 2, not {self.max_tree_nodes}")
        self.rules.check(self.planner, self.search.looks_ahead, self.widen, self.risk_averse)

    @property
    def search(self) -> SearchEntry:
        """What is known about the search that `planner` names."""
        return lookup_search(self.planner)

    @property
    def leaf_alpha(self) -> float:
        """By what points lost at a leaf are multiplied in the back-up, besides risk aversion."""
        return self.risk_alpha if self.rules.losses == PUBLISHED and not self.risk_averse else 1.0
