"""Plays games with a width-based planner and records them.

    python -m launch.play --game=Alien --runs=3 --video --workdir=runs/alien
    python -m launch.play --game=Pong --features=bprost --budget_nodes=100 --max_actions=300

A run that was cut off goes on where it was last saved; a finished one is not played again.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from launch import command, play_flags
from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import protocols, video
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig, Run, play

command.define_flags(PlayConfig)
flags.adopt_module_key_flags(play_flags)
_RUNS = flags.DEFINE_integer("runs", 1, "how many runs, with seeds counted up from --seed")
_WORKDIR = flags.DEFINE_string(
    "workdir",
    None,
    "where everything is recorded (default: runs/GAME-FEATURES-PLANNER, and the protocol if one is given)",
)
_VIDEO = flags.DEFINE_boolean("video", False, "film every run, to WORKDIR/videos/GAME/seed-S.mp4")
_EVERY_FRAME = flags.DEFINE_boolean("every_frame", False, "film every emulated frame (60 a second)")
_PROFILE = flags.DEFINE_boolean("profile", False, "print where the time of the decisions went")
_BAR = "{desc}: {n_fmt} actions{postfix} [{elapsed} gone, at most {remaining} left]"


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


def describe(record: dict[str, Any], run: Run, played_before: bool) -> str:
    """A line about a finished run."""
    return (
        f"{run.game} seed {run.seed}: score {record['score']:,} in {record['actions']:,} actions "
        f"({record['stop'].replace('_', ' ')}), "
        f"{record['decisions']['mean_new_nodes']:.1f} nodes a decision"
        f"{', played before' if played_before else ''}: {run.record}"
    )


def default_workdir(episode: EpisodeConfig, protocol: str) -> Path:
    """A directory for games of one kind."""
    kind, _, which = episode.features.features.partition(":")
    parts = [episode.atari.game, kind, Path(which).name, episode.planner.planner.replace(":", "-")]
    if protocol != protocols.DEFAULT:
        parts.append(protocol)
    return Path("runs") / "-".join(part for part in parts if part)


def main() -> int | None:
    config = command.read_flags(PlayConfig, play_flags.settings(PlayConfig))
    if _RUNS.value < 1:
        raise UserError(f"--runs must be at least 1, not {_RUNS.value}")
    episode = config.episode
    game = episode.atari.game
    command.require_with(_EVERY_FRAME, _VIDEO)
    default = default_workdir(episode, play_flags.PROTOCOL.value)
    workdir = Path(_WORKDIR.value) if _WORKDIR.value else default
    play_flags.tell_features(episode)
    interrupt = command.Interrupt()
    scores = []
    for seed in range(config.seed, config.seed + _RUNS.value):
        run = Run(workdir, game, seed)
        played_before = run.record.exists()
        with command.progress_bar(f"{game} seed {seed}", "actions", bar_format=_BAR) as bar:
            record = play(dataclasses.replace(config, seed=seed), workdir, interrupt, bar.tell)
        if record is None:
            return command.stopped()
        scores.append(record["score"])
        print(describe(record, run, played_before))
        if _PROFILE.value:
            print(profile(durable.read_arrays(run.decisions)))
        if _VIDEO.value:
            video.film(run, episode, _EVERY_FRAME.value)
            print(f"video: {run.video}")
    if len(scores) > 1:
        error = np.std(scores, ddof=1) / len(scores) ** 0.5
        print(
            f"{game}: mean score {np.mean(scores):,.1f} ± {error:,.1f} (standard error, {len(scores)} runs)"
        )
    return None


if __name__ == "__main__":
    command.run(main)
