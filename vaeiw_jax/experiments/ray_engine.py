"""The engine that runs jobs on a Ray cluster. All machines must see the work directory under the same path."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import evaluation
from vaeiw_jax.experiments.jobs import Job
from vaeiw_jax.experiments.processes import FAILED, STOPPED, Outcome, outcome, start


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise UserError(
            "Ray is not installed; `pip install '.[cluster]'`, or use --engine=local"
        ) from error
    return ray


class RayEngine:
    """Every job a Ray task that asks for its cores, and for a GPU if it trains and the cluster has any.

    Args:
      address: of the cluster, as `ray start` prints it, or `auto`.
      cpus_per_job: cores for each job.
      workdir: what every machine must see.
    """

    def __init__(self, address: str, cpus_per_job: int, workdir: Path):
        if cpus_per_job < 1:
            raise UserError(f"--cpus_per_job must be at least 1, not {cpus_per_job}")
        self._ray = _ray()
        self._cpus = cpus_per_job
        self._workdir = workdir.absolute()
        self._running: dict[Any, Job] = {}
        self._connect(address)
        self._require_a_machine_with(cpus_per_job)
        self._task = self._ray.remote(max_retries=0, scheduling_strategy="SPREAD")(attempt)

    def _connect(self, address: str) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        _mute(self._ray)
        if address != "auto":
            _require_reachable(address)
        try:
            with _quiet():
                self._ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise UserError(
                f"there is no Ray cluster at {address!r} ({reason}); start one with `ray start --head`, or use "
                "--engine=local; if it was started where there is a ~/.ray/auth_token, set RAY_AUTH_MODE=token"
            ) from error

    def _require_a_machine_with(self, cpus: int) -> None:
        """Ray itself would wait for one without a word."""
        known = [node["Resources"].get("CPU", 0) for node in self._ray.nodes() if node["Alive"]]
        if max(known, default=0) < cpus:
            raise UserError(
                f"--cpus_per_job={cpus}, and the largest machine of the cluster has {max(known, default=0):g}; take "
                "fewer, or start again once a larger one has joined"
            )

    def room(self) -> int:
        """Twice what the cluster can run, so that machines that join find work."""
        cpus = self._ray.cluster_resources().get("CPU", 0)
        return max(2, 2 * int(cpus // self._cpus)) - len(self._running)

    def start(self, job: Job) -> None:
        gpus = 1 if job.trains and self._ray.cluster_resources().get("GPU", 0) >= 1 else 0
        task = self._task.options(num_cpus=self._cpus, num_gpus=gpus, name=job.name)
        self._running[task.remote(job.to_json(), self._cpus, str(self._workdir))] = job

    def ended(self, seconds: float) -> list[tuple[Job, Outcome]]:
        if not self._running:
            time.sleep(seconds)
            return []
        over, _ = self._ray.wait(list(self._running), num_returns=1, timeout=seconds)
        return [(self._running.pop(task), self._outcome(task)) for task in over]

    def _outcome(self, task: Any) -> Outcome:
        errors = self._ray.exceptions
        try:
            return Outcome(*self._ray.get(task))
        except errors.TaskCancelledError:
            return Outcome(STOPPED)
        except errors.RayTaskError as error:
            cause = error.cause
            return Outcome(FAILED, next(iter(str(cause).splitlines()), type(cause).__name__))
        except errors.RayError as error:  # the worker, its node or the network
            return Outcome(FAILED, f"its machine was lost ({type(error).__name__})", counts=False)

    def stop(self) -> None:
        for task in self._running:
            self._ray.cancel(task)


def attempt(job_json: str, cpus: int, workdir: str) -> tuple[int, str, bool]:
    """Runs on a machine of the cluster: a worker process, ended with the task if that is cancelled."""
    job = Job.from_json(job_json)
    if not (Path(workdir) / evaluation.FILE).exists():
        machine = os.uname().nodename
        message = f"{machine} does not see {workdir}; put the work directory where all machines do"
        return FAILED, message, True
    process = start(job, cpus)
    try:
        while process.poll() is None:
            time.sleep(0.1)
    except BaseException:  # cancelled
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        raise
    ended = outcome(job, process.returncode)
    return ended.code, ended.message, ended.counts


def _require_reachable(address: str) -> None:
    """Ray itself tries for a minute before it reports that nobody answers."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise UserError(f"--ray_address must be auto or HOST:PORT, not {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise UserError(
            f"there is no Ray cluster at {address!r} ({error.strerror or error}); start one with "
            "`ray start --head`, or use --engine=local"
        ) from error


def _mute(ray: Any) -> None:
    """Keeps Ray from printing pages of a lost machine's log: the loss is reported in a sentence."""
    if hasattr(ray._private.worker, "print_to_stdstream"):
        ray._private.worker.print_to_stdstream = lambda *_, **__: None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without Ray's greeting on stderr."""
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        yield
