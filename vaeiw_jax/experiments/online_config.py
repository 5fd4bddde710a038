"""How an encoder learns while it plays: the settings of `online.learn`, and what of them makes no sense."""

from dataclasses import dataclass, field
from typing import Any

from vaeiw_jax import configs
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.experiments.pipeline import check_features
from vaeiw_jax.features.config import BACKGROUNDS
from vaeiw_jax.playing import protocols
from vaeiw_jax.playing.runs import PlayConfig
from vaeiw_jax.vae import sampling
from vaeiw_jax.vae.config import CRITERIA, RANDOM, TrainConfig

Line = dict[str, Any]
"""A round of `online.learn`: a value for each of `online.COLUMNS`, None where there is none."""

CONTINUE, ANEW = "continue", "anew"
FIRST_FEATURES = "bprost"
"""What the first game is played with where no model is given to start from."""

NOT_SETTINGS = ("screens", "leave_out", "features", *BACKGROUNDS, "policy", "policy_learns")
"""Settings of the configs inside that follow from the round, or make no sense with features that change."""

_PLAY = {"features": "vae", "budget_nodes": 100, "budget_seconds": None, "max_actions": 1200}
_TRAIN = {
    "screens": "",
    "epochs": 3,
    "batch_size": 8,
    "learning_rate": 1e-3,
    "learning_rate_end": 1e-5,
    "keep": 1,
}
"""Ours: training of minutes on a CPU, where Olive's 100 epochs of batch 64 take days."""


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class OnlineConfig:
    """How to play and learn in turn (Ayton and Asai, ICAPS 2022); `configure` makes one."""

    play: PlayConfig = field(metadata={"defaults": _PLAY})
    train: TrainConfig = field(metadata={"defaults": _TRAIN})
    simulator_calls: int = _setting(
        100_000,
        "learn until the games have made this many simulator calls, that is new nodes (Olive's)",
    )
    episode_calls: int = _setting(
        10_000,
        "a game to learn from ends after this many simulator calls at the latest, so that there are several (ours); "
        "0: games go on to their end, which may be the end of --simulator_calls (Olive's, but for its first game, "
        "which has a thirtieth)",
    )
    added_screens: int = _setting(500, "screens added to the data set after a game (Olive's)")
    max_screens: int = _setting(
        15_000,
        "the data set is full with this many; from then on nothing is added (Olive's number)",
    )
    choose_by: str = _setting(
        "elbo",
        "which screens are added: those with the largest negative ELBO (Olive's), loss (the same with --beta), entropy "
        "of the code, reconstruction error; or random ones. Those of the first game are random if no VAE played it",
    )
    candidates: int = _setting(
        0,
        "choose among this many of a game's distinct screens, drawn at random, to spend less time on measuring; 0: "
        "among all (Olive's)",
    )
    relearn: str = _setting(
        CONTINUE,
        "continue: training goes on from the last VAE (Olive's option); anew: every training begins with --start_from, "
        "or with random weights (Olive's default; wants more --epochs)",
    )
    evaluations: int = _setting(3, "games played with the last VAE at the end (Olive: 10)")

    def __post_init__(self) -> None:
        for name in ("simulator_calls", "added_screens", "max_screens"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in ("episode_calls", "candidates", "evaluations"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must be 0 or more, not {getattr(self, name)}")
        if self.choose_by not in CRITERIA:
            raise unknown("choice of screens", self.choose_by, CRITERIA)
        if self.relearn not in (CONTINUE, ANEW):
            raise unknown("way to relearn", self.relearn, (CONTINUE, ANEW))
        if self.candidates and self.choose_by == RANDOM:
            raise UserError("candidates change nothing with --choose_by=random; leave them out")
        if 0 < self.candidates < self.added_screens:
            raise UserError(
                f"candidates must be at least added_screens, {self.added_screens}, not {self.candidates}"
            )
        self._check_playing()
        self._check_training()

    def _check_playing(self) -> None:
        planner = self.play.episode.planner
        if not planner.search.looks_ahead:
            raise UserError(f"the planner {planner.planner} generates no screens to learn from")
        if self.play.episode.policy.policy is not None:
            raise UserError(
                "a policy that was learned on other features makes no sense; leave it out"
            )
        check_features(self.train.model, self.play.episode)
        if planner.width > 1 and not self.train.start_from:
            raise UserError(
                f"width={planner.width} is too much for the first game, which is played with B-PROST and its many "
                "features; give --start_from=universal, or --width=1"
            )

    def _check_training(self) -> None:
        if not self.train.epochs:
            raise UserError("epochs=0 trains nothing; give 1 or more")
        if self.train.screens or self.train.leave_out:
            raise UserError("screens and leave_out are not for online learning, which has its own")
        if self.train.seed != self.seed:
            raise UserError(
                f"one seed is for all: train has seed={self.train.seed}, play {self.seed}"
            )
        if not self.can_train(self.max_screens):
            raise UserError(
                f"max_screens={self.max_screens} are too few for a batch of {self.train.batch_size}, "
                "some being kept for validation; take more, or a smaller --batch_size"
            )

    def can_train(self, num_screens: int) -> bool:
        """Whether this many screens fill a batch, those for validation aside."""
        if num_screens < 2:
            return False
        (training,), _ = sampling.split([num_screens], self.train.validation_share, self.seed)
        return len(training) >= self.train.batch_size

    @property
    def game(self) -> str:
        return self.play.episode.atari.game

    @property
    def seed(self) -> int:
        return self.play.seed


SETTINGS = configs.names(OnlineConfig) - set(NOT_SETTINGS)


def configure(game: str, protocol: str = protocols.DEFAULT, **given: Any) -> OnlineConfig:
    """The config with settings given by flag name; a budget in seconds that is given alone is the only one.

    Args:
      game: in any spelling.
      protocol: how to play, one of `episodes.PROTOCOLS`.
      **given: settings.
    """
    for name in given:
        if name not in SETTINGS:
            raise unknown("setting of online learning", name, SETTINGS)
    in_seconds = given.get("budget_seconds") is not None
    settings = {
        "game": game,
        "features": _PLAY["features"],
        "screens": "",
        "budget_nodes": None if in_seconds else _PLAY["budget_nodes"],
        **given,
    }
    complete = protocols.complete(OnlineConfig, settings, protocol)
    return configs.from_settings(OnlineConfig, complete, partial=True)
