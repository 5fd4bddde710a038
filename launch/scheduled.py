"""Many jobs at once, with a bar that shows how many are done: what commands that schedule jobs share."""

import sys
from collections.abc import Callable, Sequence

from tqdm import tqdm

from launch import command
from vaeiw_jax.experiments.jobs import Job
from vaeiw_jax.experiments.scheduling import Engine, Scheduler, Tally
from vaeiw_jax.progress import Progress


def run(
    title: str,
    jobs: Sequence[Job],
    engine: Engine,
    retries: int,
    on_change: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Does the jobs, saying which are tried again and which failed, until all are done or Ctrl-C."""

    def show(tally: Tally) -> None:
        on_change(tally)
        text = f"{len(tally.running)} running, {len(tally.failed)} failed, {tally.left} left"
        bar.tell(Progress(len(tally.done), tally.total, text))

    def retried(job: Job, why: str) -> None:
        tqdm.write(f"{job.name} is tried again: {why}", sys.stderr)

    def failed(job: Job, why: str) -> None:
        log = job.beside("logs", ".log")
        tqdm.write(
            f"{job.name} failed: {why}{f' (log: {log})' if log.exists() else ''}", sys.stderr
        )

    with command.progress_bar(title, "jobs") as bar:
        return Scheduler(jobs, engine, retries, show, retried, failed).run(command.Interrupt())


def summary(tally: Tally) -> str:
    """How many jobs are done, and what to do about those that failed."""
    done = f"{len(tally.done):,} of {tally.total:,} jobs are done"
    if not tally.failed:
        return done
    return f"{done}\n{len(tally.failed):,} failed; run the same command again to try them again"
