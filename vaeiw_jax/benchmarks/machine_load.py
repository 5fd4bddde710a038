"""Whether the machine was idle but for the benchmark."""

import os
import resource
import time
from pathlib import Path

DISTURBED = 0.05
"""A share used by others above which a measurement is reported as disturbed."""


class MachineLoad:
    """The share of the machine's time that other processes use from now on, other machines on the host included.

    The benchmark's own share is known once its processes have ended.
    """

    def __init__(self) -> None:
        self._start = self._times()

    def by_others(self) -> float:
        seconds, busy, own = (
            now - then for now, then in zip(self._times(), self._start, strict=True)
        )
        return max(0.0, (busy - own) / (seconds * (os.cpu_count() or 1)))

    @staticmethod
    def _times() -> tuple[float, float, float]:
        """Seconds: by the clock; that all cores were busy; that this process and its children were."""
        fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
        user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, fields)
        busy = user + nice + system + interrupts + soft_interrupts + stolen
        own = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            used = resource.getrusage(who)
            own += used.ru_utime + used.ru_stime
        return time.perf_counter(), busy / os.sysconf("SC_CLK_TCK"), own
