"""The first command a user types, with a budget for impatient ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A virtual environment that is this one, with a note that all is installed."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    installed = (ROOT / "pyproject.toml").read_text().rstrip("\n") + f"\n{ROOT}"
    (tmp_path / "venv" / "installed-base").write_text(installed)
    return os.environ | {
        "VAEIW_VENV": str(tmp_path / "venv"),
        "VAEIW_QUICKSTART": str(tmp_path / "quickstart"),
    }


def test_quickstart_plays_films_and_shows_from_any_directory_twice(
    environment: dict[str, str], tmp_path: Path
) -> None:
    for _ in range(2):
        done = subprocess.run(
            ["bash", str(ROOT / "launch" / "quickstart.sh"), "--budget_nodes=5", "--max_actions=3"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert done.returncode == 0, done.stderr
        assert "Installing" not in done.stdout
        assert "MsPacman seed 0: score" in done.stdout
        assert "Try next:" in done.stdout
        for file in ("videos/MsPacman/seed-0.mp4", "inside/index.html"):
            assert (tmp_path / "quickstart" / file).stat().st_size > 10_000
            assert file in done.stdout
    assert "played before" in done.stdout
