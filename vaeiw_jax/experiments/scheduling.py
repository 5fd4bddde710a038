"""The order of the work: what is ready is started, what failed is tried again.

The work directory is the truth. A job is done if its record is there and whole, whoever wrote it: so a scheduler can be
killed and started again at any moment, and two of them on one directory share the work.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vaeiw_jax import durable
from vaeiw_jax.experiments.jobs import Job
from vaeiw_jax.experiments.processes import BUSY, DONE, FAILED, STOPPED, Outcome

POLL_SECONDS = 0.5
BUSY_SECONDS = 2.0, 60.0
"""How long a job that another evaluation is doing is postponed: at first, and at most, doubling in between."""
MAX_LOST_MACHINES = 50
"""How often the machine of one job may be lost before the job itself counts as failed."""


class Engine(Protocol):
    """Where worker processes run."""

    def room(self) -> int:
        """How many more jobs may be started."""
        ...

    def start(self, job: Job) -> None: ...

    def ended(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """The attempts that have ended; waits at most this long for one."""
        ...

    def stop(self) -> None:
        """Asks all running jobs to save and end."""
        ...


@dataclass
class Tally:
    """Where an evaluation stands."""

    total: int
    done: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    """Why, by the job's name."""
    stopped: bool = False

    @property
    def left(self) -> int:
        return self.total - len(self.done) - len(self.failed) - len(self.running)


class Scheduler:
    """Brings jobs to an end on an engine.

    Args:
      jobs: all there are; those that others need come first.
      engine: where they run.
      retries: how often a job that failed is tried again.
      on_change: called when a job begins or ends.
      on_retry: called with a job that is to be tried again, and why.
      on_failure: called with a job that is not tried again, and why.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        engine: Engine,
        retries: int = 2,
        on_change: Callable[[Tally], None] = lambda tally: None,
        on_retry: Callable[[Job, str], None] = lambda job, why: None,
        on_failure: Callable[[Job, str], None] = lambda job, why: None,
    ):
        self._engine = engine
        self._retries = retries
        self._on_change = on_change
        self._on_retry = on_retry
        self._on_failure = on_failure
        self._attempts: dict[str, int] = {}
        self._lost_machines: dict[str, int] = {}
        self._times_busy: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._waiting = {job.name: job for job in jobs}
        self.tally = Tally(len(jobs))

    def run(self, interrupted: Callable[[], bool] = lambda: False) -> Tally:
        """Returns when every job is done or has failed, or when it is interrupted and all have saved."""
        tally = self.tally
        self._find_finished_jobs()
        while self._waiting or tally.running:
            if interrupted() and not tally.stopped:
                tally.stopped = True
                self._engine.stop()
            if tally.stopped and not tally.running:
                break
            if not tally.stopped:
                self._fail_those_that_need_failed_jobs()
                self._start_ready_jobs()
            for job, outcome in self._engine.ended(POLL_SECONDS):
                self._handle(job, outcome)
                self._on_change(tally)
        return tally

    def _find_finished_jobs(self) -> None:
        for name, job in list(self._waiting.items()):
            if job.is_done():
                self._finish(name)
        self._on_change(self.tally)

    def _finish(self, name: str) -> None:
        job = self._waiting.pop(name)
        job.beside("failed", ".json").unlink(missing_ok=True)
        self.tally.done.add(name)

    def _fail_those_that_need_failed_jobs(self) -> None:
        """Jobs whose needs failed, and in the same pass those that need these: they come later."""
        for job in list(self._waiting.values()):
            missing = next((need for need in job.needs if need in self.tally.failed), None)
            if missing is not None:
                self._fail(job, f"it needs {missing}, which failed")

    def _start_ready_jobs(self) -> None:
        now = time.monotonic()
        room = self._engine.room()
        for name, job in list(self._waiting.items()):
            if room <= 0:
                return
            if name in self.tally.running:
                continue
            if not all(need in self.tally.done for need in job.needs):
                continue
            if job.is_done():  # another evaluation was faster
                self._finish(name)
            elif now >= self._not_before.get(name, 0.0):
                self.tally.running.add(name)
                self._engine.start(job)
                room -= 1
            else:
                continue
            self._on_change(self.tally)

    def _handle(self, job: Job, outcome: Outcome) -> None:
        self.tally.running.discard(job.name)
        if outcome.code == DONE and job.is_done():
            self._finish(job.name)
        elif outcome.code == BUSY:
            self._postpone(job)
        elif outcome.code == STOPPED or (self.tally.stopped and outcome.killed):
            pass  # it has saved what there was, and waits for the next start
        elif outcome.code == DONE:
            self._retry_or_fail(
                job, Outcome(FAILED, f"the worker says it is done, but {job.record} is not there")
            )
        else:
            self._retry_or_fail(job, outcome)

    def _postpone(self, job: Job) -> None:
        first, most = BUSY_SECONDS
        times = self._times_busy[job.name] = self._times_busy.get(job.name, 0) + 1
        self._not_before[job.name] = time.monotonic() + min(most, first * 2 ** (times - 1))

    def _retry_or_fail(self, job: Job, outcome: Outcome) -> None:
        counts, most = (
            (self._attempts, self._retries)
            if outcome.counts
            else (self._lost_machines, MAX_LOST_MACHINES)
        )
        counts[job.name] = counts.get(job.name, 0) + 1
        if counts[job.name] > most:
            self._fail(job, outcome.message)
        else:
            self._on_retry(job, outcome.message)

    def _fail(self, job: Job, why: str) -> None:
        del self._waiting[job.name]
        self.tally.failed[job.name] = why
        log = job.beside("logs", ".log")
        durable.write_json(
            job.beside("failed", ".json"),
            {"job": job.name, "why": why, "log": str(log) if log.exists() else None},
        )
        self._on_failure(job, why)
