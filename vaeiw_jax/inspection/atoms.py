"""What novelty is measured by: the atoms of screens, by a setting of features.

A search goes on where an atom becomes true. Atoms that are always true, and those that an object makes false, are of no
use to it: a search that finds few others soon ends, whatever budget is left.
"""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.features.config import EITHER, UNUSUAL
from vaeiw_jax.features.literals import Literals
from vaeiw_jax.inspection import gathering, reconstructions
from vaeiw_jax.inspection.gathering import Gathered
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.runs import Run

SELDOM = 0.01
"""An atom that is different on fewer of the screens than this share tells of single screens, such as the title's."""


@dataclass(frozen=True)
class Atoms:
    """The atoms of some screens."""

    config: FeaturesConfig
    true: np.ndarray  # bool[N, A]

    @functools.cached_property
    def shares(self) -> np.ndarray:
        """float64[A]: the share of the screens on which each atom is true."""
        return self.true.mean(axis=0)

    @property
    def varying(self) -> np.ndarray:
        """bool[A]: atoms that are true on some screens and false on others."""
        return (self.shares > 0) & (self.shares < 1)

    @property
    def switched_on(self) -> np.ndarray:
        """bool[A]: usually false, and true at times: what an object makes true."""
        return self.varying & (self.shares <= 0.5) & (self.shares >= SELDOM)

    @property
    def switched_off(self) -> np.ndarray:
        """bool[A]: usually true, and false at times: what an object makes false."""
        return self.varying & (self.shares > 0.5) & (self.shares <= 1 - SELDOM)

    @property
    def seldom_different(self) -> np.ndarray:
        """bool[A]: those of the others that vary at all."""
        return self.varying & ~self.switched_on & ~self.switched_off

    @property
    def true_per_screen(self) -> np.ndarray:
        """int[N]"""
        return self.true.sum(axis=1)

    @property
    def on_per_screen(self) -> np.ndarray:
        """int[N]: how many atoms are switched on."""
        return self.true[:, self.switched_on].sum(axis=1)

    @property
    def off_per_screen(self) -> np.ndarray:
        """int[N]: how many atoms are switched off."""
        return (~self.true[:, self.switched_off]).sum(axis=1)

    def kinds(self) -> dict[str, "Atoms"]:
        """The atoms by what they say of a bit, as `Literals` orders them."""
        names = ["unusual" if self.config.literals == UNUSUAL else "true"]
        names += ["false"] if self.config.literals == EITHER else []
        names += ["changed_to_true", "changed_to_false"] if self.config.changes else []
        parts = np.split(self.true, len(names), axis=1)
        return {
            name: dataclasses.replace(self, true=part)
            for name, part in zip(names, parts, strict=True)
        }

    def counts(self) -> dict[str, Any]:
        """How many there are of what."""
        return {
            "atoms": self.true.shape[1],
            "true_per_screen": spread(self.true_per_screen),
            "always_true": int((self.shares == 1).sum()),
            "never_true": int((self.shares == 0).sum()),
            "varying": int(self.varying.sum()),
            "switched_on": int(self.switched_on.sum()),
            "switched_off": int(self.switched_off.sum()),
            "switched_on_per_screen": float(self.on_per_screen.mean()),
            "switched_off_per_screen": float(self.off_per_screen.mean()),
        }

    def summary(self) -> dict[str, Any]:
        """The numbers, for a file."""
        return {
            "literals": self.config.literals,
            "changes": self.config.changes,
            "screens": len(self.true),
            **self.counts(),
            "kinds": {name: atoms.counts() for name, atoms in self.kinds().items()},
        }


def spread(values: np.ndarray) -> dict[str, float]:
    """How numbers are distributed: their mean, and the least, the quartiles and the most of them."""
    names = ("least", "lower_quartile", "median", "upper_quartile", "most")
    quantiles = np.quantile(values, np.linspace(0, 1, 5)).tolist()
    return {"mean": float(values.mean()), **dict(zip(names, quantiles, strict=True))}


def measure_atoms(
    config: FeaturesConfig,
    bits: np.ndarray,
    parents: list[np.ndarray | None],
    usual: np.ndarray | None,
) -> Atoms:
    """The atoms of codes.

    Args:
      config: what of a bit is an atom.
      bits: bool[N, B], the codes.
      parents: of each the code of its parent, bool[B], if it has one; used if there are atoms of changes.
      usual: the code of usual values, packed; for atoms of unusual bits.
    """
    num_bits = bits.shape[1]
    literals = Literals(num_bits, config.literals, config.changes, usual)
    true = np.zeros((len(bits), config.num_atoms(num_bits)), np.bool_)
    for row, code, parent in zip(true, np.packbits(bits, axis=1), parents, strict=True):
        row[literals.atoms(code, None if parent is None else np.packbits(parent))] = True
    return Atoms(config, true)


def inspect_atoms(
    config: FeaturesConfig,
    seen: Gathered,
    bits: np.ndarray,
    number: int,
    seed: int,
    run: Run | None,
) -> Atoms:
    """The atoms of the screens at hand or, where their parents must be known and are not, of a short game.

    Args:
      config: the features.
      seen: the screens.
      bits: bool[N, B], their codes.
      number: of screens of a short game.
      seed: of it.
      run: the recorded run, whose usual values are taken if it has any.
    """
    if config.changes and seen.parents is None:
        _require_game(seen.game, "--changes are seen from one screen to the next")
        seen = gathering.from_play(seen.game, number, seed)
        bits = reconstructions.true_bits(config, seen.game, seen.screens)
    parents: list[np.ndarray | None] = [None] * len(bits)
    if config.changes:
        parents = _parents(config, seen)
    usual = _usual(config, seen.game, seed, run) if config.literals == UNUSUAL else None
    return measure_atoms(config, bits, parents, usual)


def _parents(config: FeaturesConfig, seen: Gathered) -> list[np.ndarray | None]:
    """The codes, bool[B], of the screens' parents."""
    known = seen.parents or []
    screens = [parent for parent in known if parent is not None]
    codes = iter(reconstructions.true_bits(config, seen.game, screens) if screens else ())
    return [None if parent is None else next(codes) for parent in known]


def _usual(config: FeaturesConfig, game: str, seed: int, run: Run | None) -> np.ndarray:
    """The usual code: the run's if it has one, or else that of a run with the seed."""
    recorded = durable.read_arrays(run.decisions) if run else {}
    if "usual" in recorded:
        return recorded["usual"]
    _require_game(game, "what is unusual is known from random play of the game")
    planner = PlannerConfig(budget_seconds=None, budget_nodes=1)
    episode = Episode(EpisodeConfig(AtariConfig(game), planner, config), seed)
    return episode.decisions()["usual"]


def _require_game(game: str, why: str) -> None:
    if not game:
        raise UserError(
            f"{why}, and the store does not say which game its screens are of; give --game instead of --screens, or "
            "leave --literals and --changes out"
        )
