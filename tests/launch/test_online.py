"""Online learning: from the command line, and killed while it plays and while it trains."""

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import train_process
from vaeiw_jax import models
from vaeiw_jax.playing import screen_store

SETTINGS = {
    "budget_nodes": 4,
    "max_actions": 40,
    "simulator_calls": 220,
    "episode_calls": 0,
    "added_screens": 3,
    "candidates": 4,
    "max_screens": 3,
    "start_from": "universal",
    "dropout": 0.0,
    "epochs": 2,
    "batch_size": 2,
    "picture_every": 0,
    "evaluations": 1,
}
LIBRARY = """
import json, pathlib, sys
from vaeiw_jax.experiments import online, online_config
settings, workdir = sys.argv[1:]
online.learn(online_config.configure("pong", **json.loads(settings)), pathlib.Path(workdir))
"""


@pytest.fixture(scope="module", autouse=True)
def soon():
    """A few steps need no fast code, but code soon."""
    root = Path(__file__).parent.parent.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(root))
        patch.setenv("JAX_PLATFORMS", "cpu")
        patch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
        yield


def start(*command: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *command], text=True, **pipes)


@pytest.fixture(scope="module")
def whole(soon, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory of a learning that nothing interrupts."""
    workdir = tmp_path_factory.mktemp("online")
    flags = [f"--{name}={value}" for name, value in SETTINGS.items()]
    process = start("-m", "launch.online", "--game=pong", *flags, f"--workdir={workdir}")
    code, out, err = train_process.finish(process)
    assert code == 0, err
    assert "2 games and 220 simulator calls gave 3 screens; with the last VAE: score" in out
    return workdir


def test_games_alternate_with_training_and_the_last_model_plays(whole: Path) -> None:
    record = json.loads((whole / "online.json").read_text())
    first, second = record["curve"]
    universal = models.model_digest(models.SHIPPED / "universal")
    assert [first["features"], second["features"]] == [f"vae:{universal}", f"vae:{first['model']}"]
    assert [first["stop"], second["stop"]] == ["action_limit", "simulator_calls"]
    assert second["simulator_calls"] == record["simulator_calls"] == 220
    assert first["generated"] == first["new"] > first["added"] == 3
    assert first["chosen_misfit"] > first["mean_misfit"] > 0
    assert (second["added"], second["screens"], second["model"]) == (0, 3, None)  # which is full
    assert record["model"] == first["model"] == models.model_digest(whole / "model")
    screens = screen_store.load(whole / "screens").screens
    assert len({screen.tobytes() for screen in screens}) == len(screens) == 3
    played = json.loads((whole / "evaluation/episodes/Pong/seed-0.json").read_text())
    assert played["config"]["features"] == f"vae:{record['model']}"
    assert record["evaluation"][0]["score"] == played["score"]
    assert models.model_directory(f"vae:{whole}", "Pong") == whole / "model"


def test_it_leaves_its_curve_as_a_table_and_a_picture_and_a_page(whole: Path) -> None:
    with (whole / "curve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["screens"] for row in rows] == ["3", "3"]
    assert (whole / "curve.png").read_bytes().startswith(b"\x89PNG")
    page = (whole / "report.html").read_text()
    assert "the VAE after game 1" in page
    assert "Games with the last VAE" in page


def test_killed_while_it_plays_and_while_it_trains_it_comes_to_the_same(
    whole: Path, tmp_path: Path
) -> None:
    def learn(**changes: float) -> subprocess.Popen[str]:
        return start("-c", LIBRARY, json.dumps(SETTINGS | changes), str(tmp_path))

    def kill(process: subprocess.Popen[str], when: Path) -> None:
        train_process.wait_until(when.exists, process)
        process.send_signal(signal.SIGKILL)
        assert train_process.finish(process)[0] == -signal.SIGKILL

    game = tmp_path / "rounds/1/game"
    kill(learn(save_seconds=0.0), game / "progress/Pong/seed-1000.npz")
    assert not (game / "episodes/Pong/seed-1000.json").exists()
    kill(learn(), tmp_path / "rounds/1/vae/checkpoints/1")
    assert not (tmp_path / "rounds/1/round.json").exists()
    code, _, err = train_process.finish(learn())
    assert code == 0, err
    for name in ("online.json", "curve.csv", "screens/manifest.json", "model/config.json"):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes(), name
    weights = models.model_description(whole / "model")["weights"]["file"]
    assert (tmp_path / "model" / weights).read_bytes() == (whole / "model" / weights).read_bytes()
    host = json.loads((game / "episodes/Pong/seed-1000.host.json").read_text())
    assert host["resumed_at_decision"] > 0
