"""From a game to learned play: collects screens, trains a VAE on them, plays with it, and reports.

    python -m launch.pipeline --game=MsPacman --preset=laptop --workdir=runs/mspacman-pipeline

What is done is not done again, so run the same command again to go on after an interruption. --iterations=3 repeats it
twice more, with screens collected by what was learned before. Flags of launch.collect, launch.train and launch.play
are passed on to them.
"""

import contextlib
import dataclasses
import shlex
import subprocess
import sys
from pathlib import Path

import jax
from absl import flags

from launch import command, play_flags
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.experiments import estimates, pipeline
from vaeiw_jax.experiments.pipeline import PRESETS, PipelineConfig, Settings, Step
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.reports import pipeline_report
from vaeiw_jax.vae.steps import TrainConfig

_WORKDIR = flags.DEFINE_string("workdir", None, "for everything (default: runs/GAME-pipeline)")
_PRESET = flags.DEFINE_string(
    "preset", "paper", "paper: as published; laptop: within two hours on two cores"
)
for _config in (PipelineConfig, CollectConfig, TrainConfig):  # which hold all the others
    command.define_flags(_config, exclude=("screens", "start_from"))
flags.adopt_module_key_flags(play_flags)


def settings() -> tuple[PipelineConfig, Settings]:
    """The preset, changed by the flags that were given."""
    if _PRESET.value not in PRESETS:
        raise unknown("preset", _PRESET.value, PRESETS)
    preset_config, preset = PRESETS[_PRESET.value]
    config = command.read_flags(PipelineConfig, dataclasses.asdict(preset_config))
    given = {name: flags.FLAGS[name].value for name in flags.FLAGS if command.given(name)}
    told = pipeline.told(preset, given)
    # The steps check what they are told as well, but perhaps hours later.
    defaults = play_flags.episode_defaults()
    command.read_flags(CollectConfig, defaults | dict(told.collect))
    command.read_flags(EpisodeConfig, defaults | dict(told.play))
    command.read_flags(TrainConfig, dict(told.train), screens="")
    return config, told


def say_how_long(seconds: float) -> None:
    if jax.default_backend() != "cpu":
        return
    print(f"this takes at most about {estimates.say(seconds)} on a CPU like two cores of a server")
    if _PRESET.value == "paper" and seconds > 2 * 3600:
        print("on a machine without an accelerator, --preset=laptop ends within two hours")


def run(step: Step, interrupt: command.Interrupt) -> bool:
    """Runs a step in a process of its own; returns whether it is done, rather than interrupted."""
    print(f"\n{step.title}\n  python {shlex.join(step.arguments)}", flush=True)
    process = subprocess.Popen([sys.executable, *step.arguments])
    while process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)
        if interrupt():
            process.terminate()
            process.wait()
    if interrupt():
        return False
    if process.returncode:
        raise UserError("that failed, as it says above; mend it and run the same command again")
    return True


def main() -> int | None:
    config, told = settings()
    game = command.read_flags(AtariConfig).game
    seed = flags.FLAGS.seed
    workdir = Path(_WORKDIR.value or f"runs/{game}-pipeline")
    pipeline.claim(game, told, workdir)

    def steps(number: int) -> list[Step]:
        return pipeline.iteration(game, number, config, told, seed, workdir)

    interrupt = command.Interrupt()
    numbers = range(1, config.iterations + 1)
    say_how_long(pipeline.at_most(step for number in numbers for step in steps(number)))
    for number in numbers:
        for i in range(len(steps(number))):
            step = steps(number)[i]  # made anew, for what was done since decides whether it is done
            if step.done:
                print(f"{step.title}: done before")
            elif not run(step, interrupt):
                print(f"stopped and saved; to go on: {shlex.join(sys.orig_argv)}")
                return 130
        pipeline_report.write(game, number, workdir)
        scores = [record["score"] for record in pipeline.records(game, number, workdir)]
        print(f"\niteration {number}: {pipeline_report.summary(scores)}")
    print(f"report: {workdir / pipeline_report.PAGE}")
    return None


if __name__ == "__main__":
    command.run(main)
