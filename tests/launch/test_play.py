"""The commands `launch.play` and `launch.replay`, as a user types them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
SHORT = ("--budget_nodes=10", "--max_actions=5")


def files(workdir: Path) -> dict[str, bytes]:
    """What a run leaves, but for what depends on the machine."""
    kept = [p for p in workdir.rglob("*") if p.is_file() and not p.name.endswith(".host.json")]
    return {
        str(path.relative_to(workdir)): path.read_bytes()
        for path in kept
        if path.suffix == ".json" and "episodes" in path.parts
    }


def start(*flags: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "launch.play", *flags],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


@pytest.mark.parametrize(
    "flags",
    [
        ("--features=bprost", "--planner=rollout_iw"),
        ("--features=bpros", "--planner=iw", "--norisk_averse"),
        ("--features=basic", "--caching=none"),
        ("--features=ram", "--max_tree_nodes=8"),
        ("--planner=random",),
        ("--protocol=rollout_iw", "--features=ram"),
        ("--budget_seconds=0.05",),
    ],
)
def test_a_short_game_with_each_feature_set_and_planner(launch, tmp_path, flags):
    given = SHORT if "--budget_seconds=0.05" not in flags else ("--max_actions=5",)
    done = launch("play", "--game=Pong", f"--workdir={tmp_path}", *given, *flags)
    assert done.returncode == 0, done.stderr
    assert "5 actions (action limit)" in done.stdout
    record = json.loads((tmp_path / "episodes/Pong/seed-0.json").read_text())
    assert record["actions"] == 5
    host = json.loads((tmp_path / "episodes/Pong/seed-0.host.json").read_text())
    assert host["versions"]["ale-py"] == "0.12.1"
    assert "--game=Pong" in host["command"]
    with np.load(tmp_path / "decisions/Pong/seed-0.npz") as decisions:
        assert len(decisions["actions"]) == len(decisions["rewards"]) == 5
        assert len(decisions["new_nodes"]) == len(decisions["ended"]) == 5


def test_the_protocol_fills_in_what_was_not_given(launch, tmp_path):
    flags = ("--game=Pong", "--protocol=rollout_iw", "--discount=0.9", *SHORT)
    assert launch("play", *flags, f"--workdir={tmp_path}").returncode == 0
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["full_action_set"] is True
    assert settings["background_subtract"] is True
    assert settings["noop_actions"] == 30
    assert settings["zero_ties"] == "longest"
    assert settings["max_emulator_frames"] == 18_000
    assert settings["discount"] == 0.9
    assert settings["budget_seconds"] is None


def test_the_defaults_are_the_papers(launch, tmp_path):
    assert launch("play", "--game=Pong", "--max_actions=1", f"--workdir={tmp_path}").returncode == 0
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["frameskip"] == 15
    assert settings["budget_seconds"] == 0.5
    assert settings["discount"] == 0.99
    assert settings["risk_averse"] is True
    assert settings["risk_alpha"] == 50_000
    assert settings["width"] == 1


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ((), "Pong-vae-random"),
        (("--features=vae:universal",), "Pong-vae-universal-random"),
        (("--protocol=recommended",), "Pong-vae-random-recommended"),
    ],
)
def test_without_a_directory_models_and_protocols_have_their_own(launch, tmp_path, flags, name):
    flags = ("--game=Pong", "--planner=random", "--max_actions=1", *flags)
    assert launch("play", *flags, cwd=tmp_path).returncode == 0
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [name]


def test_runs_count_seeds_up_and_finished_ones_are_not_played_again(launch, tmp_path):
    flags = ("--game=Breakout", "--features=basic", *SHORT, f"--workdir={tmp_path}")
    first = launch("play", *flags, "--seed=4", "--runs=2")
    assert "seed 4: score" in first.stdout
    assert "mean score" in first.stdout
    before = files(tmp_path)
    assert sorted(before) == ["episodes/Breakout/seed-4.json", "episodes/Breakout/seed-5.json"]
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "episodes").rglob("*.json")}
    second = launch("play", *flags, "--seed=4", "--runs=2")
    assert second.stdout.count("played before") == 2
    assert times == {
        path: path.stat().st_mtime_ns for path in (tmp_path / "episodes").rglob("*.json")
    }


def test_a_run_killed_in_mid_game_ends_like_an_undisturbed_one(launch, tmp_path):
    flags = ("--game=Asterix", "--features=bprost", "--budget_nodes=25", "--max_actions=60")
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    assert launch("play", *flags, f"--workdir={undisturbed}").returncode == 0
    saved = disturbed / "progress/Asterix/seed-0.npz"
    for kill in range(2):
        seen = saved.stat().st_mtime_ns if saved.exists() else None
        process = start(*flags, f"--workdir={disturbed}", "--save_seconds=0.05")
        wait_for(lambda seen=seen: saved.exists() and saved.stat().st_mtime_ns != seen)
        time.sleep(0.3)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, kill
        process.communicate()
        assert not (disturbed / "episodes").exists()
    assert launch("play", *flags, f"--workdir={disturbed}").returncode == 0
    assert files(disturbed) == files(undisturbed)
    host = json.loads((disturbed / "episodes/Asterix/seed-0.host.json").read_text())
    assert host["resumed_at_decision"] > 0
    assert not saved.exists()
    with (
        np.load(disturbed / "decisions/Asterix/seed-0.npz") as one,
        np.load(undisturbed / "decisions/Asterix/seed-0.npz") as other,
    ):
        for name in one.files:
            if not name.endswith("seconds"):
                assert (one[name] == other[name]).all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_saves_and_says_how_to_go_on(launch, tmp_path, number):
    flags = ("--game=Pong", "--features=ram", "--budget_nodes=5", "--max_actions=3000")
    process = start(*flags, f"--workdir={tmp_path}", "--save_seconds=0.05")
    saved = tmp_path / "progress/Pong/seed-0.npz"
    wait_for(saved.exists)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "to go on:" in output
    assert "launch.play --game=Pong" in output
    with np.load(saved) as progress:
        assert len(progress["decisions.actions"]) > 0


def test_a_replay_gives_the_recorded_score_and_notices_another(launch, tmp_path):
    flags = ("--game=Asterix", "--budget_nodes=20", "--max_actions=20", f"--workdir={tmp_path}")
    assert launch("play", *flags, "--seed=3").returncode == 0
    done = launch("replay", f"--workdir={tmp_path}", "--seed=3")
    assert done.returncode == 0, done.stderr
    assert "as recorded" in done.stdout
    path = tmp_path / "episodes/Asterix/seed-3.json"
    record = json.loads(path.read_text())
    assert record["score"] > 0
    another = json.dumps(record | {"score": record["score"] + 1})
    path.write_text(another)
    done = launch("replay", f"--workdir={tmp_path}", "--seed=3")
    assert done.returncode == 1
    assert "seed-3.json is damaged (its SHA-256 is not the one in seed-3.host.json)" in done.stderr
    path.with_name("seed-3.host.json").unlink()
    done = launch("replay", f"--workdir={tmp_path}", "--seed=3")
    assert done.returncode == 1
    assert "the replay scored" in done.stderr
    missing = launch("replay", f"--workdir={tmp_path}", "--seed=9")
    assert missing.returncode == 1
    assert "there is seed-3" in missing.stderr


@pytest.mark.parametrize(("flags", "pictures"), [((), 5), (("--every_frame",), 75)])
def test_a_video_shows_the_game_as_played(launch, tmp_path, flags, pictures):
    done = launch("play", "--game=Pong", *SHORT, "--video", f"--workdir={tmp_path}", *flags)
    assert done.returncode == 0, done.stderr
    path = tmp_path / "videos/Pong/seed-0.mp4"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    reader = imageio_ffmpeg.read_frames(str(path))
    size = next(reader)["size"]
    assert size == (800, 420)
    assert len(list(reader)) == pictures


def test_without_ffmpeg_a_sentence_says_so_and_the_game_is_kept(launch, tmp_path, monkeypatch):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(tmp_path / "none"))
    done = launch("play", "--game=Pong", *SHORT, "--video", f"--workdir={tmp_path}")
    assert done.returncode == 1
    assert "error: no ffmpeg was found" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "episodes/Pong/seed-0.json").exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--game=pnog",), "did you mean 'Pong'"),
        ((), "--game is missing"),
        (("--game=Joust",), "cannot be played"),
        (("--game=Pong", "--features=bprots"), "did you mean 'bpros' or 'bprost'"),
        (("--game=Pong", "--planner=rolout_iw"), "did you mean 'rollout_iw'"),
        (("--game=Pong", "--protocol=vae"), "did you mean 'vae_iw'"),
        (("--game=Pong", "--budget_seconds=0"), "budget_seconds must be above 0"),
        (("--game=Pong", "--budget_seconds=-1"), "budget_seconds must be above 0"),
        (("--game=Pong", "--budget_nodes=0"), "budget_nodes must be at least 1"),
        (("--game=Pong", "--budget_nodes=-5"), "budget_nodes must be at least 1"),
        (("--game=Pong", "--budget_seconds="), "flag --budget_seconds="),
        (("--game=Pong", "--budget_seconds=nan"), "budget_seconds must be above 0"),
        (("--game=Pong", "--width=3"), "width must be 1 or 2, not 3"),
        (("--game=Pong", "--features=bprost", "--width=2"), "at most 10,000 features"),
        (("--game=Pong", "--frameskip=0"), "frameskip must be at least 1"),
        (("--game=Pong", "--caching=all"), "unknown caching 'all'"),
        (("--game=Pong", "--runs=0"), "--runs must be at least 1"),
        (("--game=Pong", "--seed=-1"), "seed must be 0 or more"),
        (("--game=KingKong", "--features=bprost"), "needs a screen of 210 x 160"),
        (("--game=Pong", "extra"), "unexpected argument 'extra'"),
        (("--game=Pong", "--features=ram", "--background_mask"), "changes nothing"),
        (("--game=Pong", "--workdir=/proc/nowhere"), "/proc/nowhere"),
        (("--game=Pong", "--every_frame"), "--every_frame changes nothing without --video"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(launch, tmp_path, flags, sentence):
    done = launch("play", f"--workdir={tmp_path}", *flags)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not files(tmp_path)


def test_a_work_directory_of_another_config_is_refused_and_left_alone(launch, tmp_path):
    flags = ("--game=Pong", *SHORT, "--features=basic", f"--workdir={tmp_path}")
    assert launch("play", *flags).returncode == 0
    before = files(tmp_path)
    done = launch("play", *flags, "--discount=0.5", "--seed=1")
    assert done.returncode == 1
    assert (
        "holds results with discount=0.99, as its config.json says, and this run has discount=0.5"
        in done.stderr
    )
    assert files(tmp_path) == before
    assert launch("play", "--game=Breakout", *flags[1:]).returncode == 0  # games may share it


def test_a_damaged_save_is_named(launch, tmp_path):
    saved = tmp_path / "progress/Pong/seed-0.npz"
    saved.parent.mkdir(parents=True)
    saved.write_bytes(b"PK\x03\x04 torn")
    done = launch("play", "--game=Pong", *SHORT, f"--workdir={tmp_path}")
    assert done.returncode == 1
    assert "seed-0.npz is damaged" in done.stderr
    assert "delete it" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 kB, or the nearest thing where mounting is not allowed."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True
    )
    if mount.returncode:
        pytest.skip("mounting a small file system takes root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_costs_nothing_already_recorded(launch, small_disk):
    flags = ("--game=Pong", *SHORT, "--features=ram", f"--workdir={small_disk}")
    assert launch("play", *flags).returncode == 0
    before = files(small_disk)
    with (small_disk / "filler").open("wb") as filler:
        free = os.statvfs(small_disk)
        filler.write(bytes(free.f_bavail * free.f_frsize))
    done = launch("play", *flags, "--runs=2")
    assert done.returncode == 1
    assert "no space left to write" in done.stderr
    assert "Traceback" not in done.stderr
    assert files(small_disk) == before
    (small_disk / "filler").unlink()
    assert launch("play", *flags, "--runs=2").returncode == 0


def test_help_teaches(launch):
    done = launch("play", "--help")
    assert "--budget_nodes" in done.stdout
    assert "python -m launch.play --game=Pong" in done.stdout
