"""Planning from pixels in Atari with learned symbols (VAE-IW), in JAX.

A game is played by planning: each decision searches the emulator's future for states in which a feature is true that
was not true so early before (`Planner`), and takes the action whose future promises most. A feature set says what is
true on a screen: a hand-made one (`bprost`, `ram`), or the bits of a variational autoencoder trained on screens.

    import vaeiw_jax as vx

    config = vx.EpisodeConfig.of("MsPacman", features="vae", budget_nodes=100)
    episode = vx.Episode(config, seed=0)
    while not episode.stop:
        decision = episode.advance()  # the action chosen, the value of each action, statistics of the search
    print(episode.score)

playing    Atari, Episode, EpisodeConfig, play, PlayConfig: a game, one of its episodes, an episode on disk
planning   Planner, PlannerConfig, Decision, World, PlainWorld, Transition: on Atari or on your own simulator
features   FeatureSet, features: what a set has to offer, and the sub-package that knows them by name
learning   collect, CollectConfig, train, TrainConfig, ModelConfig, load_vae: screens, a VAE of them, a trained VAE

`Episode` and `play` take a feature set or a search function of your own as `features=` and `search=`. JAX, Numba and
the emulator are loaded when something is asked for that needs them, not before.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vaeiw_jax import features
    from vaeiw_jax.atari import Atari
    from vaeiw_jax.features import FeatureSet
    from vaeiw_jax.planning import (
        Decision,
        PlainWorld,
        Planner,
        PlannerConfig,
        Transition,
        World,
    )
    from vaeiw_jax.playing.collecting import CollectConfig, collect
    from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
    from vaeiw_jax.playing.runs import PlayConfig, play
    from vaeiw_jax.trained_vae import load_vae
    from vaeiw_jax.training import train
    from vaeiw_jax.vae.config import ModelConfig, TrainConfig

__version__ = "0.2.0"

__all__ = [
    "Atari",
    "CollectConfig",
    "Decision",
    "Episode",
    "EpisodeConfig",
    "FeatureSet",
    "ModelConfig",
    "PlainWorld",
    "Planner",
    "PlannerConfig",
    "PlayConfig",
    "TrainConfig",
    "Transition",
    "World",
    "__version__",
    "collect",
    "features",
    "load_vae",
    "play",
    "train",
]

_MODULES = {
    "Atari": "vaeiw_jax.atari",
    "CollectConfig": "vaeiw_jax.playing.collecting",
    "Decision": "vaeiw_jax.planning",
    "Episode": "vaeiw_jax.playing.episodes",
    "EpisodeConfig": "vaeiw_jax.playing.episodes",
    "FeatureSet": "vaeiw_jax.features",
    "ModelConfig": "vaeiw_jax.vae.config",
    "PlainWorld": "vaeiw_jax.planning",
    "Planner": "vaeiw_jax.planning",
    "PlannerConfig": "vaeiw_jax.planning",
    "PlayConfig": "vaeiw_jax.playing.runs",
    "TrainConfig": "vaeiw_jax.vae.config",
    "Transition": "vaeiw_jax.planning",
    "World": "vaeiw_jax.planning",
    "collect": "vaeiw_jax.playing.collecting",
    "load_vae": "vaeiw_jax.trained_vae",
    "play": "vaeiw_jax.playing.runs",
    "train": "vaeiw_jax.training",
}


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first asked for (PEP 562)."""
    if name == "features":
        return importlib.import_module("vaeiw_jax.features")
    if name not in _MODULES:
        raise AttributeError(f"module 'vaeiw_jax' has no attribute {name!r}")
    found = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
