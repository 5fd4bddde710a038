"""From a game to learned play: collect screens, train a VAE on them, play with it; and again, with what was learned.

    from vaeiw_jax.experiments import pipeline

    pipeline.run(pipeline.configure("Pong", preset="laptop"), Path("runs/pong"))

It is a chain of jobs, each of which goes on where it was after an interruption. The work directory:

    screens/<i>   the screen store of iteration i; the first is collected with B-PROST, those after it with the last VAE
    vaes/<i>      the training run; the first starts from --start_from, those after it from the last VAE
    runs/<i>      the games played with it
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vaeiw_jax import configs, workdirs
from vaeiw_jax import records as job_records
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.experiments import estimates
from vaeiw_jax.experiments.jobs import COLLECT, PLAY, TRAIN, Job, Record
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.features.config import BACKGROUNDS, OF_LEARNED_BITS
from vaeiw_jax.models import UNIVERSAL
from vaeiw_jax.planning.novelty import novelty_table
from vaeiw_jax.playing import protocols, runs
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig
from vaeiw_jax.progress import Interrupted, Tell, never, silent
from vaeiw_jax.vae import codes, sampling
from vaeiw_jax.vae import config as vae_config
from vaeiw_jax.vae.config import ModelConfig, TrainConfig

SEEDS_APART = 1000
"""Iterations collect with seeds that far apart, and away from those they play with."""

OWN_BY_ITERATION = ("screens", "leave_out")
"""Settings of training that each iteration has of its own; `start_from` is that of the first."""


@dataclass(frozen=True)
class PipelineConfig:
    """How the jobs of each iteration are done; `configure` makes one.

    Which screens are trained on, which VAE is begun with and which one plays follows from the iteration.
    """

    collect: CollectConfig
    train: TrainConfig
    play: PlayConfig
    iterations: int = field(
        default=1,
        metadata={
            "help": "how often to collect, train and play; from the second on, screens come from the last VAE"
        },
    )
    runs: int = field(default=10, metadata={"help": "games to play in each iteration"})

    def __post_init__(self) -> None:
        for name in ("iterations", "runs"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be 1 or more, not {getattr(self, name)}")
        require_a_batch(self.train, self.collect.num_screens)
        check_features(self.train.model, self.play.episode)

    @property
    def game(self) -> str:
        return self.play.episode.atari.game


def require_a_batch(train: TrainConfig, num_screens: int) -> None:
    """Refuses to collect fewer screens than a batch has, those for validation aside."""
    (training,), _ = sampling.split([num_screens], train.validation_share, train.seed)
    train.steps_per_epoch(len(training))


def check_features(model: ModelConfig, episode: EpisodeConfig) -> None:
    """Refuses what playing with a VAE that is yet to be trained would refuse, hours later."""
    for name in ("sample_features", "noise"):
        if getattr(episode.features, name) and model.latent_kind != "bernoulli":
            raise UserError(
                f"{name} needs Bernoulli latents, and --latent_kind={model.latent_kind}"
            )
    bits = codes.num_features(model, episode.features.quantisation_bits)
    # Refuses more features than a table of pairs has room for.
    novelty_table(episode.features.num_atoms(bits), episode.planner.width)
    if episode.planner.widen:
        episode.features.require_wider_notion()


PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {},
    "laptop": {
        "pipeline": {"runs": 3, "collect_nodes": 100},
        "collect": {"num_screens": 1500},
        "train": {
            "start_from": UNIVERSAL,
            "epochs": 3,
            "batch_size": 8,
            "learning_rate": 3e-4,
            "learning_rate_end": 1e-5,
            "picture_every": 1,
        },
        "play": {"max_actions": 200},
    },
}
"""Settings by flag name, for the pipeline and for each kind of job."""
DEFAULT_PRESET = "paper"


def configure(
    game: str,
    preset: str = DEFAULT_PRESET,
    protocol: str = protocols.DEFAULT,
    collect_nodes: int | None = None,
    **given: Any,
) -> PipelineConfig:
    """The config of a pipeline: a preset, changed by settings given by flag name.

    Args:
      game: in any spelling.
      preset: `paper`: as published; `laptop`: from the universal VAE, with a tenth of the screens.
      protocol: how to play, one of `episodes.PROTOCOLS`.
      collect_nodes: nodes a decision while collecting; by default the budget that games are played with.
      **given: settings, for every kind of job that has them.
    """
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    _check_names(given)
    chosen = PRESETS[preset]
    own = chosen.get("pipeline", {})
    nodes = collect_nodes if collect_nodes is not None else own.get("collect_nodes")

    def merged(kind: str, names: set[str]) -> dict[str, Any]:
        mine = {name: value for name, value in given.items() if name in names}
        return {**chosen.get(kind, {}), **mine}

    collecting = merged("collect", _COLLECT_SETTINGS) | {"game": game}
    if nodes is not None:
        collecting |= {"budget_nodes": nodes}
        collecting.pop("budget_seconds", None)
    playing = merged("play", _PLAY_SETTINGS) | {"game": game, "features": "vae"}
    return PipelineConfig(
        _from(CollectConfig, protocols.complete(CollectConfig, collecting, protocol)),
        _from(TrainConfig, merged("train", _TRAIN_SETTINGS) | {"screens": ""}),
        _from(PlayConfig, protocols.complete(PlayConfig, playing, protocol)),
        **{name: value for name, value in (own | given).items() if name in ("iterations", "runs")},
    )


_ONLY_OF_GAMES = {"max_actions", "max_emulator_frames", "threshold", "sample_features"}
"""Settings that are for the games played, not for those that screens are collected in."""
_OF_LEARNED_ATOMS = {*OF_LEARNED_BITS, "widen"}
"""Settings that hand-made features, with which the first screens are collected, have no use for."""
_COLLECT_SETTINGS = configs.names(CollectConfig) - _ONLY_OF_GAMES - _OF_LEARNED_ATOMS - {"game"}
_TRAIN_SETTINGS = configs.names(TrainConfig) - set(OWN_BY_ITERATION)
# A background matters to hand-made features only, with which the first screens are collected.
_PLAY_SETTINGS = configs.names(PlayConfig) - {"game", "features", *BACKGROUNDS}


def _check_names(given: Mapping[str, Any]) -> None:
    known = _COLLECT_SETTINGS | _TRAIN_SETTINGS | _PLAY_SETTINGS | {"iterations", "runs"}
    for name in given:
        if name not in known:
            raise unknown("setting of a pipeline", name, known)


def _from(config_class: type[Any], settings: Mapping[str, Any]) -> Any:
    return configs.from_settings(config_class, settings, partial=True)


def iterations(config: PipelineConfig, workdir: Path) -> list[list[Job]]:
    """The jobs of each iteration, in order."""
    return [_iteration(config, number, workdir) for number in range(1, config.iterations + 1)]


def _iteration(config: PipelineConfig, number: int, workdir: Path) -> list[Job]:
    vae = _vae(workdir, number)
    collect_config = dataclasses.replace(
        config.collect, seed=config.collect.seed + SEEDS_APART * number
    )
    train_config = dataclasses.replace(config.train, screens=str(workdir / "screens" / f"{number}"))
    if number > 1:
        last = _vae(workdir, number - 1)
        played_with_it = _with_atoms_of(
            config.play.episode, _with_vae(collect_config.episode, last)
        )
        collect_config = dataclasses.replace(collect_config, episode=played_with_it)
        train_config = dataclasses.replace(train_config, start_from=str(last / "model"))
    collect = Job(COLLECT, f"screens/{number}", workdir, config.game, collect_config)
    train = Job(TRAIN, f"vaes/{number}", workdir, config.game, train_config, (collect.name,))
    episode = _with_vae(config.play.episode, vae)
    seeds = range(config.play.seed, config.play.seed + config.runs)
    return [
        collect,
        train,
        *(
            Job(
                PLAY,
                f"runs/{number}/seed-{seed}",
                workdir,
                config.game,
                dataclasses.replace(config.play, episode=episode, seed=seed),
                (train.name,),
            )
            for seed in seeds
        ),
    ]


def _with_vae(episode: EpisodeConfig, vae: Path) -> EpisodeConfig:
    without: dict[str, Any] = dict.fromkeys(BACKGROUNDS, False)
    seen = dataclasses.replace(episode.features, features=f"vae:{vae}", **without)
    return dataclasses.replace(episode, features=seen)


def _with_atoms_of(played: EpisodeConfig, episode: EpisodeConfig) -> EpisodeConfig:
    """An episode with learned features, of which the same is an atom as where games are played."""
    of_features = _OF_LEARNED_ATOMS & configs.names(FeaturesConfig)
    same = {name: getattr(played.features, name) for name in of_features}
    seen = dataclasses.replace(episode.features, **same)
    planner = dataclasses.replace(episode.planner, widen=played.planner.widen)
    return dataclasses.replace(episode, features=seen, planner=planner)


def _vae(workdir: Path, number: int) -> Path:
    return workdir / "vaes" / str(number)


def run(
    config: PipelineConfig,
    workdir: Path,
    interrupted: Interrupted = never,
    tell: Tell = silent,
    before_job: Callable[[Job], object] = lambda job: None,
    after_iteration: Callable[[int], object] = lambda number: None,
) -> dict[int, list[Record]] | None:
    """Does what is not done yet, in this process.

    Args:
      config: how to do it.
      workdir: for everything. It must hold no other config's results. However it is spelled, it is the same: what
        jobs record has its absolute path.
      interrupted: asked by every job.
      tell: called with the progress of the job that is being done.
      before_job: called with each job before it is done, also if it is done already.
      after_iteration: called with the number of each iteration once it is done.

    Returns:
      The records of the games of each iteration, by its number; None if interrupted and saved.
    """
    workdir = workdir.absolute()
    config.collect.episode.identified()  # refuses a model that is not there
    claim(config, workdir)
    played: dict[int, list[Record]] = {}
    for number, jobs in enumerate(iterations(config, workdir), start=1):
        for job in jobs:
            before_job(job)
            record = job.do(interrupted, tell)
            if record is None:
                return None
            if job.kind == PLAY:
                played.setdefault(number, []).append(record)
        after_iteration(number)
    return played


def claim(config: PipelineConfig, workdir: Path) -> None:
    """Marks the work directory as that of this config, or refuses one that is another's; it may grow."""
    parts = {"collect": config.collect, "train": config.train, "play": config.play}
    mine: dict[str, Any] = {"game": config.game}
    defaults: dict[str, Any] = {}
    for part, of_part in parts.items():
        mine |= _of_part(part, configs.settings(of_part))
        defaults |= _of_part(part, configs.defaults(type(of_part)))
    time_only = (*runs.TIME_ONLY, *vae_config.TIME_ONLY)
    may_differ = {f"{part}.{name}" for part in parts for name in time_only}
    kept = {name: value for name, value in mine.items() if name not in may_differ}
    workdirs.claim(workdir, kept, defaults, may_differ)


