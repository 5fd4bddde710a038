import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from vaeiw_jax.playing import screen_store

ROOT = Path(__file__).parent.parent.parent
FLAGS = (
    "--game=Pong",
    "--features=ram",
    "--budget_nodes=20",
    "--drawn_screens=19",
    "--num_screens=1300",
)


def test_a_collection_killed_on_the_way_ends_like_an_undisturbed_one(launch, tmp_path):
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    done = launch("collect", *FLAGS, f"--workdir={undisturbed}")
    assert done.returncode == 0, done.stderr
    assert "1,300 screens of Pong" in done.stdout
    process = subprocess.Popen(
        [sys.executable, "-m", "launch.collect", *FLAGS, f"--workdir={disturbed}"],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )
    while screen_store.count(disturbed) < 1000:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)
    beside = launch("collect", *FLAGS, f"--workdir={disturbed}")
    assert "another process is working on" in beside.stderr
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert launch("collect", *FLAGS, f"--workdir={disturbed}").returncode == 0
    expected = screen_store.load(undisturbed)
    assert expected.game == "Pong"
    assert screen_store.load(disturbed).digest() == expected.digest()
    records = [json.loads((d / "collection.json").read_text()) for d in (undisturbed, disturbed)]
    assert records[0] == records[1]


def test_several_games_are_collected_each_into_its_own_store(launch, tmp_path):
    flags = ("--game=Pong,Breakout", "--num_screens=30", "--budget_nodes=10", "--features=ram")
    stores = tmp_path / "stores"
    done = launch("collect", *flags, f"--workdir={stores}")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 jobs are done" in done.stdout
    alone = tmp_path / "alone"
    launch("collect", "--game=Pong", *flags[1:], f"--workdir={alone}")
    assert (screen_store.load(stores / "Pong").screens == screen_store.load(alone).screens).all()
    assert screen_store.load_all(str(stores)).counts == (30, 30)
    again = launch("collect", *flags, f"--workdir={stores}")
    assert "2 of 2 jobs are done" in again.stdout
