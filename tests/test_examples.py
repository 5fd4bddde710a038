"""The examples: short, and they run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_is_one_for_each_thing_a_user_may_bring():
    assert [path.stem for path in EXAMPLES] == [
        "gymnasium_environment",
        "own_features",
        "own_search",
        "own_simulator",
    ]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_runs(path: Path, tmp_path: Path):
    assert len(path.read_text().splitlines()) <= 40
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_sets_and_searches_of_the_examples_can_be_named_on_the_command_line(launch, tmp_path):
    done = launch(
        "play",
        "--game=Asterix",
        "--features=examples.own_features:Edges",
        "--planner=examples.own_search:random_growth",
        "--budget_nodes=5",
        "--max_actions=2",
        f"--workdir={tmp_path}",
    )
    assert done.returncode == 0, done.stderr
    assert "Asterix seed 0: score" in done.stdout
