"""The local engine: real processes, really killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import train_process
from tests.experiments import evaluations
from tests.experiments.evaluations import TINY, evaluate, finish, records, running, start, wait_for
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import core_locks
from vaeiw_jax.experiments.jobs import TRAIN, Job
from vaeiw_jax.experiments.local_engine import LocalEngine
from vaeiw_jax.experiments.processes import FAILED, STOPPED, Outcome
from vaeiw_jax.experiments.scheduling import Scheduler
from vaeiw_jax.vae.config import TrainConfig


def test_a_killed_worker_costs_only_time(undisturbed, tmp_path):
    process = start(tmp_path, *TINY)
    wait_for(lambda: running(tmp_path))
    beat = json.loads(running(tmp_path)[0].read_text())
    os.kill(beat["pid"], signal.SIGKILL)
    finish(process)
    assert records(tmp_path) == undisturbed


def test_an_evaluation_goes_on_after_an_interrupt_and_after_its_death(undisturbed, tmp_path):
    process = start(tmp_path, *TINY)
    wait_for(lambda: running(tmp_path))
    process.send_signal(signal.SIGINT)
    assert "stopped and saved; to go on: " in finish(process, code=130)
    assert not running(tmp_path)
    assert list(tmp_path.glob("runs/*/*/progress/*/*.npz")) or records(tmp_path)

    process = start(tmp_path, *TINY)
    wait_for(lambda: running(tmp_path))
    worker = json.loads(running(tmp_path)[0].read_text())["pid"]
    evaluations.kill(process)
    wait_for(lambda: not Path(f"/proc/{worker}").exists())  # no worker is left behind
    assert evaluate(tmp_path, *TINY) == undisturbed


def test_two_evaluations_of_one_directory_share_the_work(undisturbed, tmp_path):
    one, other = start(tmp_path, *TINY), start(tmp_path, *TINY)
    finish(one)
    finish(other)
    assert records(tmp_path) == undisturbed
    logs = [path.read_text() for path in tmp_path.glob("logs/runs/*/*/*.log")]
    assert [log.count("is done\n") for log in logs] == [1] * 3


def test_a_torn_record_is_set_aside_and_its_game_played_again(
    undisturbed_workdir, undisturbed, tmp_path
):
    shutil.copytree(undisturbed_workdir, tmp_path, dirs_exist_ok=True)
    torn, *others = sorted(records(tmp_path))
    stamps = {name: (tmp_path / name).stat().st_mtime_ns for name in others}
    (tmp_path / torn).write_bytes(undisturbed[torn][:100])
    assert evaluate(tmp_path, *TINY) == undisturbed
    assert stamps == {name: (tmp_path / name).stat().st_mtime_ns for name in others}
    assert (tmp_path / f"{torn}.damaged").read_bytes() == undisturbed[torn][:100]


def test_what_cannot_be_done_is_said_and_the_rest_goes_on(tmp_path):
    """B-PROST cannot see KingKong's screen: no frames, so no VAE, so no games with it; but games with RAM."""
    flags = ("--experiment=custom", "--features=vae,ram", "--games=KingKong", "--runs=1")
    small = ("--budget_nodes=5", "--max_actions=5", "--retries=1")
    said = finish(start(tmp_path, *flags, *small), code=1)
    assert "needs a screen of 210 x 160 pixels" in said
    assert "it needs screens/KingKong" in said
    assert "it needs vaes/KingKong" in said
    assert "1 of 4 jobs are done" in said
    assert len(records(tmp_path)) == 1
    (log,) = tmp_path.glob("logs/screens/*.log")
    assert log.read_text().count("needs a screen of 210 x 160") == 2
    assert len(list(tmp_path.glob("failed/**/*.json"))) == 3


