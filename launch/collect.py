"""Collects screens to train a VAE on, by playing.

    python -m launch.collect --game=MsPacman --num_screens=15000 --workdir=runs/mspacman-screens

The work directory is the screen store that `launch.train --screens=` reads. Stopped or killed, it goes on where it was.
"""

from pathlib import Path

from absl import flags

from launch import command, play_flags
from vaeiw_jax.playing.collecting import CollectConfig, collect

command.define_flags(CollectConfig)
flags.adopt_module_key_flags(play_flags)
_WORKDIR = flags.DEFINE_string("workdir", None, "the screen store (default: runs/GAME-screens)")


def main() -> int | None:
    config = command.read_flags(CollectConfig, play_flags.settings(CollectConfig))
    game = config.episode.atari.game
    workdir = Path(_WORKDIR.value or f"runs/{game}-screens")
    with command.progress_bar(f"collecting {game}", "screens") as bar:
        record = collect(config, workdir, command.Interrupt(), bar.tell)
    if record is None:
        return command.stopped()
    print(
        f"{record['screens']:,} screens of {game} in {workdir}, {record['duplicates']:,} of them seen before, "
        f"from {record['finished_episodes']:,} finished episodes\n"
        f"next: python -m launch.train --screens={workdir} --workdir=runs/{game}-vae"
    )
    return None


if __name__ == "__main__":
    command.run(main)
