"""Collects screens to train a VAE on, by playing.

    python -m launch.collect --game=MsPacman --num_screens=15000 --workdir=runs/mspacman-screens
    python -m launch.collect --game=all --num_screens=500 --budget_nodes=50 --workdir=runs/screens

The work directory is the screen store that `launch.train --screens=` reads; for several games (`all`, or names with
commas) it holds one store per game, and as many games are played at once as there are cores. Stopped or killed, it goes
on where it was.
"""

from pathlib import Path

from absl import flags

from launch import command, play_flags, scheduled
from vaeiw_jax.experiments import many_games
from vaeiw_jax.experiments.local_engine import LocalEngine
from vaeiw_jax.playing.collecting import CollectConfig, collect

command.define_flags(CollectConfig)
flags.adopt_module_key_flags(play_flags)
_WORKDIR = flags.DEFINE_string(
    "workdir", None, "the screen store (default: runs/GAME-screens, of several games runs/screens)"
)


def collect_from_many_games() -> int | None:
    games, left_out = many_games.games(flags.FLAGS.game)
    if left_out:
        print(
            f"{len(left_out)} games are left out, having screens of another size or no support in the emulator: "
            f"{', '.join(left_out)}"
        )
    workdir = Path(_WORKDIR.value or "runs/screens")
    jobs = many_games.jobs(games, play_flags.settings(CollectConfig), workdir)
    tally = scheduled.run(f"collecting from {len(games)} games", jobs, LocalEngine(), retries=1)
    if tally.stopped:
        return command.stopped()
    print(scheduled.summary(tally))
    if tally.failed:
        return 1
    print(f"next: python -m launch.train --screens={workdir} --workdir=runs/vae")
    return None


def main() -> int | None:
    if many_games.is_many(flags.FLAGS.game):
        return collect_from_many_games()
    config = command.read_flags(CollectConfig, play_flags.settings(CollectConfig))
    game = config.episode.atari.game
    workdir = Path(_WORKDIR.value or f"runs/{game}-screens")
    play_flags.tell_features(config.episode)
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
