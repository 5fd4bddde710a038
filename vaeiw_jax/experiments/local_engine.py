"""The engine that runs jobs on this machine, each in a process pinned to its own cores."""

import subprocess
import time
from pathlib import Path

from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments.jobs import Job
from vaeiw_jax.experiments.processes import STOPPED, Outcome, outcome, start

GRACE_SECONDS = 120.0
"""How long a job may take to save, once asked to stop."""


class LocalEngine:
    """As many workers at once as the cores allow.

    Args:
      cpus_per_job: cores for each.
      one_training: start no training while another runs; by default so if the machine has an NVIDIA GPU, of which
        JAX takes all the memory.
    """

    def __init__(self, cpus_per_job: int = 1, one_training: bool | None = None):
        cores = usable_cores()
        if not 1 <= cpus_per_job <= cores:
            raise UserError(
                f"--cpus_per_job must be from 1 to {cores}, the cores of this machine, not {cpus_per_job}"
            )
        self._cpus = cpus_per_job
        self._slots = cores // cpus_per_job
        self._one_training = Path("/dev/nvidia0").exists() if one_training is None else one_training
        self._running: list[tuple[Job, subprocess.Popen[bytes]]] = []
        self._held_back: list[Job] = []
        self._never_started: list[Job] = []
        """Held back when the engine was stopped."""

    def room(self) -> int:
        return self._slots - len(self._running) - len(self._held_back)

    def start(self, job: Job) -> None:
        if job.trains and self._one_training and self._training():
            self._held_back.append(job)
        else:
            self._running.append((job, start(job, self._cpus)))

    def _training(self) -> bool:
        return any(job.trains for job, _ in self._running)

    def ended(self, seconds: float) -> list[tuple[Job, Outcome]]:
        if self._never_started:
            never_started, self._never_started = self._never_started, []
            return [(job, Outcome(STOPPED)) for job in never_started]
        deadline = time.monotonic() + seconds
        while True:
            over = [entry for entry in self._running if entry[1].poll() is not None]
            if over or time.monotonic() >= deadline:
                break
            time.sleep(0.05)
        self._running = [entry for entry in self._running if entry not in over]
        if self._held_back and not self._training():
            self.start(self._held_back.pop(0))
        return [(job, outcome(job, process.returncode)) for job, process in over]

    def stop(self) -> None:
        self._never_started, self._held_back = self._held_back, []
        for _, process in self._running:
            process.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        for _, process in self._running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
