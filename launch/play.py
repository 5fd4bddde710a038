"""Plays games with a width-based planner and records them.

    python -m launch.play --game=Pong --features=bprost --budget_seconds=0.5 --runs=3 --workdir=runs/pong

A run that was cut off goes on where it was last saved; a finished one is not played again.
"""

import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags
from tqdm import tqdm

from launch import command, play_flags
from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import Decision
from vaeiw_jax.playing import runs, video
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.runs import Run

command.define_flags(EpisodeConfig)
flags.adopt_module_key_flags(play_flags)
_RUNS = flags.DEFINE_integer("runs", 1, "how many runs, with seeds counted up from --seed")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the first run")
_WORKDIR = flags.DEFINE_string(
    "workdir", None, "where everything is recorded (default: runs/GAME-FEATURES-PLANNER)"
)
_VIDEO = flags.DEFINE_boolean("video", False, "film every run, to WORKDIR/videos/GAME/seed-S.mp4")
_EVERY_FRAME = flags.DEFINE_boolean("every_frame", False, "film every emulated frame (60 a second)")
_PROFILE = flags.DEFINE_boolean("profile", False, "print where the time of the decisions went")
_SAVE_SECONDS = flags.DEFINE_float(
    "save_seconds", runs.SAVE_SECONDS, "save an unfinished run so often"
)


def play_with_progress(
    config: EpisodeConfig, run: Run, interrupt: command.Interrupt
) -> dict[str, Any] | None:
    """One run, with a line that tells how it goes."""
    with tqdm(
        total=config.most_actions,
        desc=f"{run.game} seed {run.seed}",
        bar_format="{desc}: {n_fmt} actions{postfix} [{elapsed} gone, at most {remaining} left]",
        mininterval=0.2 if sys.stderr.isatty() else 10,
    ) as bar:
        nodes: list[int] = []

        def show(episode: Episode, decision: Decision | None) -> None:
            if decision is None:  # the start, or where an earlier process left off
                bar.n = bar.initial = len(episode.actions)
                return
            nodes.append(decision.statistics.new_nodes)
            bar.set_postfix_str(
                f"score {episode.score:,}, {np.mean(nodes[-50:]):.0f} nodes a decision",
                refresh=False,
            )
            bar.update()

        return runs.play(
            config,
            run,
            emulators=play_flags.emulators(config.planner.rollouts_in_flight),
            command=sys.orig_argv,
            save_seconds=_SAVE_SECONDS.value,
            on_decision=show,
            interrupted=interrupt,
        )


def profile(decisions: dict[str, np.ndarray]) -> str:
    """A table of where the time of a run's decisions went.

    With emulators in processes of their own, their time runs beside the planner's and may exceed it.
    """
    total, nodes = decisions["seconds"].sum(), max(1, decisions["new_nodes"].sum())
    parts = {n: decisions[f"{n}_seconds"].sum() for n in ("emulator", "features", "novelty")}
    lines = [f"{'':10}{'ms a decision':>16}{'ms a node':>12}{'share':>8}"]
    for name, seconds in (*parts.items(), ("decision", total)):
        a_decision, a_node = 1e3 * seconds / len(decisions["seconds"]), 1e3 * seconds / nodes
        lines.append(f"{name:10}{a_decision:16.1f}{a_node:12.3f}{seconds / total:8.0%}")
    return "\n".join(lines)


def main() -> int | None:
    config = command.read_flags(EpisodeConfig, play_flags.episode_defaults())
    if _RUNS.value < 1:
        raise UserError(f"--runs must be at least 1, not {_RUNS.value}")
    if _SEED.value < 0:
        raise UserError(f"--seed must be 0 or more, not {_SEED.value}")
    game = config.atari.game
    default = Path("runs") / f"{game}-{config.features.kind}-{config.planner.planner}"
    workdir = Path(_WORKDIR.value) if _WORKDIR.value else default
    interrupt = command.Interrupt()
    scores = []
    for seed in range(_SEED.value, _SEED.value + _RUNS.value):
        run = Run(workdir, game, seed)
        finished_before = run.record.exists()
        record = play_with_progress(config, run, interrupt)
        if record is None:
            print(f"stopped and saved; to go on: {shlex.join(sys.orig_argv)}")
            return 130
        scores.append(record["score"])
        print(
            f"{game} seed {seed}: score {record['score']:,} in {record['actions']:,} actions "
            f"({record['stop'].replace('_', ' ')}), "
            f"{record['decisions']['mean_new_nodes']:.1f} nodes a decision"
            f"{', played before' if finished_before else ''}: {run.record}"
        )
        if _PROFILE.value:
            print(profile(durable.read_arrays(run.decisions)))
        if _VIDEO.value:
            video.film(run, config, _EVERY_FRAME.value)
            print(f"video: {run.video}")
    if len(scores) > 1:
        error = np.std(scores, ddof=1) / len(scores) ** 0.5
        print(
            f"{game}: mean score {np.mean(scores):,.1f} ± {error:,.1f} (standard error, {len(scores)} runs)"
        )
    return None


if __name__ == "__main__":
    command.run(main)
