import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXAMPLES = {path.name: path.read_text() for path in (ROOT / "examples").glob("*.py")}


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_the_page_on_the_library_shows_every_example_as_it_is():
    assert sorted(blocks("docs/library.md")) == sorted(EXAMPLES.values())


def test_what_the_readme_shows_is_an_example_or_runs():
    others = [block for block in blocks("README.md") if block not in EXAMPLES.values()]
    assert others
    for block in others:
        done = subprocess.run(
            [sys.executable, "-c", block], capture_output=True, text=True, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr


def test_the_flags_that_playing_is_explained_by_exist():
    text = (ROOT / "docs" / "playing.md").read_text()
    command = [sys.executable, "-m", "launch.play", "--helpfull"]
    known = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
    named = set(re.findall(r"--(\w+)", text)) - {"help"}
    listed = set(re.findall(r"^ +--(?:\[no\])?(\w+):", known, re.MULTILINE))
    assert {
        flag for flag in named if flag not in listed | {f"no{name}" for name in listed}
    } == set()
    assert len(named) > 30
