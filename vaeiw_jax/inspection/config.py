"""What to look at."""

from dataclasses import dataclass, field
from typing import Any

from vaeiw_jax import configs
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.features.config import UNUSUAL


def _as_played(name: str) -> Any:
    """A setting of the features that is the run's unless it is given."""
    (entry,) = (entry for entry, _ in configs.fields(FeaturesConfig) if entry.name == name)
    unless = f"unless given, as the run was played, or else {entry.default}, as in the paper"
    return field(default=None, metadata={"help": f"{entry.metadata['help']}; {unless}"})


@dataclass(frozen=True)
class InspectConfig:
    """Which model, on which screens, and which decision of which recorded run."""

    checkpoint: str | None = field(
        default=None,
        metadata={
            "help": "the model: a folder that launch.train wrote, or the name of a shipped one; unless given, the "
            "shipped one that the run was played with"
        },
    )
    screens: str | None = field(
        default=None,
        metadata={"help": "screen store to look at; unless given, a short game is played"},
    )
    game: str | None = field(
        default=None,
        metadata={"help": "the game to play for screens; unless given, the run's or the model's"},
    )
    num_screens: int = field(default=400, metadata={"help": "how many screens to look at"})
    shown_screens: int = field(default=6, metadata={"help": "how many of them to show one by one"})
    shown_features: int = field(
        default=6,
        metadata={
            "help": "how many features to show of each kind: most frequent, least frequent, most flipping"
        },
    )
    alike_pixels: int = field(
        default=100,
        metadata={"help": "screens that differ in at most this many pixels count as looking alike"},
    )
    threshold: float | None = _as_played("threshold")
    sample_features: bool | None = _as_played("sample_features")
    quantisation_bits: int | None = _as_played("quantisation_bits")
    noise: bool | None = _as_played("noise")
    literals: str | None = _as_played("literals")
    usual: str | None = _as_played("usual")
    changes: bool | None = _as_played("changes")
    seed: int = field(default=0, metadata={"help": "of the game played for screens"})
    run: str | None = field(
        default=None,
        metadata={"help": "work directory of launch.play: a decision of a run in it is shown too"},
    )
    run_game: str | None = field(
        default=None, metadata={"help": "the run's game, if its work directory has more than one"}
    )
    run_seed: int = field(default=0, metadata={"help": "the run's seed"})
    decision: int | None = field(
        default=None,
        metadata={
            "help": "which decision of the run, from 0; unless given, the one of the first 50 that earned most"
        },
    )
    fresh_tree: bool = field(
        default=False,
        metadata={
            "help": "plan the decision anew from its recorded state: quicker than playing the run again up to it"
        },
    )

    def __post_init__(self) -> None:
        self.features()  # which checks threshold and bits
        if self.num_screens < 2:
            raise UserError(f"num_screens must be at least 2, not {self.num_screens}; try 400")
        for name in ("shown_screens", "shown_features"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}; try 6")
        for name in ("alike_pixels", "seed", "run_seed"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must be 0 or more, not {getattr(self, name)}")
        if self.decision is not None and self.decision < 0:
            raise UserError(f"decision must be 0 or more, not {self.decision}; they count from 0")
        if not self.checkpoint and not self.run:
            raise UserError(
                "--checkpoint is missing: a model to look at, or --run of a game that was played with a shipped one"
            )
        if self.screens and self.game:
            raise UserError("screens come from a store or from a game; give --screens or --game")
        for name in ("run_game", "decision", "fresh_tree"):
            if not self.run and getattr(self, name) not in (None, False):
                raise UserError(f"--{name} is of a recorded run; say which with --run=WORKDIR")

    def features(
        self, directory: object = "", played: FeaturesConfig | None = None
    ) -> FeaturesConfig:
        """The features of the model in `directory`, as a planner is given them.

        Args:
          directory: of the model.
          played: those of the recorded run, if it was played with the model.
        """
        settings = configs.settings(played or FeaturesConfig())
        given = {name: value for name in _OF_FEATURES if (value := getattr(self, name)) is not None}
        asked = {name: settings[name] for name in _OF_FEATURES} | given
        if asked["literals"] != UNUSUAL and self.usual is None:
            del asked["usual"]  # which was for the run's atoms
        return FeaturesConfig(f"vae:{directory}", **asked)


_OF_FEATURES = sorted(configs.names(InspectConfig) & configs.names(FeaturesConfig))
