"""From a game to learned play: collects screens, trains a VAE on them, plays with it, and reports.

    python -m launch.pipeline --game=MsPacman --preset=laptop --workdir=runs/mspacman-pipeline

What is done is not done again, so run the same command again to go on after an interruption. --iterations=3 repeats it
twice more, with screens collected by what was learned before. It takes the flags of launch.collect, launch.train and
launch.play.
"""

import subprocess
import sys
from pathlib import Path

from absl import flags

from launch import command, play_flags
from vaeiw_jax import configs
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import estimates, pipeline
from vaeiw_jax.experiments.jobs import COLLECT, PLAY, TRAIN, Job
from vaeiw_jax.experiments.pipeline import PipelineConfig
from vaeiw_jax.playing import video
from vaeiw_jax.playing.runs import PlayConfig
from vaeiw_jax.progress import Progress
from vaeiw_jax.reports import pipeline_report
from vaeiw_jax.training.checkpoints import quiet_orbax

_WORKDIR = flags.DEFINE_string("workdir", None, "for everything (default: runs/GAME-pipeline)")
_PRESET = flags.DEFINE_string(
    "preset",
    pipeline.DEFAULT_PRESET,
    "paper: as published; laptop: from the universal VAE, with a tenth of the screens",
)
_COLLECT_NODES = flags.DEFINE_integer(
    "collect_nodes",
    None,
    "nodes a decision while collecting (default: the budget that games are played with)",
)
command.define_flags(PipelineConfig, exclude=pipeline.OWN_BY_ITERATION)
flags.adopt_module_key_flags(play_flags)

_UNITS = {COLLECT: "screens", TRAIN: "steps", PLAY: "actions"}


def read_config() -> PipelineConfig:
    """The preset, changed by the flags that were given."""
    game = command.read_flags(AtariConfig).game
    own = {"game", *pipeline.OWN_BY_ITERATION}
    given = command.given_flags(configs.names(PipelineConfig) - own)
    return pipeline.configure(
        game, _PRESET.value, play_flags.PROTOCOL.value, _COLLECT_NODES.value, **given
    )


def print_estimate(seconds: float) -> None:
    longest, cores = estimates.duration(seconds), usable_cores()
    machine = f"{cores} core{'s' if cores > 1 else ''} like these"
    print(f"without an accelerator, this takes at most about {longest} on {machine}")
    if _PRESET.value == "paper" and seconds > 3600:
        print(
            "on such a machine, --preset=laptop, which starts from the universal VAE, ends much sooner"
        )


class Steps:
    """What the command adds to the chain of jobs: a bar for each, films, and the pages about each iteration."""

    def __init__(self, config: PipelineConfig, workdir: Path, interrupt: command.Interrupt):
        self._config = config
        self._workdir = workdir
        self._interrupt = interrupt
        self._bar = command.ProgressBar("", "")

    def before_job(self, job: Job) -> None:
        self._bar.close()
        self._bar = command.ProgressBar(job.kind, _UNITS[job.kind])
        done = ": done before" if job.is_done() else ""
        print(f"\n{pipeline.describe(job)}{done}", flush=True)

    def tell(self, progress: Progress) -> None:
        self._bar.tell(progress)

    def after_iteration(self, number: int) -> None:
        self._bar.close()
        for job in pipeline.iterations(self._config, self._workdir)[number - 1]:
            if isinstance(job.config, PlayConfig) and not self._interrupt():
                video.film(job.run, job.config.episode)
        if not self._interrupt():
            self._inspect(number)
        if not self._interrupt():
            game = self._config.game
            pipeline_report.write(game, number, self._workdir)
            scores = [record["score"] for record in pipeline.records(game, number, self._workdir)]
            print(f"\niteration {number}: {pipeline_report.summary(scores)}")

    def _inspect(self, number: int) -> None:
        """Looks inside the VAE, in a process of its own."""
        page = self._workdir / "inside" / str(number)
        if (page / "index.html").exists():
            return
        flags_of_inspect = {
            "checkpoint": self._workdir / "vaes" / str(number),
            "screens": self._workdir / "screens" / str(number),
            "run": self._workdir / "runs" / str(number),
            "run_seed": self._config.play.seed,
            "fresh_tree": True,
            "workdir": page,
        }
        given = [f"--{name}={value}" for name, value in flags_of_inspect.items()]
        process = subprocess.Popen([sys.executable, "-m", "launch.inspect", *given])
        while process.poll() is None:
            try:
                process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                if self._interrupt():
                    process.terminate()
        if process.returncode and not self._interrupt():
            raise UserError("launch.inspect failed, as it says above; run the same command again")


def main() -> int | None:
    quiet_orbax()
    config = read_config()
    workdir = Path(_WORKDIR.value or f"runs/{config.game}-pipeline")
    interrupt = command.Interrupt()
    steps = Steps(config, workdir, interrupt)
    print_estimate(pipeline.at_most(config, workdir))
    played = pipeline.run(
        config, workdir, interrupt, steps.tell, steps.before_job, steps.after_iteration
    )
    if played is None or interrupt():
        return command.stopped()
    print(f"report: {workdir / pipeline_report.PAGE}")
    return None


if __name__ == "__main__":
    command.run(main)
