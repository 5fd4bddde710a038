"""A wheel of the project, in an environment of its own and out of sight of the checkout, plays."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from vaeiw_jax.features.numba_compilation import MESSAGE

ROOT = Path(__file__).parent.parent
PLAY = ("--game=MsPacman", "--features=vae", "--budget_nodes=6", "--max_actions=3")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin directory of an environment into which a wheel was built and installed.

    What the project depends on is taken from the environment of the tests: as a plain directory, so that an editable
    installation there is not seen.
    """
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("vaeiw_jax", "launch", "checkpoints"):
        unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=unwanted)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-index", "--no-deps"]
    build = ["wheel", *offline, "--no-build-isolation", f"--wheel-dir={source}", str(source)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = source.glob("*.whl")

    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=True)
    binaries = environment / "bin"
    subprocess.run(
        [*pip, f"--python={binaries / 'python'}", "install", *offline, str(wheel)], check=True
    )
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return binaries


def run(program: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(program), *arguments], capture_output=True, text=True, cwd=cwd, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done


def test_it_plays_with_its_own_models_and_says_that_it_compiles_the_first_time(
    installed: Path, tmp_path: Path
) -> None:
    where = "import vaeiw_jax, launch; print(vaeiw_jax.__file__, launch.__file__)"
    files = run(installed / "python", "-c", where, cwd=tmp_path).stdout.split()
    assert all(Path(file).is_relative_to(installed.parent) for file in files)

    first = run(installed / "vaeiw", "play", *PLAY, "--workdir=first", cwd=tmp_path)
    assert first.stderr.count(MESSAGE) == 1
    second = run(installed / "python", "-m", "launch.play", *PLAY, "--workdir=second", cwd=tmp_path)
    assert MESSAGE not in second.stderr
    one, two = (
        json.loads((tmp_path / workdir / "episodes/MsPacman/seed-0.json").read_text())
        for workdir in ("first", "second")
    )
    assert one == two
    assert one["actions"] == 3
    weights = json.loads((ROOT / "checkpoints/MsPacman/config.json").read_text())["weights"]
    assert one["config"]["features"] == f"vae:{weights['sha256']}"


def test_the_command_alone_lists_the_commands(installed: Path, tmp_path: Path) -> None:
    listed = run(installed / "vaeiw", cwd=tmp_path).stdout
    for name in ("play", "collect", "train", "evaluate"):
        assert f"\n  {name} " in listed
    assert "command " not in listed.partition("\n")[2].replace("COMMAND", "")


def test_an_unknown_command_is_refused_in_a_sentence(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [str(installed / "vaeiw"), "pley"], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: unknown command 'pley'; did you mean 'play'")


def test_it_carries_what_it_needs(installed: Path) -> None:
    (package,) = installed.parent.glob("lib/python*/site-packages/vaeiw_jax")
    for name in ("py.typed", "experiments/tables/beta.csv", "checkpoints/Pong/README.md"):
        assert (package / name).exists()
