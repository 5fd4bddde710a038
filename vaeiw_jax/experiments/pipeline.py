"""From a game to learned play: collect screens, train a VAE on them, play with it; and again, with what was learned.

Each step is a command of its own that one might as well type, and that goes on where it was after an interruption.

    screens/<i>   the screen store of iteration i; the first is collected with B-PROST, those after it with the last VAE
    vaes/<i>      the training run; those after the first start from the last VAE
    runs/<i>      the games played with it, and their films
    inside/<i>    what launch.inspect saw
    report.html   scores by iteration, learning curves, reconstructions, films (see `pipeline_report.py`)
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vaeiw_jax import configs, durable, workdirs
from vaeiw_jax.configs import from_settings
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import estimates
from vaeiw_jax.playing import screen_store
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import Run
from vaeiw_jax.vae.steps import TrainConfig

SEEDS_APART = 1000
"""Iterations collect with seeds that far apart, and away from those they play with."""


@dataclass(frozen=True)
class PipelineConfig:
    """What the steps have not by themselves. What they are told besides is in `Settings`."""

    iterations: int = field(
        default=1,
        metadata={
            "help": "how often to collect, train and play; from the second on, frames come from the last VAE"
        },
    )
    runs: int = field(default=10, metadata={"help": "games to play in each iteration"})
    collect_nodes: int | None = field(
        default=None,
        metadata={
            "help": "nodes a decision while collecting (default: the budget that games are played with)"
        },
    )

    def __post_init__(self) -> None:
        for name in ("iterations", "runs"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if self.collect_nodes is not None and self.collect_nodes < 1:
            raise UserError(f"collect_nodes must be 1 or more, not {self.collect_nodes}")


@dataclass(frozen=True)
class Settings:
    """What each step is told, by flag name. Empty: the paper's settings."""

    collect: Mapping[str, Any] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    play: Mapping[str, Any] = field(default_factory=dict)


PRESETS: dict[str, tuple[PipelineConfig, Settings]] = {
    "paper": (PipelineConfig(), Settings()),
    "laptop": (
        PipelineConfig(runs=3, collect_nodes=150),
        Settings(
            collect={"num_screens": 5000},
            train={
                "epochs": 4,
                "batch_size": 8,
                "learning_rate": 1e-3,
                "learning_rate_end": 1e-5,
                "picture_every": 1,
            },
            play={"max_actions": 300},
        ),
    ),
}


@dataclass(frozen=True)
class Step:
    """A command, and whether it is done."""

    title: str
    module: str
    flags: Mapping[str, Any]
    done: bool
    num_screens: int = 0  # that it collects or trains on

    @property
    def arguments(self) -> list[str]:
        return ["-m", self.module, *(_flag(name, value) for name, value in self.flags.items())]