def _of_part(part: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a work directory says of one kind of job."""
    others = (*OWN_BY_ITERATION, "game")
    return {f"{part}.{name}": value for name, value in settings.items() if name not in others}


def describe(job: Job) -> str:
    """What a job of a pipeline does."""
    if isinstance(job.config, CollectConfig):
        features = job.config.episode.features
        what = features.kind if features.kind != "vae" else features.features.partition(":")[2]
        return f"collect {job.config.num_screens:,} screens with {what or 'the shipped VAE'}"
    if isinstance(job.config, TrainConfig):
        begin = f", starting from {job.config.start_from}," if job.config.start_from else ""
        return f"train a VAE on them{begin} for {job.config.epochs} epochs"
    return f"play with it, seed {job.seed}"


def at_most(config: PipelineConfig, workdir: Path) -> float:
    """The seconds that the jobs left take if every game goes on to its limit."""
    jobs = [job for iteration in iterations(config, workdir) for job in iteration]
    seconds = estimates.at_most(jobs, usable_cores())
    return sum(seconds[job.name] for job in jobs if not job.is_done())


def records(game: str, number: int, workdir: Path) -> list[Record]:
    """Of the finished games of an iteration."""
    paths = sorted((workdir / "runs" / str(number) / "episodes" / game).glob("seed-*[0-9].json"))
    return [record for path in paths if (record := job_records.read(path)) is not None]
