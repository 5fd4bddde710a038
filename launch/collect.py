"""Collects screens to train a VAE on, by playing.

    python -m launch.collect --game=MsPacman --num_screens=15000 --workdir=runs/mspacman-screens

The work directory is the screen store that `launch.train --screens=` reads. Stopped or killed, it goes on where it was.
"""

import shlex
import sys
import time
from pathlib import Path

from absl import flags
from tqdm import tqdm

from launch import command, play_flags
from vaeiw_jax import durable, provenance, workdirs
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing.collecting import CollectConfig, Collector

command.define_flags(CollectConfig)
flags.adopt_module_key_flags(play_flags)
_SEED = flags.DEFINE_integer("seed", 0, "seed of the first episode; those after it count up")
_WORKDIR = flags.DEFINE_string("workdir", None, "the screen store (default: runs/GAME-frames)")


def main() -> int | None:
    config = command.read_flags(CollectConfig, play_flags.episode_defaults())
    if _SEED.value < 0:
        raise UserError(f"--seed must be 0 or more, not {_SEED.value}")
    workdir = Path(_WORKDIR.value or f"runs/{config.episode.atari.game}-screens")
    with workdirs.alone_in(workdir):
        return collect(config, workdir)


def collect(config: CollectConfig, workdir: Path) -> int | None:
    game = config.episode.atari.game
    interrupt = command.Interrupt()
    started = time.time()
    emulators = play_flags.emulators(config.episode.planner.rollouts_in_flight)
    collector = Collector(config, workdir, _SEED.value, emulators)
    with tqdm(
        desc=f"collecting {game}",
        total=config.num_screens,
        initial=collector.count,
        unit=" screens",
        mininterval=0.2 if sys.stderr.isatty() else 10,
    ) as bar:

        def show(collector: Collector) -> None:
            bar.set_postfix_str(
                f"episode {len(collector.scores) + 1}, score {collector.episode.score:,}, "
                f"{collector.duplicates:,} duplicates",
                refresh=False,
            )
            bar.update(collector.count - bar.n)

        finished = collector.collect(show, interrupt)
    durable.write_json(workdir / "collection.json", collector.record())
    provenance.note_session(workdir / "collection.host.json", sys.orig_argv, started)
    if not finished:
        print(f"stopped and saved; to go on: {shlex.join(sys.orig_argv)}")
        return 130
    print(
        f"{collector.count:,} screens of {game} in {workdir}, {collector.duplicates:,} of them seen before, "
        f"from {len(collector.scores):,} finished episodes\n"
        f"next: python -m launch.train --screens={workdir} --workdir=runs/{game}-vae"
    )
    return None


if __name__ == "__main__":
    command.run(main)
