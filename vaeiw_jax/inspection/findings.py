"""The findings about a model: everything computed, nothing drawn yet."""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from vaeiw_jax import durable, models
from vaeiw_jax.atari import game_name, rom_id
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, registry
from vaeiw_jax.inspection import decision, gathering, quality, reconstructions, recorded_run
from vaeiw_jax.inspection.atoms import Atoms, inspect_atoms
from vaeiw_jax.inspection.config import InspectConfig
from vaeiw_jax.inspection.decision import Replanned
from vaeiw_jax.inspection.gathering import Gathered
from vaeiw_jax.inspection.quality import Quality
from vaeiw_jax.inspection.reconstructions import Decoded, Encoded
from vaeiw_jax.inspection.recorded_run import RecordedRun
from vaeiw_jax.playing import runs
from vaeiw_jax.vae.config import ModelConfig

DECODED_FRAMES = 64
"""The error of reconstruction is a mean over at most this many frames: decoding costs more than encoding."""


@dataclass(frozen=True)
class Findings:
    config: InspectConfig
    directory: Path  # of the model
    model: ModelConfig
    description: dict[str, Any]  # the model's config.json
    features: FeaturesConfig
    played: FeaturesConfig | None  # those of the run, if it was played with the model
    game: str  # of the frames; empty if unknown
    encoded: Encoded
    quality: Quality
    atoms: Atoms
    decoded_rows: np.ndarray  # int[n], the frames that were decoded
    decoded: Decoded
    recorded: RecordedRun | None  # None also where the run looked ahead at nothing
    replanned: Replanned | None

    @property
    def model_game(self) -> str:
        """What the model was trained on; empty if it does not say."""
        games = models.trained_on(self.directory)
        return f"{len(games)} games" if len(games) > 1 else "".join(games)

    @property
    def of_another_game(self) -> bool:
        """Whether the frames are of a game that the model was not trained on."""
        games = models.trained_on(self.directory)
        return bool(games) and bool(self.game) and self.game not in games

    @property
    def digest(self) -> str:
        return str(self.description["weights"]["sha256"])

    def shown(self) -> np.ndarray:
        """int[n]: which of the decoded frames to show one by one, evenly spaced."""
        number = min(self.config.shown_screens, len(self.decoded_rows))
        return np.linspace(0, len(self.decoded_rows) - 1, number).astype(int)

    def numbers(self) -> dict[str, Any]:
        """The findings that are numbers."""
        frames = self.encoded.frames[self.decoded_rows]
        return {
            "game": self.game,
            "model": self.digest,
            "quality": self.quality.summary(),
            "reconstruction": {
                "frames": len(frames),
                "mean_squared_error": self.decoded.squared_error(frames),
                "excess_nats": float(self.decoded.excess_bce.mean()),
            },
            "atoms": self.atoms.summary(),
            "run": self.recorded.summary() if self.recorded else None,
            "decision": _numbers_of(self.replanned) if self.replanned else None,
        }


def inspect_model(config: InspectConfig) -> Findings:
    """Inspects a model on the frames, and the decision, that the config names."""
    run = runs.find(Path(config.run), config.run_game, config.run_seed) if config.run else None
    directory = _model(config.checkpoint, run)
    model, variables = models.load_model(directory)
    description = models.model_description(directory)
    replanned = _decision(config, run, directory) if run else None
    model_game = str(description["about"].get("game") or "")
    seen = _frames(config, run.game if run else model_game, model_game)
    played = _played_features(directory, run) if run else None
    features = config.features(directory, played)
    registry.check(features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page says if the game is another
        encoded = reconstructions.encode(model, features, seen)
        atoms = inspect_atoms(
            features,
            seen,
            encoded.bits,
            config.num_screens,
            config.seed,
            run if features == played else None,
        )
    measured = quality.measure_quality(encoded.screens, encoded.bits, config.alike_pixels)
    number = min(max(config.shown_screens, DECODED_FRAMES), len(encoded.screens))
    rows = np.linspace(0, len(encoded.screens) - 1, number).astype(int)
    decoded = reconstructions.decode(model, variables, encoded, rows)
    return Findings(
        config=config,
        directory=directory,
        model=model,
        description=description,
        features=features,
        played=played,
        game=seen.game,
        encoded=encoded,
        quality=measured,
        atoms=atoms,
        decoded_rows=rows,
        decoded=decoded,
        recorded=recorded_run.read_run(run) if run else None,
        replanned=replanned,
    )


def _played_features(directory: Path, run: runs.Run) -> FeaturesConfig | None:
    """The features that the run was played with, if they are those of the model."""
    played = decision.played_config(run).features
    as_played = InspectConfig(str(directory))
    return as_played.features(directory, played) if played.kind == "vae" else None


def _model(checkpoint: str | None, run: runs.Run | None) -> Path:
    """Where the model is."""
    if checkpoint:
        return models.named(checkpoint)
    assert run is not None  # as the config is checked
    features = durable.read_json(run.record)["config"]["features"]
    name = models.shipped_by_digest().get(features.partition(":")[2])
    if name is not None:
        return models.SHIPPED / name
    raise UserError(f"{run.record} was not played with a shipped VAE; say with --checkpoint which")


def _frames(config: InspectConfig, default_game: str, model_game: str) -> Gathered:
    seen = _gathered(config, default_game, model_game)
    if (seen.screens == seen.screens[0]).all():
        if config.screens:
            whose, remedy = f"those of {config.screens}", "give another store to --screens, or none"
        else:
            whose, remedy = f"those of a short game of {seen.game}", "try more with --num_screens"
        raise UserError(
            f"the frames to look at, {whose}, are a single frame, over and over; at least 2 different ones are needed "
            f"to compare; {remedy}"
        )
    return seen


def _gathered(config: InspectConfig, default_game: str, model_game: str) -> Gathered:
    if config.screens:
        return gathering.from_store(Path(config.screens), config.num_screens, model_game)
    game = config.game or default_game
    if not game:
        raise UserError(
            f"the model {config.checkpoint} was not trained on one game alone; give --screens or --game"
        )
    return gathering.from_play(game_name(rom_id(game)), config.num_screens, config.seed)


def _decision(config: InspectConfig, run: runs.Run, directory: Path) -> Replanned:
    with tqdm(
        desc="playing the run again",
        unit=" decisions",
        mininterval=0.2 if sys.stderr.isatty() else 10,
        leave=False,
    ) as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update()

        return decision.replan(run, directory, config.decision, config.fresh_tree, show)


def _numbers_of(replanned: Replanned) -> dict[str, Any]:
    chosen = replanned.decision
    return {
        "run": str(replanned.run.record),
        "decision": replanned.number,
        "same_tree": replanned.same_tree,
        "action": replanned.action_names[chosen.action],
        "values": {
            name: float(value) if np.isfinite(value) else None
            for name, value in zip(replanned.action_names, chosen.values, strict=True)
        },
        "nodes": replanned.tree.size,
        "new_nodes": chosen.statistics.new_nodes,
        "kept_nodes": chosen.statistics.kept_nodes,
        "pruned_nodes": int(replanned.pruned.sum()),
        "depth": chosen.statistics.depth,
        "ended": chosen.statistics.ended,
    }
