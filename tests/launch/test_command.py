"""What the commands have in common: the progress bar, how they end, what they want to know."""

import io
import subprocess
import sys

import pytest

from launch.command import INTERRUPTED, progress_bar
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


def test_ctrl_c_ends_a_command_that_has_nothing_to_save_without_a_traceback():
    code = (
        "import os, signal, time; from launch import command\n"
        "command.run(lambda: (os.kill(os.getpid(), signal.SIGINT), time.sleep(9)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, "", "")


@pytest.mark.parametrize("command", ["evaluate", "inspect", "replay", "train"])
def test_a_work_directory_that_is_missing_is_asked_for_in_one_way(launch, command):
    needed = {"train": ["--screens=none"], "inspect": ["--checkpoint=universal"]}
    done = launch(command, *needed.get(command, []))
    assert done.returncode == 1
    assert done.stderr.startswith("error: --workdir is missing: ")
