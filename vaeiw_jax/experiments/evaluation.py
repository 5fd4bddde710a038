"""What is to be evaluated: experiments by name, and the settings that differ from the paper's."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vaeiw_jax import atari, configs, durable, workdirs
from vaeiw_jax.configs import same_as
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.experiments import catalogue, online_config
from vaeiw_jax.experiments.catalogue import Experiment
from vaeiw_jax.experiments.methods import DISCRETE, ROLLOUT_IW_RA, Method
from vaeiw_jax.experiments.online_config import OnlineConfig
from vaeiw_jax.experiments.pipeline import check_features, require_a_batch
from vaeiw_jax.features import FeaturesConfig, lookup
from vaeiw_jax.features.config import LITERALS, TRUE, USUAL
from vaeiw_jax.planning import SEARCHES, PlannerConfig
from vaeiw_jax.playing import protocols
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import PROTOCOLS, EpisodeConfig
from vaeiw_jax.vae.config import ModelConfig, TrainConfig

VAE_SOURCES = ("train", "shipped")
_NOTHING: Mapping[str, Any] = {}
_OF_ATOMS = ("literals", "usual", "changes", "noise", "width", "widen")
_OF_CUSTOM = ("features", "planner", *_OF_ATOMS)
_LISTS = (
    *("experiment", "games", "methods", "features", "planner", "literals"),
    *("budget_seconds", "budget_nodes"),
)


@dataclass(frozen=True)
class EvaluationConfig:
    """Which experiments, and how they differ from the paper's."""

    experiment: str = field(
        metadata={
            "help": f"one or more, with commas, of {', '.join(catalogue.EXPERIMENTS)}; or custom, made of "
            "--features, --planner and budgets"
        }
    )
    games: str | None = field(
        default=None, metadata={"help": "games, with commas (default: those of the experiment)"}
    )
    methods: str | None = field(
        default=None,
        metadata={"help": "methods, by name and with commas (default: those of the experiment)"},
    )
    runs: int | None = field(
        default=None, metadata={"help": "runs of each game (default: as many as the paper's)"}
    )
    seed: int = field(default=0, metadata={"help": "seed of the first run; the others count up"})
    features: str | None = field(
        default=None,
        metadata={"help": "custom: feature sets, with commas, such as bprost,ram,vae:universal"},
    )
    planner: str | None = field(
        default=None, metadata={"help": "custom: planners, with commas, such as rollout_iw,iw"}
    )
    literals: str | None = field(
        default=None,
        metadata={
            "help": f"custom: what of a VAE's bit is an atom; one or more, with commas, of {', '.join(LITERALS)}"
        },
    )
    usual: str = field(
        default=FeaturesConfig.usual,
        metadata={
            "help": f"custom, literals=unusual: how a VAE's bits mostly are, by one of {', '.join(USUAL)}"
        },
    )
    changes: bool = field(
        default=FeaturesConfig.changes,
        metadata={
            "help": "custom: atoms also for a VAE's bits that changed since the parent's screen"
        },
    )
    noise: bool = field(
        default=FeaturesConfig.noise,
        metadata={"help": "custom: add the noise of training to a VAE's bits, drawn for each node"},
    )
    widen: bool = field(
        default=PlannerConfig.widen,
        metadata={
            "help": "custom: where learned features find nothing new and budget is left, go on with a wider notion of "
            "novelty"
        },
    )
    width: int = field(
        default=PlannerConfig.width,
        metadata={"help": "custom: of learned features, 1: atoms must be new; 2: pairs of atoms"},
    )
    risk_averse: bool = field(
        default=PlannerConfig.risk_averse,
        metadata={"help": "custom: magnify losses when comparing actions"},
    )
    budget_seconds: str | None = field(
        default=None,
        metadata={"help": "seconds a decision may take; several, with commas, for custom"},
    )
    budget_nodes: str | None = field(
        default=None,
        metadata={
            "help": "nodes a decision may take, instead of seconds; several, with commas, for custom and budget_curve"
        },
    )
    protocol: str = field(
        default=protocols.DEFAULT,
        metadata={"help": f"how everybody plays: one of {', '.join(PROTOCOLS)}"},
    )
    max_actions: int = same_as(EpisodeConfig, "max_actions")
    vae: str = field(
        default="train",
        metadata={
            "help": "train: collect screens and train VAEs; shipped: use those of the project"
        },
    )
    num_screens: int = same_as(CollectConfig, "num_screens")
    collect_nodes: int | None = field(
        default=None,
        metadata={
            "help": "nodes a decision while collecting, instead of 0.5 s (default: --budget_nodes, if given)"
        },
    )
    variant: str = same_as(ModelConfig, "variant")
    epochs: int = same_as(TrainConfig, "epochs")
    batch_size: int = same_as(TrainConfig, "batch_size")
    learning_rate: float = same_as(TrainConfig, "learning_rate")
    learning_rate_end: float = same_as(TrainConfig, "learning_rate_end")
    clip_norm: float = same_as(TrainConfig, "clip_norm")
    tau_start: float = same_as(TrainConfig, "tau_start")
    zero_suppression: float = same_as(TrainConfig, "zero_suppression")
    zero_suppression_from: float = same_as(TrainConfig, "zero_suppression_from")

    def __post_init__(self) -> None:
        for name in _LISTS:
            given = getattr(self, name)
            named = _split(given)
            if given is not None and not named:
                raise UserError(f"--{name}={given} names nothing; name something, or leave it out")
            if name == "games":
                named = self.game_list() or []
            if twice := next((part for part in named if named.count(part) > 1), None):
                raise UserError(f"--{name} has {twice} twice; name each once")
        if self.runs is not None and self.runs < 1:
            raise UserError(f"runs must be at least 1, not {self.runs}")
        if self.seed < 0:
            raise UserError(f"seed must be 0 or more, not {self.seed}")
        if self.protocol not in PROTOCOLS:
            raise unknown("protocol", self.protocol, PROTOCOLS)
        if self.vae not in VAE_SOURCES:
            raise unknown("source of VAEs", self.vae, VAE_SOURCES)
        if self.budget_seconds is not None and self.budget_nodes is not None:
            raise UserError("give --budget_seconds or --budget_nodes, not both")
        if self.collect_nodes is not None and self.collect_nodes < 1:
            raise UserError(f"collect_nodes must be at least 1, not {self.collect_nodes}")
        if catalogue.CUSTOM not in self.names and self._are_given(_OF_CUSTOM):
            raise UserError(
                f"--{', --'.join(_OF_CUSTOM)} are for --experiment=custom; the others say what they use"
            )
        for name in self.names:
            if name != catalogue.CUSTOM:
                catalogue.named(name)
            self._check_budgets(name)
        self._check_atoms()
        for experiment in self.experiments():
            if experiment.name == catalogue.CUSTOM:
                for method in experiment.methods:
                    self.episode(method, experiment.games[0])
            for method in experiment.methods:
                self._check_learning(method, experiment.games[0])

    def _check_learning(self, method: Method, game: str) -> None:
        """What a method's training, or its games after that, would refuse hours later."""
        if method.vae is None or self.vae == "shipped":
            return
        check_features(method.vae, self.episode(method, game))
        if method.online:
            self.learning_online(method, game)
            return
        learning = dict(method.learning)
        training = self.training(method.vae, screens="", learning=learning)
        require_a_batch(training, self.collecting(game, learning).num_screens)

    def _check_budgets(self, name: str) -> None:
        several = len(self.nodes) > 1 or len(self.seconds) > 1
        if several and name not in (catalogue.CUSTOM, "budget_curve"):
            raise UserError(
                f"{name} takes one budget, not several; use custom or budget_curve for that"
            )
        given = self.nodes or self.seconds
        if name in ("equal_nodes", "budget_curve") and self.nodes:
            return
        if given and name != catalogue.CUSTOM and catalogue.named(name).budget_is_the_point:
            raise UserError(
                f"{name} is about its budgets, so it cannot be given another; use custom, with several of them"
            )

    def _check_atoms(self) -> None:
        """What playing would refuse, or would not change."""
        learned = any(lookup(name).takes_directory for name in self._feature_sets)
        if not learned and self._are_given(_OF_ATOMS):
            raise UserError(
                f"--{', --'.join(_OF_ATOMS)} are for learned features; leave them out, or add vae to --features"
            )
        for kind in self._literals:
            if kind not in LITERALS:
                raise unknown("literals", kind, LITERALS)
            if self.widen:
                FeaturesConfig(literals=kind, changes=self.changes).require_wider_notion()

    def _are_given(self, names: Sequence[str]) -> bool:
        """Whether any of these settings is not at its default."""
        return any(getattr(self, name) != configs.default(EvaluationConfig, name) for name in names)

    @property
    def _feature_sets(self) -> list[str]:
        return _split(self.features) or [FeaturesConfig.features]

    @property
    def _literals(self) -> list[str]:
        return _split(self.literals) or [FeaturesConfig.literals]

    @property
    def names(self) -> list[str]:
        """The experiments, by name."""
        return _split(self.experiment)

    @property
    def nodes(self) -> list[int]:
        return [_number(int, "budget_nodes", text) for text in _split(self.budget_nodes)]

    @property
    def seconds(self) -> list[float]:
        return [_number(float, "budget_seconds", text) for text in _split(self.budget_seconds)]

    def game_list(self) -> list[str] | None:
        """The games asked for, by their usual names."""
        if self.games is None:
            return None
        return [atari.game_name(atari.rom_id(game)) for game in _split(self.games)]

    def flags(self, leave_out: Sequence[str] = ()) -> list[str]:
        """The flags of launch.evaluate that ask for this: those that differ from the paper's settings."""
        return [
            f"--{entry.name}={getattr(self, entry.name)}"
            for entry in dataclasses.fields(self)
            if entry.name not in leave_out and getattr(self, entry.name) != entry.default
        ]

    def experiments(self) -> list[Experiment]:
        """The experiments with games, runs and budgets as asked for."""
        return [self._adapted(self._original(name)) for name in self.names]

    def _original(self, name: str) -> Experiment:
        if name == catalogue.CUSTOM:
            return Experiment(
                name, "An experiment put together by flags", self._custom(), catalogue.GAMES_55, 10
            )
        if name == "equal_nodes" and self.nodes:
            return catalogue.equal_nodes(self.nodes[0])
        if name == "budget_curve" and self.nodes:
            return catalogue.budget_curve(self.nodes)
        return catalogue.named(name)

    def _adapted(self, experiment: Experiment) -> Experiment:
        games = self.game_list()
        budget: dict[str, Any] = {}
        if not experiment.budget_is_the_point and experiment.name != catalogue.CUSTOM:
            if self.nodes:
                budget = {"budget_nodes": self.nodes[0], "budget_seconds": None}
            elif self.seconds:
                budget = {"budget_nodes": None, "budget_seconds": self.seconds[0]}
        names = [method.name for method in experiment.methods]
        chosen = _split(self.methods) or names
        for name in chosen:
            if name not in names:
                raise unknown(f"method of {experiment.name}", name, names)
        methods = tuple(
            method.with_settings(method.name, method.title, **budget)
            for method in experiment.methods
            if method.name in chosen
        )
        return dataclasses.replace(
            experiment,
            methods=methods,
            games=experiment.games if games is None else tuple(games),
            runs=self.runs or experiment.runs,
            runs_by_method={} if self.runs else experiment.runs_by_method,
        )

    def _custom(self) -> tuple[Method, ...]:
        """Every planner with every feature set, learned ones with all literals, and every budget."""
        planners = _split(self.planner) or [PlannerConfig.planner]
        seen = [
            (features, literals)
            for features in self._feature_sets
            for literals in (self._literals if lookup(features).takes_directory else [TRUE])
        ]
        for name in planners:
            if name not in SEARCHES:
                raise unknown("planner", name, SEARCHES)
        budgets: list[tuple[str, Any]] = [("budget_nodes", nodes) for nodes in self.nodes]
        if not budgets:
            seconds: list[float | None] = [*self.seconds] or [PlannerConfig.budget_seconds]
            budgets = [("budget_seconds", amount) for amount in seconds]
        choices = itertools.product(planners, seen, budgets)
        methods = tuple(self._custom_method(*choice) for choice in choices)
        _require_names_of_their_own(methods)
        return methods

    def _custom_method(
        self, planner: str, seen: tuple[str, str], budget: tuple[str, Any]
    ) -> Method:
        (features, literals), (kind, amount) = seen, budget
        averse = "_ra" if self.risk_averse else ""
        entry = lookup(features)
        learned = entry.takes_directory or entry.needs_directory
        directory = features.partition(":")[2] if learned else ""
        model = Path(directory).absolute().name if directory else ""
        if model and Path(directory).exists():  # else it is the name of a shipped model
            features = f"{entry.name}:{Path(directory).absolute()}"
        which = f"{entry.name}_{model}" if model else features.replace(":", "_")
        atoms = self._atom_settings(literals) if entry.takes_directory else {}
        words = [_word(name, value) for name, value in atoms.items()]
        which = "_".join([which, *words])
        name = f"{planner}_{which}_{amount}_{kind.removeprefix('budget_')}{averse}"
        settings = {
            "planner": planner,
            "features": features,
            "risk_averse": self.risk_averse,
            "budget_seconds": None,
            kind: amount,
            **atoms,
        }
        learns = entry.takes_directory and not model and SEARCHES[planner].looks_ahead
        title_of_features = " ".join([entry.title, *([model] if model else []), *words])
        title = f"{SEARCHES[planner].title} {title_of_features}, {amount:g} {kind.removeprefix('budget_')}"
        return Method(
            name, title, tuple(sorted(settings.items())), vae=DISCRETE if learns else None
        )

    def _atom_settings(self, literals: str) -> dict[str, Any]:
        """Those that differ from the paper's."""
        asked = {name: getattr(self, name) for name in _OF_ATOMS} | {"literals": literals}
        return {
            name: value
            for name, value in asked.items()
            if value != configs.default(EpisodeConfig, name)
        }

    def episode(self, method: Method, game: str, features: str | None = None) -> EpisodeConfig:
        """How the method plays the game; `features` in place of its own, where a VAE has its place."""
        chosen = {"max_actions": self.max_actions, **dict(method.settings), "game": game}
        chosen |= {"features": features} if features else {}
        settings = protocols.settings(self.protocol, chosen) | chosen
        return configs.from_settings(EpisodeConfig, settings, partial=True)

    def collecting(self, game: str, learning: Mapping[str, Any] = _NOTHING) -> CollectConfig:
        """How screens are collected: the paper's way, RolloutIW(1) with B-PROST features.

        Args:
          game: to collect in.
          learning: `collect_nodes` and `num_screens` in place of this config's.
        """
        nodes = self.collect_nodes
        if nodes is None and self.nodes:
            nodes = self.nodes[0]
        nodes = learning.get("collect_nodes", nodes)
        budget = {} if nodes is None else {"budget_nodes": nodes, "budget_seconds": None}
        settings = dict(ROLLOUT_IW_RA.settings) | budget | {"game": game}
        screens = learning.get("num_screens", self.num_screens)
        return configs.from_settings(
            CollectConfig, settings | {"num_screens": screens}, partial=True
        )

    def training(
        self, model: ModelConfig, screens: str, learning: Mapping[str, Any] = _NOTHING
    ) -> TrainConfig:
        """How a VAE is trained on the screens of a store; with settings of `learning` in place of this config's."""
        names = configs.names(TrainConfig) & configs.names(EvaluationConfig) - {"seed"}
        settings = configs.settings(model) | {name: getattr(self, name) for name in names}
        settings |= {n: v for n, v in learning.items() if n in configs.names(TrainConfig)}
        return configs.from_settings(TrainConfig, settings | {"screens": screens}, partial=True)

    def learning_online(self, method: Method, game: str) -> OnlineConfig:
        """How the VAE of a method that learns while it plays comes about."""
        own = ("features", "max_actions")  # games to learn from have their own
        played = {name: value for name, value in method.settings if name not in own}
        return online_config.configure(
            game, self.protocol, **played, **dict(method.learning), seed=self.seed
        )


