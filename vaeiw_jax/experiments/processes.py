"""Starting a worker process for a job, and understanding how it ended: what both engines share."""

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import vaeiw_jax
from vaeiw_jax.experiments.jobs import Job
from vaeiw_jax.experiments.worker import BUSY, DONE, FAILED, STOPPED

__all__ = ["BUSY", "DONE", "FAILED", "STOPPED", "Outcome", "outcome", "start"]

COMPILED = Path(tempfile.gettempdir()) / f"vaeiw_jax-compiled-{os.getuid()}"
"""Where JAX keeps what it compiled, so that a machine's workers compile each network once."""


@dataclass(frozen=True)
class Outcome:
    """How an attempt at a job ended."""

    code: int
    message: str = ""
    counts: bool = True
    """Whether it is one of the limited number of attempts: the death of a machine is not."""
    killed: bool = False
    """Whether a signal ended it: while it loads its libraries it does not know yet how to save and end."""


def start(job: Job, cpus: int) -> subprocess.Popen[bytes]:
    """Starts a worker, in a session of its own so that Ctrl-C at a terminal is left to the engine."""
    log = job.beside("logs", ".log")
    log.parent.mkdir(parents=True, exist_ok=True)
    root = str(Path(vaeiw_jax.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    # How many threads XLA has decides how it rounds: as many as the job has cores, on every machine.
    threads = {"NPROC": str(cpus)}
    environment = {"JAX_COMPILATION_CACHE_DIR": str(COMPILED)} | os.environ | threads
    command = [sys.executable, "-m", "vaeiw_jax.experiments.worker", f"--cpus={cpus}"]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*command, job.to_json()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment | {"PYTHONPATH": path},
            start_new_session=True,
        )


def outcome(job: Job, code: int) -> Outcome:
    """What a worker's exit code means."""
    if code in (DONE, BUSY, STOPPED):
        return Outcome(code)
    if code < 0:
        why = f"the worker was killed by {signal.Signals(-code).name}"
        return Outcome(FAILED, why, killed=True)
    return Outcome(FAILED, _last_line(job) or f"the worker ended with code {code}")


def _last_line(job: Job) -> str:
    """The last line of the log, which says what was wrong."""
    try:
        with job.beside("logs", ".log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
            lines = log.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    said = [line.strip() for line in lines if line.strip()]
    return said[-1].removeprefix("error: ") if said else ""
