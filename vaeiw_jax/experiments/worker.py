"""The process that does one job. Engines start it; it needs nothing but the job and the file system.

    python -m vaeiw_jax.experiments.worker --cpus=1 JOB

JOB is what `Job.to_json` wrote. It ends with one of the codes below, and the last line it prints says why.
"""

import argparse
import contextlib
import os
import signal
import sys
import threading
import time
import traceback

from vaeiw_jax import durable
from vaeiw_jax.durable import DamagedFileError
from vaeiw_jax.errors import UserError, describe
from vaeiw_jax.experiments import core_locks
from vaeiw_jax.experiments.jobs import Job
from vaeiw_jax.progress import Interrupted, Progress, Tell
from vaeiw_jax.training.checkpoints import quiet_orbax
from vaeiw_jax.workdirs import BusyError

DONE, FAILED, BUSY, STOPPED = 0, 1, 75, 130
"""How it ends: done; failed; another process has the job; asked to stop, and saved."""

HEARTBEAT_SECONDS = 5.0
ORPHAN_SECONDS = 1.0


def perform(job: Job, interrupted: Interrupted, tell: Tell) -> bool:
    """Does the job; damaged files that it can do without are set aside first.

    Returns:
      Whether the job is done, rather than interrupted.
    """
    for _ in job.disposable:
        try:
            return job.do(interrupted, tell) is not None
        except DamagedFileError as error:
            if error.path not in job.disposable:
                raise
            _set_aside(error)
    return job.do(interrupted, tell) is not None


def _set_aside(error: DamagedFileError) -> None:
    """Renames a damaged file, so that the job is done as if it had never been."""
    aside = error.path.with_name(f"{error.path.name}.damaged")
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        error.path.replace(aside)
    print(f"{error}\nit was set aside as {aside.name}, and the job is done again", flush=True)


class Heartbeat:
    """Says on disk, every few seconds, that the job is being done, where, and how far it is.

    It begins with the first progress: before that, another process may have the job.
    """

    def __init__(self, job: Job, on_cores: list[int]):
        self._path = job.beside("running", ".json")
        self._about = {"machine": os.uname().nodename, "pid": os.getpid(), "cores": on_cores}
        self._started = time.time()
        self._progress: Progress | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def tell(self, progress: Progress) -> None:
        first = self._progress is None
        self._progress = progress
        if first:
            self._thread.start()

    def _beat(self) -> None:
        while True:
            assert self._progress is not None
            steps, of, _ = self._progress
            about = self._about | {"started": self._started, "steps": steps, "of": of}
            with contextlib.suppress(OSError):  # a full disk must not end what may yet finish
                durable.write_json(self._path, about)
            if self._ended.wait(HEARTBEAT_SECONDS):
                return

    def __enter__(self) -> "Heartbeat":
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._ended.set()
            self._thread.join()
            self._path.unlink(missing_ok=True)


class StopRequest:
    """True after SIGTERM, SIGINT, or the end of the process that started this one."""

    def __init__(self) -> None:
        self._requested = False
        signal.signal(signal.SIGTERM, self._request)
        signal.signal(signal.SIGINT, self._request)
        threading.Thread(target=self._watch_parent, args=(os.getppid(),), daemon=True).start()

    def _request(self, *_: object) -> None:
        self._requested = True

    def _watch_parent(self, parent: int) -> None:
        while os.getppid() == parent:
            time.sleep(ORPHAN_SECONDS)
        self._requested = True

    def __call__(self) -> bool:
        return self._requested


def work(job: Job, cpus: int) -> int:
    """Does the job if nobody else does, on cores of its own; returns the code to end with."""
    stop = StopRequest()
    if job.is_done():
        return DONE
    try:
        with (
            core_locks.pinned(cpus, job.timed, stop) as on_cores,
            Heartbeat(job, on_cores) as heartbeat,
        ):
            finished = not stop() and perform(job, stop, heartbeat.tell)
    except BusyError:
        print(f"{job.name} is being done by another process")
        return BUSY
    print(f"{job.name} is {'done' if finished else 'stopped and saved'}")
    return DONE if finished else STOPPED


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("job")
    given = parser.parse_args(arguments)
    quiet_orbax()  # so that the last line printed is this process's own
    try:
        return work(Job.from_json(given.job), given.cpus)
    except UserError as error:
        print(f"error: {error}")
    except OSError as error:
        traceback.print_exc(file=sys.stdout)
        print(f"error: {describe(error)}")
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        print(f"error: {type(error).__name__}: {error}")
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