def _flag(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no{name}"
    return f"--{name}={value}"


def told(preset: Settings, given: Mapping[str, Any]) -> Settings:
    """The preset's settings, with those a user gave in their place wherever a step has a flag for them."""

    def merged(settings: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
        return {**settings} | {name: value for name, value in given.items() if name in names}

    both = {"protocol", "emulators"}  # flags of the commands that play, and of no config
    playing_only = {"max_actions", "max_emulator_frames", "threshold", "sample_features"}
    # A background is masked for hand-made features only.
    playing = configs.names(EpisodeConfig) - {"game", "features", "background_mask"}
    return Settings(
        collect=merged(
            preset.collect, configs.names(CollectConfig) - {"game"} - playing_only | both
        ),
        train=merged(preset.train, configs.names(TrainConfig) - {"screens", "start_from"}),
        play=merged(preset.play, playing | both),
    )


def iteration(
    game: str, number: int, config: PipelineConfig, settings: Settings, seed: int, workdir: Path
) -> list[Step]:
    """The steps of an iteration, counted from 1."""
    return [
        _collect(game, number, config, settings, seed, workdir),
        _train(number, settings, seed, workdir),
        _play(game, number, config, settings, seed, workdir),
        _inspect(number, seed, workdir),
    ]


def _collect(
    game: str, number: int, config: PipelineConfig, settings: Settings, seed: int, workdir: Path
) -> Step:
    directory = workdir / "screens" / str(number)
    seed += SEEDS_APART * number
    flags: dict[str, Any] = {"game": game, "workdir": directory, "seed": seed, **settings.collect}
    if number > 1:
        flags["features"] = f"vae:{_vae(workdir, number - 1)}"
        flags.pop("background_mask", None)
    if config.collect_nodes:
        flags |= {"budget_nodes": config.collect_nodes}
        flags.pop("budget_seconds", None)
    wanted = flags.get("num_screens", CollectConfig.num_screens)
    done = (directory / "collection.json").exists() and screen_store.count(directory) >= wanted
    what = flags.get("features", "bprost") if number == 1 else f"the VAE of iteration {number - 1}"
    title = f"collect {wanted:,} screens with {what}"
    return Step(title, "launch.collect", flags, done, wanted)


def _train(number: int, settings: Settings, seed: int, workdir: Path) -> Step:
    directory = _vae(workdir, number)
    flags = {"screens": workdir / "screens" / str(number), "workdir": directory, "seed": seed}
    if number > 1:
        flags["start_from"] = _vae(workdir, number - 1) / "model"
    flags |= settings.train
    path, epochs = directory / "trained.json", flags.get("epochs", TrainConfig.epochs)
    done = path.exists() and durable.read_json(path)["config"]["epochs"] >= epochs
    title = f"train a VAE on them for {epochs} epochs"
    num_screens = settings.collect.get("num_screens", CollectConfig.num_screens)
    return Step(title, "launch.train", flags, done, num_screens)


def _play(
    game: str, number: int, config: PipelineConfig, settings: Settings, seed: int, workdir: Path
) -> Step:
    directory = workdir / "runs" / str(number)
    flags = {"game": game, "features": f"vae:{_vae(workdir, number)}", "workdir": directory}
    flags |= {"seed": seed, "runs": config.runs, "video": True, **settings.play}
    played = [Run(directory, game, seed + i) for i in range(config.runs)]
    done = all(run.record.exists() and run.video.exists() for run in played)
    games = "a game" if config.runs == 1 else f"{config.runs} games"
    return Step(f"play {games} with it", "launch.play", flags, done)


def _inspect(number: int, seed: int, workdir: Path) -> Step:
    directory = workdir / "inside" / str(number)
    flags = {
        "checkpoint": _vae(workdir, number),
        "screens": workdir / "screens" / str(number),
        "run": workdir / "runs" / str(number),
        "run_seed": seed,
        "fresh_tree": True,
        "workdir": directory,
    }
    done = (directory / "index.html").exists()
    return Step("look inside", "launch.inspect", flags, done)


def _vae(workdir: Path, number: int) -> Path:
    return workdir / "vaes" / str(number)


def records(game: str, number: int, workdir: Path) -> list[dict[str, Any]]:
    """Of the finished games of an iteration."""
    paths = sorted((workdir / "runs" / str(number) / "episodes" / game).glob("seed-*[0-9].json"))
    return [durable.read_json(path) for path in paths]


def claim(game: str, settings: Settings, workdir: Path) -> None:
    """Marks the work directory as this game's with these settings, or refuses one that is another's."""
    flat = {
        f"{step}.{name}": value
        for step, told in dataclasses.asdict(settings).items()
        for name, value in told.items()
    }
    workdirs.claim(workdir, {"game": game, **flat})


def at_most(steps: Iterable[Step]) -> float:
    """The seconds that the steps take if every game goes on to its limit."""
    return sum(_at_most(step) for step in steps if not step.done)


def _at_most(step: Step) -> float:
    flags = dict(step.flags)
    if "budget_nodes" in flags:
        flags.setdefault("budget_seconds", None)
    match step.module:
        case "launch.collect":
            return estimates.collecting(from_settings(CollectConfig, flags))
        case "launch.train":
            config = from_settings(TrainConfig, flags)
            return estimates.training(config, step.num_screens, usable_cores())
        case "launch.play":
            return flags["runs"] * estimates.playing(from_settings(EpisodeConfig, flags))
    return estimates.START_SECONDS
