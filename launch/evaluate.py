"""Runs the paper's experiments, or others, on this machine or on a Ray cluster.

    python -m launch.evaluate --experiment=main --games=Pong,MsPacman --runs=10 --workdir=runs/main
    python -m launch.evaluate --experiment=main --engine=ray --ray_address=auto --workdir=/shared/main
    python -m launch.evaluate --status --workdir=runs/main
    python -m launch.evaluate --experiment=table --publish_to=docs/results --workdir=runs/table

Stopped or killed, it goes on where it was. `launch.report` makes a report of what there is at any time. The last of
these plays what the results that come with the project still lack, and adds it to them.
"""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from absl import flags
from tqdm import tqdm

from launch import command, scheduled
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.experiments import (
    estimates,
    evaluation,
    expansion,
    jobs,
    results_table,
    status,
)
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.jobs import Job
from vaeiw_jax.experiments.local_engine import LocalEngine
from vaeiw_jax.experiments.ray_engine import RayEngine
from vaeiw_jax.experiments.scheduling import Engine, Tally
from vaeiw_jax.playing.runs import PlayConfig

command.define_flags(EvaluationConfig)
_WORKDIR = flags.DEFINE_string("workdir", None, "where everything is recorded")
_STORE = flags.DEFINE_string(
    "store", None, "screens and VAEs, to share between evaluations (default: in --workdir)"
)
_ENGINE = flags.DEFINE_string("engine", "local", "local: this machine; ray: a Ray cluster")
_RAY_ADDRESS = flags.DEFINE_string("ray_address", "auto", "ray: HOST:PORT of the cluster, or auto")
_CPUS = flags.DEFINE_integer("cpus_per_job", 1, "cores for each job")
_RETRIES = flags.DEFINE_integer("retries", 2, "how often a job that failed is tried again")
_DRY_RUN = flags.DEFINE_boolean("dry_run", False, "list the jobs and estimate the hours")
_PUBLISH_TO = flags.DEFINE_string(
    "publish_to",
    None,
    "folder of results, such as docs/results: runs that are there are not played again, those that end are added",
)
_STATUS = flags.DEFINE_boolean("status", False, "show how far the evaluation in --workdir is")


def show_status(workdir: Path) -> None:
    """Once, or at a terminal until Ctrl-C or until nothing is left."""
    config, store = evaluation.of_workdir(workdir)
    all_jobs = expansion.expand(config, workdir, store)
    while True:
        now = status.of_jobs(all_jobs)
        live = sys.stdout.isatty()
        print("\033[H\033[2J" * live + status.describe(now), flush=True)
        if not live or not (now.left or now.running):
            return
        time.sleep(2)


def show_plan(all_jobs: Sequence[Job]) -> None:
    """The jobs that are not done yet, and how long they take."""
    seconds = estimates.at_most(all_jobs, _CPUS.value)
    left = [job for job in all_jobs if not job.is_done()]
    if not left:
        print("nothing is left to do")
        return
    for job in left:
        print(f"{job.kind:<8} {job.name}  (at most {estimates.duration(seconds[job.name])})")
    print()
    if len(left) < len(all_jobs):
        print(f"{len(all_jobs) - len(left):>7,} done already")
    for kind, number in jobs.count(left).items():
        hours = sum(seconds[job.name] for job in left if job.kind == kind) / 3600
        if number:
            print(f"{number:>7,} {kind:<8} at most {hours:>12,.1f} hours in all")
    slots = max(1, usable_cores() // _CPUS.value)
    for machines in (1, 10, 100):
        longest = estimates.duration(estimates.wall_clock(left, seconds, machines * slots))
        machine = "machine" if machines == 1 else "machines"
        print(
            f"{machines:>7,} {machine} like this, {slots} {'job' if slots == 1 else 'jobs'} at once on each: "
            f"at most {longest}"
        )
    print(
        "games that end before the limit on actions take less; --status shows what to expect as it goes"
    )


class Publisher:
    """Adds runs to the results as they end, and says what does not belong there."""

    def __init__(self, directory: Path, jobs: Sequence[Job]):
        self._directory = directory
        self._jobs = {job.name: job for job in jobs}
        self._seen: set[str] = set()
        self.refused: dict[str, str] = {}

    def publish(self, tally: Tally) -> None:
        new = tally.done - self._seen
        if not new:
            return
        self._seen |= new
        done = [job for name, job in self._jobs.items() if name in new]
        refused = results_table.publish(self._directory, done)
        for name, why in refused.items():
            tqdm.write(f"{name} is not published: {why}", sys.stderr)
        self.refused |= refused


def engine(workdir: Path) -> Engine:
    if _ENGINE.value == "local":
        return LocalEngine(_CPUS.value)
    if _ENGINE.value == "ray":
        return RayEngine(_RAY_ADDRESS.value, _CPUS.value, workdir)
    raise unknown("engine", _ENGINE.value, ("local", "ray"))


def main() -> int | None:
    workdir = Path(command.required(_WORKDIR))
    results = Path(_PUBLISH_TO.value) if _PUBLISH_TO.value else None
    if _STATUS.value and results is None:
        show_status(workdir)
        return None
    config = command.read_flags(EvaluationConfig)
    if _STATUS.value and results is not None:
        all_jobs = expansion.expand(config, workdir)
        results_table.require_publishable(results, all_jobs)
        print(results_table.filling(results, all_jobs))
        return None
    store = Path(_STORE.value) if _STORE.value else None
    all_jobs = expansion.expand(config, workdir, store)
    if results:
        results_table.require_publishable(results, all_jobs)
        all_jobs = results_table.missing(results, all_jobs)
    if _CPUS.value < 1:
        raise UserError(f"--cpus_per_job must be at least 1, not {_CPUS.value}")
    if _ENGINE.value == "local":
        LocalEngine(_CPUS.value)  # refuses more cores than there are
    for job in all_jobs:
        if isinstance(job.config, PlayConfig) and not job.needs:
            job.config.episode.identified()  # refuses a model that is not there
    if _RETRIES.value < 0:
        raise UserError(f"--retries must be 0 or more, not {_RETRIES.value}")
    if _DRY_RUN.value:
        show_plan(all_jobs)
        return None
    chosen = engine(workdir)
    evaluation.claim(config, workdir, store)
    publisher = Publisher(results, all_jobs) if results else None
    on_change = publisher.publish if publisher else lambda tally: None
    tally = scheduled.run("evaluating", all_jobs, chosen, _RETRIES.value, on_change)
    if tally.stopped:
        return command.stopped()
    print(scheduled.summary(tally))
    if results:
        print(f"{len(results_table.read(results)):,} runs in {results / results_table.FILE}")
    elif tally.done:
        print(f"next: python -m launch.report --workdir={os.path.relpath(workdir)}")
    return 1 if tally.failed or (publisher and publisher.refused) else None


if __name__ == "__main__":
    command.run(main)
