"""The screens to look at: from a screen store, or from a short game."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vaeiw_jax.atari import AtariConfig, game_name, rom_id
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.planning.tree import ROOT
from vaeiw_jax.playing import screen_store
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig

_BUDGET_NODES = 20
_NODES_SHOWN = 3
"""Screens taken from the nodes of each decision, beside its root's."""


@dataclass(frozen=True)
class Gathered:
    """Screens and, where that is known, those they came from."""

    game: str  # empty if unknown
    screens: np.ndarray  # uint8[N, rows, columns]
    parents: list[np.ndarray | None] | None
    """Of each screen that of its parent, None where a game begins; None if a store does not tell."""


def from_store(directory: Path, number: int, model_game: str) -> Gathered:
    """`number` screens of a store, evenly spaced; all of them, if there are fewer.

    Args:
      directory: a screen store, or a folder of PNG files.
      number: how many.
      model_game: what the model was trained on, empty if it does not say.
    """
    stored = screen_store.load(directory)
    if stored.game and model_game and stored.game != model_game:
        raise UserError(
            f"{directory} holds frames of {stored.game}, and the model was trained on {model_game}; "
            f"give frames of {model_game}, or none and --game={stored.game} to see it fail"
        )
    number = min(number, len(stored.screens))
    chosen = np.linspace(0, len(stored.screens) - 1, number).astype(int)
    return Gathered(stored.game or model_game, stored.screens[chosen], None)


def from_play(game: str, number: int, seed: int) -> Gathered:
    """`number` screens of a game played by RolloutIW with few nodes: a function of its arguments.

    Each decision gives its root's screen and some of those it looked ahead to.
    """
    config = EpisodeConfig(
        AtariConfig(game),
        PlannerConfig(budget_seconds=None, budget_nodes=_BUDGET_NODES),
        FeaturesConfig("ram"),  # cheap, and any screen size will do
    )
    screens: list[np.ndarray] = []
    parents: list[np.ndarray | None] = []
    while len(screens) < number:
        episode = Episode(config, seed)
        before: np.ndarray | None = None
        while len(screens) < number and not episode.stop:
            decision = episode.planner.decide()
            tree = episode.planner.tree
            nodes = np.linspace(0, tree.size - 1, 1 + _NODES_SHOWN).astype(int)
            for node in np.unique(nodes)[: number - len(screens)]:
                screens.append(tree.snapshots[node].screen)
                parents.append(before if node == ROOT else tree.snapshots[tree.parent[node]].screen)
            before = tree.snapshots[ROOT].screen
            episode.act(decision)
        seed += 1
    return Gathered(game_name(rom_id(game)), np.stack(screens), parents)
