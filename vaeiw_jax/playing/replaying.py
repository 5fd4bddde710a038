"""A recorded run played again: whether its actions lead to its score."""

from typing import Any

import numpy as np

from vaeiw_jax import configs, durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import runs
from vaeiw_jax.playing.episodes import EpisodeConfig, replay
from vaeiw_jax.playing.runs import Run
from vaeiw_jax.progress import Progress, Tell, silent


def verify(run: Run, tell: Tell = silent) -> tuple[EpisodeConfig, dict[str, Any]]:
    """Plays the recorded actions of a finished run, and refuses a record with another score.

    Returns:
      How the run was played, and its record.
    """
    record = runs.read_record(run)
    if record is None:
        raise UserError(f"there is no finished run {run.record}")
    config = configs.from_settings(EpisodeConfig, record["config"], run.record, partial=True)
    actions = _actions(run)
    score = 0.0
    for done, (transition, _) in enumerate(replay(config, run.seed, actions), start=1):
        score += transition.reward
        tell(Progress(done, len(actions)))
    if score != record["score"] or len(actions) != record["actions"]:
        raise UserError(
            f"the replay scored {score:,.0f} in {len(actions):,} actions, but {run.record} says "
            f"{record['score']:,} in {record['actions']:,}"
        )
    return config, record


def _actions(run: Run) -> list[int]:
    recorded = durable.read_arrays(run.decisions).get("actions")
    if recorded is None or recorded.ndim != 1 or not np.issubdtype(recorded.dtype, np.integer):
        raise durable.DamagedFileError(run.decisions, "it has no actions")
    return recorded.tolist()