def _require_names_of_their_own(methods: Sequence[Method]) -> None:
    """Methods of one name would be one, of which only the last is played."""
    seen: dict[str, Any] = {}
    for method in methods:
        features = dict(method.settings)["features"]
        before = seen.setdefault(method.name, features)
        if before != features:
            raise UserError(
                f"{before} and {features} would both be recorded as {method.name}, which has the last part of the "
                "directory alone; give one of them another name (a link will do)"
            )


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _word(setting: str, value: Any) -> str:
    """What a method is called for a setting that is not the paper's."""
    if setting == "width":
        return "pairs"
    return value if isinstance(value, str) else setting


def _number(kind: Any, name: str, text: str) -> Any:
    try:
        return kind(text)
    except ValueError as error:
        raise UserError(
            f"--{name} must be numbers with commas between them, not {text!r}"
        ) from error


FILE = "experiment.json"
_MAY_CHANGE = ("games", "methods", "runs")  # an evaluation may grow


def claim(config: EvaluationConfig, workdir: Path, store: Path | None = None) -> None:
    """Marks the work directory as that of this evaluation, or refuses one that is another's."""
    with workdirs.in_turn(workdir / ".claim"):
        _claim(config, workdir, store.absolute() if store else None)


def _claim(config: EvaluationConfig, workdir: Path, store: Path | None) -> None:
    path = workdir / FILE
    if path.exists():
        saved, saved_store = of_workdir(workdir)
        theirs = configs.settings(saved)
        for name, value in configs.settings(config).items():
            if name not in _MAY_CHANGE and theirs[name] != value:
                raise UserError(
                    f"{workdir} holds an evaluation with {name}={theirs[name]}, and this one has "
                    f"{name}={value}; choose another --workdir (--store shares screens and VAEs between them)"
                )
        if saved_store != store:
            raise UserError(f"{workdir} was begun with --store={saved_store}, not {store}")
        if saved == config:
            return
    mine = {"config": configs.settings(config), "store": str(store) if store else None}
    durable.write_json(path, mine, sealed=True)


def of_workdir(workdir: Path) -> tuple[EvaluationConfig, Path | None]:
    """The evaluation a work directory is of, and the store it uses if that is elsewhere."""
    path = workdir / FILE
    if not path.exists():
        raise UserError(
            f"{workdir} holds no evaluation (it has no {FILE}); begin one with launch.evaluate"
        )
    saved = durable.read_json(path, sealed=True)
    # Settings that are younger than the file have their defaults, which change nothing.
    config = configs.from_settings(EvaluationConfig, saved.get("config", {}), path, partial=True)
    store = saved.get("store")
    if store is not None and not isinstance(store, str):
        raise durable.DamagedFileError(path, f"its store is {store!r}")
    return config, Path(store) if store else None
