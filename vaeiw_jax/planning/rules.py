"""Rules by which other programs plan, each a setting, off by default.

Most are of the program of Bandres, Bonet and Geffner (AAAI 2018), whose RolloutIW scores the paper prints; `losses` is
of the planner that the authors of VAE-IW published.
"""

from dataclasses import dataclass, field, fields

from vaeiw_jax.errors import UserError, unknown

ZERO_TIES = UNIFORM, LONGEST = "uniform", "longest"
LOSSES = STEP, PUBLISHED = "step", "published"


@dataclass(frozen=True)
class Rules:
    """What a planner does otherwise."""

    untried_as_zero: bool = field(
        default=False,
        metadata={
            "help": "an action never tried, of a node where another was, promises 0 and takes part in the maximum"
        },
    )
    zero_ties: str = field(
        default=UNIFORM,
        metadata={
            "help": "if 0 is the best that actions promise: uniform: any of those that promise it; longest: one of "
            "those with the longest branch below"
        },
    )
    follow_repeats: int | None = field(
        default=None,
        metadata={
            "help": "rollout_iw: a node with exactly its parent's atoms is not tested for novelty, but continued with "
            "the same action only, for at most this many steps in a row; then it is solved"
        },
    )
    rule_out_known: bool = field(
        default=False,
        metadata={
            "help": "rollout_iw: a node met again that is no longer novel counts as minus infinity in this decision"
        },
    )
    terminals_write: bool = field(
        default=True,
        metadata={"help": "whether the atoms of states where the game is over count as seen"},
    )
    novelty_subtables: bool = field(
        default=False,
        metadata={
            "help": "states are new or not among those with a path reward of the same power of two"
        },
    )
    branch_actions: int = field(
        default=1,
        metadata={
            "help": "actions of the chosen branch that are played, as far as it goes, before planning again"
        },
    )
    penalise_game_over: bool = field(
        default=False,
        metadata={"help": "risk-averse: a game that ends with lives left counts as a lost life"},
    )
    losses: str = field(
        default=STEP,
        metadata={
            "help": "step: a life counts as lost on the step that loses it; published: at every node with fewer lives "
            "than the root, and without --risk_averse points lost at leaves are still multiplied by --risk_alpha"
        },
    )

    def __post_init__(self) -> None:
        if self.zero_ties not in ZERO_TIES:
            raise unknown("way to break ties at zero", self.zero_ties, ZERO_TIES)
        if self.losses not in LOSSES:
            raise unknown("way to count losses", self.losses, LOSSES)
        if self.follow_repeats is not None and self.follow_repeats < 0:
            raise UserError(f"follow_repeats must be 0 or more, not {self.follow_repeats}")
        if self.branch_actions < 1:
            raise UserError(f"branch_actions must be at least 1, not {self.branch_actions}")

    def check(self, planner: str, looks_ahead: bool, widen: bool, risk_averse: bool) -> None:
        """Refuses rules that would change nothing, or make no sense, for a planner."""
        for name in self.changed:
            if not looks_ahead:
                raise UserError(
                    f"{name} changes nothing for the planner {planner}, which does not look ahead; leave it out"
                )
            if name in OF_ROLLOUTS and planner != "rollout_iw":
                raise UserError(
                    f"{name} is for the planner rollout_iw, not {planner}; leave it out"
                )
        if self.follow_repeats is not None and widen:
            raise UserError(
                "follow_repeats and widen cannot be combined: whether atoms repeat depends on which count; choose one"
            )
        if self.penalise_game_over and not risk_averse:
            raise UserError("penalise_game_over changes nothing without risk_averse; leave it out")

    @property
    def changed(self) -> list[str]:
        """The names of the rules that are not the paper's."""
        return [rule.name for rule in fields(self) if getattr(self, rule.name) != rule.default]

    @property
    def revalues(self) -> bool:
        """Whether what a kept node is worth depends on the decision."""
        return self.losses == PUBLISHED


OF_ROLLOUTS = ("follow_repeats", "rule_out_known")
"""The rules that are about rollouts."""
