"""What a policy is, and how it learns."""

import dataclasses
import math
from dataclasses import dataclass, field

from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.policies.targets import BEST, TARGETS

_OF_LEARNING = (
    *("policy_target", "policy_temperature", "policy_steps", "policy_batch_size", "policy_replay"),
    *("policy_learning_rate", "policy_weight_decay", "policy_clip_norm"),
)


@dataclass(frozen=True)
class PolicyConfig:
    """A policy over atoms. Defaults: pi-IW (Junyent et al., ICAPS 2019), but for the network."""

    policy_share: float = field(
        default=0.0,
        metadata={
            "help": "the share of the choices in rollouts, from 0 to 1, that a policy on atoms makes; it learns from "
            "the planner's decisions"
        },
    )
    policy: str | None = field(
        default=None,
        metadata={"help": "the directory of a run, or of its policy, to start from"},
    )
    policy_learns: bool = field(
        default=True, metadata={"help": "whether the policy goes on learning"}
    )
    policy_hidden: int = field(
        default=0, metadata={"help": "units of the policy's hidden layer; 0: it is linear in atoms"}
    )
    policy_value: bool = field(
        default=False,
        metadata={
            "help": "learn the return of the best action as well, which then stands in at leaves where the budget ended"
        },
    )
    policy_target: str = field(
        default="softmax",
        metadata={
            "help": "what the policy learns: softmax of the actions' returns, rank: softmax of their ranks, scaled to "
            "[0, 1], best: the actions of the highest return"
        },
    )
    policy_temperature: float = field(
        default=1.0, metadata={"help": "by which returns, or ranks, are divided in that softmax"}
    )
    policy_steps: int = field(default=4, metadata={"help": "gradient steps after a decision"})
    policy_batch_size: int = field(
        default=32, metadata={"help": "decisions in a step, of those kept; with fewer it waits"}
    )
    policy_replay: int = field(
        default=1000, metadata={"help": "how many of the last decisions are kept to learn from"}
    )
    policy_learning_rate: float = field(default=7e-4, metadata={"help": "of RMSProp"})
    policy_weight_decay: float = field(
        default=1e-3,
        metadata={"help": "the share of a weight, times the learning rate, lost a step"},
    )
    policy_clip_norm: float = field(
        default=40.0, metadata={"help": "gradients of a larger norm are scaled down to it"}
    )

    def __post_init__(self) -> None:
        if not 0 <= self.policy_share <= 1:
            raise UserError(f"policy_share must be from 0 to 1, not {self.policy_share}; try 0.5")
        if self.policy_target not in TARGETS:
            raise unknown("policy_target", self.policy_target, TARGETS)
        self._check_numbers()
        if self.policy_share == 0:
            names = [entry.name for entry in dataclasses.fields(self)]
            self._refuse_changed(names, "changes nothing while policy_share is 0; try 0.5")
        if not self.policy_learns:
            if self.policy is None:
                raise UserError(
                    "policy_learns=False needs a policy that was learned before; give its directory as policy"
                )
            self._refuse_changed(_OF_LEARNING, "changes nothing where policy_learns is off")
        if self.policy_target == BEST:
            self._refuse_changed(
                ["policy_temperature"], f"changes nothing with policy_target={BEST}"
            )

    def _check_numbers(self) -> None:
        for name in ("policy_steps", "policy_batch_size", "policy_replay"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("policy_temperature", "policy_learning_rate", "policy_clip_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")
        if not 0 <= self.policy_weight_decay < math.inf:
            raise UserError(
                f"policy_weight_decay must be 0 or more, not {self.policy_weight_decay}"
            )
        if not 0 <= self.policy_hidden <= 1024:
            raise UserError(f"policy_hidden must be from 0 to 1,024, not {self.policy_hidden}")
        if self.policy_batch_size > self.policy_replay:
            raise UserError(
                f"policy_batch_size={self.policy_batch_size} decisions are never kept with policy_replay="
                f"{self.policy_replay}; make it the larger of the two"
            )

    def _refuse_changed(self, names: list[str] | tuple[str, ...], reason: str) -> None:
        for entry in dataclasses.fields(self):
            if entry.name in names and getattr(self, entry.name) != entry.default:
                raise UserError(f"{entry.name}={getattr(self, entry.name)} {reason}")