def test_a_vae_is_trained_once_and_handed_on_by_its_digest(tmp_path):
    """From frames to games, with a store that a second evaluation finds everything in."""
    store = tmp_path / "store"
    training = (
        f"--num_screens={train_process.SCREENS}",
        f"--batch_size={train_process.BATCH}",
        "--epochs=1",
    )
    flags = ("--experiment=custom", "--features=vae", "--games=Pong", "--budget_nodes=6")
    flags = (*flags, *training, "--max_actions=4", f"--store={store}")
    one = evaluate(tmp_path / "one", *flags, "--runs=1")
    (trained,) = store.glob("vaes/*/trained.json")
    digest = json.loads(trained.read_text())["model"]
    named = {json.loads(record)["config"]["features"] for record in one.values()}
    assert named == {f"vae:{digest}"}
    (log,) = store.glob("logs/vaes/*.log")
    assert log.read_text().count("is done\n") == 1
    left = finish(start(tmp_path / "other", *flags, "--runs=1", "--dry_run"))
    assert "2 done already" in left
    assert "train " not in left


def test_a_training_held_back_for_another_is_not_started_after_a_stop(tmp_path):
    """As on a machine with one GPU, which has room for one training at a time."""
    config = TrainConfig(screens=str(tmp_path / "none"))
    one, other = (Job(TRAIN, f"vaes/{name}", tmp_path, "Pong", config) for name in "ab")
    engine = LocalEngine(one_training=True)
    engine.start(one)
    engine.start(other)
    engine.stop()
    ended = {}
    wait_for(lambda: ended.update((job.name, o) for job, o in engine.ended(0.1)) or len(ended) == 2)
    assert ended[other.name].code == STOPPED
    assert one.beside("logs", ".log").exists()
    assert not other.beside("logs", ".log").exists()
    assert not engine.ended(0.1)


def test_a_worker_stopped_before_it_can_save_has_not_failed(tmp_path):
    """It dies of the signal while it loads its libraries."""
    job = Job(TRAIN, "vaes/a", tmp_path, "Pong", TrainConfig(screens=str(tmp_path / "none")))
    told = []
    scheduler = Scheduler(
        [job],
        LocalEngine(),
        retries=0,
        on_retry=lambda job, why: told.append(why),
        on_failure=lambda job, why: told.append(why),
    )
    tally = scheduler.run(lambda: bool(scheduler.tally.running))
    assert (tally.stopped, tally.left, tally.failed, told) == (True, 1, {}, [])
    assert not list(tmp_path.glob("failed/**/*.json"))


def test_what_a_worker_says_went_wrong_is_kept_though_it_was_asked_to_stop(tmp_path):
    job = Job(TRAIN, "vaes/a", tmp_path, "Pong", TrainConfig(screens=str(tmp_path / "none")))
    scheduler = Scheduler([job], LocalEngine(), retries=0)
    scheduler.tally.stopped = True
    scheduler._handle(job, Outcome(FAILED, "no space left"))
    assert scheduler.tally.failed == {job.name: "no space left"}


def test_jobs_with_seconds_get_cores_of_their_own(tmp_path):
    """Two processes that want the same core take turns; one that does not mind shares it."""
    script = (
        "import os, sys; from vaeiw_jax.experiments import core_locks\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "with core_locks.pinned(1, sys.argv[1] == 'alone') as mine:\n"
        "    print(mine, os.sched_getaffinity(0), flush=True); sys.stdin.read()"
    )

    def holder(how):
        return subprocess.Popen(
            [sys.executable, "-c", script, how],
            env=os.environ | {"TMPDIR": str(tmp_path)},  # with lock files of its own
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    first = holder("alone")
    core = min(os.sched_getaffinity(0))
    assert first.stdout.readline() == f"[{core}] {{{core}}}\n"
    sharing = holder("sharing")
    assert sharing.stdout.readline() == f"[{core}] {{{core}}}\n"
    second = holder("alone")
    time.sleep(0.5)
    evaluations.kill(first)
    assert second.stdout.readline() == f"[{core}] {{{core}}}\n"
    sharing.communicate("")
    second.communicate("")


def test_more_cores_than_there_are_is_refused():
    with pytest.raises(UserError, match="is to have 4096 cores"), core_locks.pinned(4096, False):
        pass
    with pytest.raises(UserError, match="--cpus_per_job must be from 1 to"):
        LocalEngine(4096)
