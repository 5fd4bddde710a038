"""The order of the work: what is ready is started, what failed is tried again, what was lost is reported.

The work directory is the truth. A job is done if its record is there, whoever wrote it: so a scheduler can be killed
and started again at any moment, and two of them on one directory share the work.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from vaeiw_jax import durable
from vaeiw_jax.experiments.jobs import Job
from vaeiw_jax.experiments.processes import BUSY, DONE, FAILED, STOPPED, Outcome

POLL_SECONDS = 0.5
ELSEWHERE_SECONDS = 2.0, 60.0
"""How long a job that another evaluation is doing is left alone: at first, and at most, doubling in between."""
MOST_DEATHS = 50
"""How often the machine of one job may die before the job is suspected of killing it."""


class Engine(Protocol):
    """Where worker processes run."""

    def room(self) -> int:
        """How many more jobs may be started."""
        ...

    def start(self, job: Job) -> None: ...

    def ended(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """The attempts that have ended; waits so long for one."""
        ...

    def stop(self) -> None:
        """Asks all running jobs to save and end."""
        ...


@dataclass
class Progress:
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
      on_change: told when a job begins or ends.
      on_retry: told of a job that is to be tried again, and why.
      on_failure: told of a job that was given up, and why.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        engine: Engine,
        retries: int = 2,
        on_change: Callable[[Progress], None] = lambda progress: None,
        on_retry: Callable[[Job, str], None] = lambda job, why: None,
        on_failure: Callable[[Job, str], None] = lambda job, why: None,
    ):
        self._engine = engine
        self._retries = retries
        self._on_change = on_change
        self._on_retry = on_retry
        self._on_failure = on_failure
        self._attempts: dict[str, int] = {}
        self._deaths: dict[str, int] = {}
        self._times_busy: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._waiting = {job.name: job for job in jobs}
        self.progress = Progress(len(jobs))

    def run(self, interrupted: Callable[[], bool] = lambda: False) -> Progress:
        """Goes on until every job is done or given up, or until it is interrupted and all have saved."""
        progress = self.progress
        self._take_stock()
        while self._waiting or progress.running:
            if interrupted() and not progress.stopped:
                progress.stopped = True
                self._engine.stop()
            if progress.stopped and not progress.running:
                break
            if not progress.stopped:
                self._give_up_the_hopeless()
                self._start_the_ready()
            for job, outcome in self._engine.ended(POLL_SECONDS):
                self._note(job, outcome)
                self._on_change(progress)
        return progress

    def _take_stock(self) -> None:
        for name, job in list(self._waiting.items()):
            if job.is_done():
                self._finish(name)
        self._on_change(self.progress)

    def _finish(self, name: str) -> None:
        job = self._waiting.pop(name)
        job.beside("failed", ".json").unlink(missing_ok=True)
        self.progress.done.add(name)

    def _give_up_the_hopeless(self) -> None:
        """Jobs whose needs failed; repeatedly, for others may need these."""
        failed = self.progress.failed
        hopeless = True
        while hopeless:
            hopeless = False
            for job in list(self._waiting.values()):
                missing = next((need for need in job.needs if need in failed), None)
                if missing is not None:
                    self._fail(job, f"it needs {missing}, which failed")
                    hopeless = True

    def _start_the_ready(self) -> None:
        now = time.monotonic()
        room = self._engine.room()
        for name, job in list(self._waiting.items()):
            if room <= 0:
                return
            if name in self.progress.running:
                continue
            if not all(need in self.progress.done for need in job.needs):
                continue
            if job.is_done():  # another evaluation was faster
                self._finish(name)
            elif now >= self._not_before.get(name, 0.0):
                self.progress.running.add(name)
                self._engine.start(job)
                room -= 1
            else:
                continue
            self._on_change(self.progress)

    def _note(self, job: Job, outcome: Outcome) -> None:
        self.progress.running.discard(job.name)
        if outcome.code == DONE and job.is_done():
            self._finish(job.name)
        elif outcome.code == BUSY:
            self._leave_alone(job)
        elif outcome.code == STOPPED:
            pass  # it has saved, and waits for the next start
        elif outcome.code == DONE:
            self._try_again(
                job, Outcome(FAILED, f"the worker says it is done, but {job.record} is not there")
            )
        else:
            self._try_again(job, outcome)

    def _leave_alone(self, job: Job) -> None:
        first, most = ELSEWHERE_SECONDS
        times = self._times_busy[job.name] = self._times_busy.get(job.name, 0) + 1
        self._not_before[job.name] = time.monotonic() + min(most, first * 2 ** (times - 1))

    def _try_again(self, job: Job, outcome: Outcome) -> None:
        tally, most = (
            (self._attempts, self._retries) if outcome.counts else (self._deaths, MOST_DEATHS)
        )
        tally[job.name] = tally.get(job.name, 0) + 1
        if tally[job.name] > most:
            self._fail(job, outcome.message)
        else:
            self._on_retry(job, outcome.message)

    def _fail(self, job: Job, why: str) -> None:
        del self._waiting[job.name]
        self.progress.failed[job.name] = why
        log = job.beside("logs", ".log")
        durable.write_json(
            job.beside("failed", ".json"),
            {"job": job.name, "why": why, "log": str(log) if log.exists() else None},
        )
        self._on_failure(job, why)
