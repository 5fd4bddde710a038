"""Where an evaluation stands, read from its work directory: by anyone, on any machine that sees it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import estimates
from vaeiw_jax.experiments.jobs import KINDS, Job
from vaeiw_jax.experiments.worker import HEARTBEAT_SECONDS

ALIVE_SECONDS = 6 * HEARTBEAT_SECONDS
"""A job whose heartbeat is older than this is not running."""


@dataclass(frozen=True)
class Status:
    jobs: Sequence[Job]
    done: set[str]
    running: dict[str, dict[str, Any]]
    """The latest heartbeat of each running job."""
    failed: dict[str, dict[str, Any]]

    @property
    def left(self) -> int:
        return len(self.jobs) - len(self.done) - len(self.running) - len(self.failed)

    @property
    def seconds_left(self) -> float:
        finished = self.done | self.failed.keys()
        return estimates.expected(self.jobs, finished, len(self.running))


def of_jobs(jobs: Sequence[Job]) -> Status:
    """What the files say now."""
    done = {job.name for job in jobs if job.is_done()}
    running, failed = {}, {}
    for job in jobs:
        if job.name in done:
            continue
        heartbeat = _read(job, "running", _HEARTBEAT)
        if heartbeat is not None and _age(job) < ALIVE_SECONDS:
            running[job.name] = heartbeat
            continue
        failure = _read(job, "failed", _FAILURE)
        if failure is not None:
            failed[job.name] = failure
    return Status(jobs, done, running, failed)


_HEARTBEAT = {"machine": str, "cores": list, "started": float, "steps": int, "of": int}
_FAILURE = {"why": str, "log": (str, type(None))}


def _read(job: Job, folder: str, entries: Mapping[str, Any]) -> dict[str, Any] | None:
    """A file about the job; None if it is not there or damaged, as it adds nothing to the results."""
    try:
        about = durable.read_json(job.beside(folder, ".json"))
    except (UserError, FileNotFoundError):
        return None
    whole = all(isinstance(about.get(name, ...), kind) for name, kind in entries.items())
    return about if whole else None


def _age(job: Job) -> float:
    try:
        return time.time() - job.beside("running", ".json").stat().st_mtime
    except FileNotFoundError:  # it has just ended
        return ALIVE_SECONDS


def describe(status: Status) -> str:
    """A few lines for a terminal."""
    lines = []
    for kind in KINDS:
        names = [job.name for job in status.jobs if job.kind == kind]
        if names:
            counts = [
                sum(name in group for name in names)
                for group in (status.done, status.running, status.failed)
            ]
            lines.append(
                "{:<8} {:>6} done {:>5} running {:>5} failed {:>6} left".format(
                    kind, *counts, len(names) - sum(counts)
                )
            )
    for name, beat in sorted(status.running.items()):
        steps = f", {beat['steps']:,} of at most {beat['of']:,}" if beat["of"] else ""
        elapsed = estimates.duration(time.time() - beat["started"])
        lines.append(f"  {name} on {beat['machine']}, cores {beat['cores']}, for {elapsed}{steps}")
    lines += [
        f"  {name} failed: {about['why']} (log: {about['log']})"
        for name, about in sorted(status.failed.items())
    ]
    if status.left or status.running:
        lines.append(
            f"expected: {estimates.duration(status.seconds_left)} with {max(1, len(status.running))} at once"
        )
    else:
        lines.append(
            "nothing is left to do" if not status.failed else "nothing is left but what failed"
        )
    return "\n".join(lines)
