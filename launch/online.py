"""Learns an encoder while it plays, as Olive does: games alternate with training on the screens explained worst.

    python -m launch.online --game=MsPacman --start_from=universal --workdir=runs/mspacman-online
    python -m launch.play --game=MsPacman --features=vae:runs/mspacman-online

The first game is played with B-PROST features; with --start_from it is played with that model. After each game, some of
the distinct screens that its planner generated (--added_screens) are added to the data set: those that the current
model explains worst (--choose_by). The VAE is trained on the data set, and the next game is played with it, until
--simulator_calls are spent. Then --evaluations games are played with the last VAE.

Learning goes on where it was after an interruption, kill -9 included; with --budget_nodes, which is the default, it
comes to the same result. What is Olive's (Ayton and Asai, ICAPS 2022) and what is ours is said below, flag by flag; the
defaults of --epochs, --batch_size and --learning_rate are ours, for a CPU. Olive's training is

    --relearn=anew --epochs=100 --batch_size=64 --learning_rate=1e-4 --learning_rate_end=0 --beta=1 --tau_start=5

docs/online.md tells what a run leaves.
"""

from pathlib import Path

from absl import flags

from launch import command, play_flags
from vaeiw_jax import cores
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.experiments import estimates, online
from vaeiw_jax.experiments.online_config import NOT_SETTINGS, SETTINGS, OnlineConfig, configure
from vaeiw_jax.reports import online_report
from vaeiw_jax.training.checkpoints import quiet_orbax

command.define_flags(OnlineConfig, exclude=NOT_SETTINGS)
flags.adopt_module_key_flags(play_flags)
_WORKDIR = flags.DEFINE_string("workdir", None, "for everything (default: runs/GAME-online)")


def read_config() -> OnlineConfig:
    game = command.read_flags(AtariConfig).game
    return configure(game, play_flags.PROTOCOL.value, **command.given_flags(SETTINGS - {"game"}))


def print_estimate(config: OnlineConfig) -> None:
    longest = estimates.duration(estimates.learning_online(config, cores.usable_cores()))
    print(
        f"without an accelerator, this takes about {longest} if games go on to --episode_calls; "
        "where they end sooner there are more of them, and more trainings"
    )


def main() -> int | None:
    quiet_orbax()
    config = read_config()
    workdir = Path(_WORKDIR.value or f"runs/{config.game}-online")
    if online.finished(config, workdir) is None:
        print_estimate(config)
    with command.progress_bar(f"learning {config.game}", "calls") as bar:
        record = online.learn(
            config,
            workdir,
            command.Interrupt(),
            bar.tell,
            lambda lines: online_report.write(config.game, lines, [], workdir),
        )
    if record is None:
        return command.stopped()
    online_report.write(config.game, record["curve"], record["evaluation"], workdir)
    print(
        f"{len(record['curve'])} games and {record['simulator_calls']:,} simulator calls gave {record['screens']:,} "
        f"screens; with the last VAE: {online_report.summary(record['evaluation'])}\n"
        f"model: {workdir / 'model'}\nreport: {workdir / online_report.PAGE}"
    )
    return None


if __name__ == "__main__":
    command.run(main)
