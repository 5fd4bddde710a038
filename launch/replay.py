"""Plays a recorded run's actions again and checks that they lead to the recorded score.

python -m launch.replay --workdir=runs/pong --seed=0 [--game=Pong] [--video]
"""

from pathlib import Path

import numpy as np
from absl import flags
from tqdm import tqdm

from launch import command
from vaeiw_jax import configs, durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import runs, video
from vaeiw_jax.playing.episodes import EpisodeConfig, replay

_WORKDIR = flags.DEFINE_string("workdir", None, "where the run was recorded", required=True)
_GAME = flags.DEFINE_string("game", None, "the game, if the work directory has more than one")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the run")
_VIDEO = flags.DEFINE_boolean("video", False, "film it, to WORKDIR/videos/GAME/seed-S.mp4")
_EVERY_FRAME = flags.DEFINE_boolean("every_frame", False, "film every emulated frame (60 a second)")


def read_actions(run: runs.Run) -> list[int]:
    recorded = durable.read_arrays(run.decisions).get("actions")
    if recorded is None or recorded.ndim != 1 or not np.issubdtype(recorded.dtype, np.integer):
        raise durable.DamagedFileError(run.decisions, "it has no actions")
    return recorded.tolist()


def main() -> int | None:
    run = runs.find(Path(_WORKDIR.value), _GAME.value, _SEED.value)
    record = runs.read_record(run)
    assert record is not None  # or it would not have been found
    config = configs.from_settings(EpisodeConfig, record["config"], run.record)
    actions = read_actions(run)
    score = 0.0
    for transition, _ in tqdm(
        replay(config, run.seed, actions), "replaying", len(actions), leave=False
    ):
        score += transition.reward
    if score != record["score"]:
        raise UserError(
            f"the replay scored {score:,.0f}, but {run.record} says {record['score']:,}"
        )
    print(
        f"{run.game} seed {run.seed}: score {score:,.0f} in {len(actions):,} actions, as recorded"
    )
    if _VIDEO.value:
        video.film(run, config, _EVERY_FRAME.value)
        print(f"video: {run.video}")
    return None


if __name__ == "__main__":
    command.run(main)
