"""How the searches of a recorded run ended: whether they found enough that was new to spend their budget."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.features.config import EITHER, UNUSUAL
from vaeiw_jax.inspection.atoms import spread
from vaeiw_jax.inspection.decision import played_config, recorded_decisions
from vaeiw_jax.planning.search import SOLVED
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import Run

SOLVED_EARLY, WIDENED, SPENT = "solved", "budget spent after widening", "budget spent"


@dataclass(frozen=True)
class RecordedRun:
    """The statistics of a run's decisions, arrays [D] by the names of `Statistics`."""

    run: Run
    config: EpisodeConfig
    decisions: dict[str, np.ndarray]

    @property
    def solved(self) -> np.ndarray:
        """bool[D]: decisions that ended because nothing new was left to find, with budget left."""
        return self.decisions["ended"] == SOLVED

    @property
    def widened(self) -> np.ndarray:
        """int[D]: how often novelty was widened, each time because nothing else was left to find."""
        return self.decisions["widened"]

    def endings(self) -> dict[str, np.ndarray]:
        """bool[D] by how a decision ended."""
        far = (self.widened > 0) & ~self.solved
        return {SOLVED_EARLY: self.solved, WIDENED: far, SPENT: ~self.solved & ~far}

    def notions(self) -> list[tuple[str, int]]:
        """The notions of novelty, the narrowest first, each with the number of decisions that ended with it."""
        known = notion_titles(self.config.features) if self.config.features.kind == "vae" else []
        counts = np.bincount(self.widened, minlength=len(known)).tolist()
        titles = known + [f"notion {i + 1}" for i in range(len(known), len(counts))]
        return list(zip(titles, counts, strict=True))

    def summary(self) -> dict[str, Any]:
        """The numbers, for a file."""
        early = self.solved | (self.widened > 0)
        return {
            "run": str(self.run.record),
            "decisions": len(self.solved),
            "solved": int(self.solved.sum()),
            "solved_share": float(self.solved.mean()),
            "solved_by_the_first_notion": int(early.sum()),
            "widened": dict(self.notions()) if self.config.planner.widen else None,
            "by_ending": {
                name: self._of(chosen) for name, chosen in self.endings().items() if chosen.any()
            },
        }

    def _of(self, chosen: np.ndarray) -> dict[str, Any]:
        means = ("mean_rollout_length", "new_nodes", "atoms_per_node")
        return {
            "decisions": int(chosen.sum()),
            "depth": spread(self.decisions["depth"][chosen]),
            **{
                f"mean_{name.removeprefix('mean_')}": float(self.decisions[name][chosen].mean())
                for name in means
            },
        }


def notion_titles(config: FeaturesConfig) -> list[str]:
    """The notions of novelty that `VAEFeatures.notions` numbers, in words."""
    titles = ["unusual bits" if config.literals == UNUSUAL else "true bits"]
    titles += ["either value of a bit"] if config.literals == EITHER else []
    titles += ["bits that changed as well"] if config.changes else []
    return titles + (["pairs of unusual bits"] if config.literals == UNUSUAL else [])


def read_run(run: Run) -> RecordedRun | None:
    """The decisions of a run; None if it looked ahead at nothing."""
    config = played_config(run)
    if not config.planner.search.looks_ahead:
        return None
    return RecordedRun(run, config, recorded_decisions(run))
