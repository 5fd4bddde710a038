"""The process that does one job. Engines start it; it needs nothing but the job and the file system.

    python -m vaeiw_jax.experiments.worker --cpus=1 JOB

JOB is what `Job.to_json` wrote. It ends with one of the codes below, and the last line it prints says why.
"""

import argparse
import contextlib
import fcntl
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vaeiw_jax import durable, provenance
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import core_locks
from vaeiw_jax.experiments.jobs import COLLECT, PLAY, TRAIN, Job
from vaeiw_jax.playing import runs
from vaeiw_jax.playing.episodes import EpisodeConfig

DONE, FAILED, BUSY, STOPPED = 0, 1, 75, 130
"""How it ends: done; failed; another process has the job; told to stop, and saved."""

HEARTBEAT_SECONDS = 5.0
ORPHAN_SECONDS = 1.0


def perform(job: Job, interrupted: Callable[[], bool], tell: Callable[[int, int], None]) -> bool:
    """Does the job, from where an earlier process left off.

    Args:
      job: what to do.
      interrupted: asked now and then; if it says so, the job is saved.
      tell: told how many steps of how many are done.

    Returns:
      Whether the job is done, rather than interrupted.
    """
    do = {COLLECT: _collect, TRAIN: _train, PLAY: _play}[job.kind]
    return do(job, interrupted, tell)


def _collect(job: Job, interrupted: Callable[[], bool], tell: Callable[[int, int], None]) -> bool:
    from vaeiw_jax.playing.collecting import CollectConfig, Collector

    config = job.config
    assert isinstance(config, CollectConfig)
    started = time.time()
    collector = Collector(config, job.directory, job.seed)
    if not collector.collect(
        lambda collector: tell(collector.count, config.num_screens), interrupted
    ):
        return False
    provenance.note_session(job.host, sys.orig_argv, started)
    durable.write_json(job.record, collector.record())
    return True


def _play(job: Job, interrupted: Callable[[], bool], tell: Callable[[int, int], None]) -> bool:
    config = job.config
    assert isinstance(config, EpisodeConfig)
    _set_aside(job.run.progress, durable.read_arrays)
    record = runs.play(
        config,
        job.run,
        command=sys.orig_argv,
        on_decision=lambda episode, _: tell(len(episode.actions), config.most_actions),
        interrupted=interrupted,
    )
    return record is not None


def _train(job: Job, interrupted: Callable[[], bool], tell: Callable[[int, int], None]) -> bool:
    """Training shows its progress in its log, and sees to SIGTERM itself."""
    from vaeiw_jax.training import checkpoints, loop

    assert isinstance(job.config, loop.TrainConfig)
    checkpoints.quiet_orbax()
    started = time.time()
    result = loop.train(job.config, job.directory)
    if not result.finished:
        return False
    provenance.note_session(job.host, sys.orig_argv, started)
    return True


def _set_aside(path: Path, read: Callable[[Path], Any]) -> None:
    """Renames a file that cannot be read whole, so that the job is done as if it had never been."""
    if not path.exists():
        return
    try:
        read(path)
    except UserError as error:
        aside = path.with_name(f"{path.name}.damaged")
        path.replace(aside)
        print(f"{error}\nit was set aside as {aside.name}, and the job is done again", flush=True)


@contextlib.contextmanager
def taken(job: Job) -> Iterator[bool]:
    """Whether the job is this process's now; until it ends, however it ends, no other's."""
    path = job.beside("locks", ".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


class Heartbeat:
    """Says on disk, every few seconds, that the job is being done, where, and how far it is."""

    def __init__(self, job: Job, on_cores: list[int]):
        self._path = job.beside("running", ".json")
        self._about = {"machine": os.uname().nodename, "pid": os.getpid(), "cores": on_cores}
        self._started = time.time()
        self._steps = (0, 0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def tell(self, steps: int, of: int) -> None:
        self._steps = (steps, of)

    def _beat(self) -> None:
        while True:
            steps, of = self._steps
            about = self._about | {"started": self._started, "steps": steps, "of": of}
            with contextlib.suppress(OSError):  # a full disk must not end what may yet finish
                durable.write_json(self._path, about)
            if self._ended.wait(HEARTBEAT_SECONDS):
                return

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._path.unlink(missing_ok=True)


class StopWish:
    """Set by SIGTERM, SIGINT, or the end of the process that started this one."""

    def __init__(self) -> None:
        self._wished = False
        self._parent = os.getppid()
        signal.signal(signal.SIGTERM, self._wish)
        signal.signal(signal.SIGINT, self._wish)
        threading.Thread(target=self._watch_parent, daemon=True).start()

    def _wish(self, *_: object) -> None:
        self._wished = True

    def _watch_parent(self) -> None:
        while os.getppid() == self._parent:
            time.sleep(ORPHAN_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)  # the signal, for training has a handler of its own

    def __call__(self) -> bool:
        return self._wished


def work(job: Job, cpus: int) -> int:
    """Does the job if nobody else does, on cores of its own; returns the code to end with."""
    wish = StopWish()
    with taken(job) as mine:
        if not mine:
            print(f"{job.name} is being done by another process")
            return BUSY
        _set_aside(job.record, durable.read_json)
        if job.is_done():
            return DONE
        with (
            core_locks.pinned(cpus, job.timed, wish) as on_cores,
            Heartbeat(job, on_cores) as heartbeat,
        ):
            finished = not wish() and perform(job, wish, heartbeat.tell)
    print(f"{job.name} is {'done' if finished else 'stopped and saved'}")
    return DONE if finished else STOPPED


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("job")
    given = parser.parse_args(arguments)
    job = Job.from_json(given.job)
    if job.kind != TRAIN:  # one frame at a time is no work for an accelerator
        os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        return work(job, given.cpus)
    except UserError as error:
        print(f"error: {error}")
    except OSError as error:
        print(f"error: {error.filename}: {error.strerror or error}")
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        print(f"error: {type(error).__name__}: {error}")
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
