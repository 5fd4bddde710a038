"""Evaluations as users start them, small enough for tests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

TINY = (
    "--experiment=custom",
    "--features=ram",
    "--games=Pong",
    "--runs=3",
    "--budget_nodes=12",
    "--max_actions=100",
)
"""Three jobs of two seconds each, none of which needs JAX: two begin at once, one waits."""


def start(workdir: Path, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "launch.evaluate", f"--workdir={workdir}", *flags],
        cwd=ROOT,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "XLA_FLAGS": "--xla_backend_optimization_level=0",  # few steps need no fast code, but code soon
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    """Waits for the end, and gives what was printed."""
    stdout, stderr = process.communicate(timeout=500)
    assert process.returncode == code, stdout + stderr
    assert "Traceback" not in stderr
    return stdout + stderr


def evaluate(workdir: Path, *flags: str) -> dict[str, bytes]:
    """Runs an evaluation to its end, and gives its records."""
    finish(start(workdir, *flags))
    return records(workdir)


def records(workdir: Path) -> dict[str, bytes]:
    """Every result, by its place; not what depends on the machine."""
    return {
        str(path.relative_to(workdir)): path.read_bytes()
        for path in workdir.glob("runs/*/*/episodes/*/seed-*.json")
        if not path.name.endswith(".host.json")
    }


def running(workdir: Path) -> list[Path]:
    """What the jobs now running say of themselves."""
    return sorted(workdir.glob("running/runs/*/*/*.json"))


def wait_for(condition: Callable[[], object], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()
