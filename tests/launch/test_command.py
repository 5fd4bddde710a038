"""What the commands have in common: the progress bar."""

import io
import sys

from launch.command import progress_bar
from vaeiw_jax.progress import Progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_says_at_once_that_jobs_began(monkeypatch):
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("evaluating", "jobs") as bar:
        for running in range(3):
            bar.tell(Progress(0, 5, f"{running} running"))
            assert terminal.getvalue().endswith(f", {running} running]")
