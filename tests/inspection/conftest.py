"""Models with random weights and short recorded runs, to look inside of."""

import zlib
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import pytest

from vaeiw_jax import models
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing import runs
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import Run
from vaeiw_jax.vae.architecture import variable_shapes
from vaeiw_jax.vae.config import ModelConfig


def random_variables(model: ModelConfig) -> dict:
    """Random weights whose features are true in some frames and false in others."""

    def draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
        rng = np.random.default_rng(zlib.crc32(name.encode()))  # whatever the order of the names
        fan_in = max(1, np.prod(shape[:-1]))
        values = rng.normal(size=shape) * (3 / fan_in if fan_in > 1 else 0.1) ** 0.5
        positive = name.endswith(("var", "scale"))
        return (np.abs(values) + 0.5 if positive else values).astype(np.float32)

    shapes = variable_shapes(model)
    flat = {name: draw(name, shape) for name, shape in shapes.items()}
    nested: dict = {}
    for name, array in flat.items():
        *folders, last = name.split("/")
        inner = nested
        for folder in folders:
            inner = inner.setdefault(folder, {})
        inner[last] = array
    return jax.tree.map(np.asarray, nested)


@pytest.fixture(scope="session")
def model_of(tmp_path_factory) -> Callable[..., Path]:
    """Saves a model with random weights, of the game and the kind asked for."""
    saved: dict[tuple, Path] = {}

    def model(game: str = "Pong", config: ModelConfig | None = None) -> Path:
        config = config or ModelConfig()
        if (game, config) not in saved:
            directory = tmp_path_factory.mktemp("model")
            models.save_model(directory, config, random_variables(config), {"game": game})
            saved[game, config] = directory
        return saved[game, config]

    return model


@pytest.fixture
def record(tmp_path) -> Callable[..., Run]:
    """Records a short run."""

    def recorded(features: str = "ram", max_actions: int = 6, **planner) -> Run:
        budget = {"budget_seconds": None, "budget_nodes": 25} | planner
        config = EpisodeConfig(
            AtariConfig("Pong"),
            PlannerConfig(**budget),
            FeaturesConfig(features),
            max_actions=max_actions,
        )
        run = Run(tmp_path / "run", "Pong", 0)
        assert runs.play(runs.PlayConfig(config), run.workdir) is not None
        return run

    return recorded
