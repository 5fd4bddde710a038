"""Plays a recorded run's actions again and checks that they lead to the recorded score.

python -m launch.replay --workdir=runs/pong --seed=0 [--game=Pong] [--video]
"""

from pathlib import Path

from absl import flags

from launch import command
from vaeiw_jax.playing import replaying, runs, video

_WORKDIR = flags.DEFINE_string("workdir", None, "where the run was recorded")
_GAME = flags.DEFINE_string("game", None, "the game, if the work directory has more than one")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the run")
_VIDEO = flags.DEFINE_boolean("video", False, "film it, to WORKDIR/videos/GAME/seed-S.mp4")
_EVERY_FRAME = flags.DEFINE_boolean("every_frame", False, "film every emulated frame (60 a second)")


def main() -> int | None:
    command.require_with(_EVERY_FRAME, _VIDEO)
    run = runs.find(Path(command.required(_WORKDIR)), _GAME.value, _SEED.value)
    with command.progress_bar("replaying", "actions", leave=False) as bar:
        config, record = replaying.verify(run, bar.tell)
    print(
        f"{run.game} seed {run.seed}: score {record['score']:,} in {record['actions']:,} actions, as recorded"
    )
    if _VIDEO.value:
        video.film(run, config, _EVERY_FRAME.value)
        print(f"video: {run.video}")
    return None


if __name__ == "__main__":
    command.run(main)
