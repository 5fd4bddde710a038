"""What to measure, and for how long."""

from dataclasses import dataclass, field

from vaeiw_jax import atari
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.vae.config import ModelConfig

GAMES = ("Pong", "Breakout", "MsPacman", "SpaceInvaders", "Alien", "Seaquest", "Qbert", "Freeway")
PLANNER_PARTS = ("rates", "symbols", "searches", "bprost", "growth", "memory", "start")


@dataclass(frozen=True)
class BenchmarkConfig:
    """All suites' settings. The defaults are those of the tables in the documentation."""

    games: str = field(
        default=",".join(GAMES), metadata={"help": "planner, features, scaling: which games"}
    )
    parts: str = field(
        default=",".join(PLANNER_PARTS), metadata={"help": "planner: which of its parts"}
    )
    opening: int = field(
        default=30,
        metadata={"help": "planner, scaling: small decisions before anything is measured"},
    )
    decisions: int = field(
        default=20, metadata={"help": "planner, features, scaling: decisions per game and method"}
    )
    seconds: float = field(
        default=0.5, metadata={"help": "planner, scaling: seconds a decision may take"}
    )
    long_seconds: float = field(
        default=32.0, metadata={"help": "planner, scaling: seconds of a long decision"}
    )
    memory_decisions: int = field(
        default=1000, metadata={"help": "planner: decisions after which memory is measured last"}
    )
    memory_nodes: int = field(
        default=200, metadata={"help": "planner: new nodes per decision while memory is measured"}
    )
    in_flight: str = field(
        default="1,2,4,8,16", metadata={"help": "scaling: numbers of rollouts in flight"}
    )
    repeats: int = field(default=3, metadata={"help": "train: steps that are timed"})
    batch_size: int = field(default=64, metadata={"help": "train: frames per step"})
    model: ModelConfig = field(default_factory=ModelConfig)

    def __post_init__(self) -> None:
        names = [atari.AtariConfig(game).game for game in self.games.split(",")]
        object.__setattr__(self, "games", ",".join(names))
        for part in self.parts.split(","):
            if part not in PLANNER_PARTS:
                raise unknown("part", part, PLANNER_PARTS)
        if not all(number.isdecimal() and int(number) for number in self.in_flight.split(",")):
            raise UserError(f"in_flight must be numbers such as 1,2,4, not {self.in_flight!r}")
        for name in (
            "opening",
            "decisions",
            "memory_decisions",
            "memory_nodes",
            "repeats",
            "batch_size",
        ):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in ("seconds", "long_seconds"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} must be above 0, not {getattr(self, name)}")

    @property
    def numbers_in_flight(self) -> list[int]:
        return [int(number) for number in self.in_flight.split(",")]

    @property
    def game_names(self) -> list[str]:
        return self.games.split(",")
