"""A job in a process of its own: what it loads, and what it does about files that are damaged."""

import subprocess
import sys

import pytest

from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import worker
from vaeiw_jax.experiments.jobs import COLLECT, PLAY, Job
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig
from vaeiw_jax.progress import never, silent

EPISODE = EpisodeConfig(
    AtariConfig("Pong"),
    PlannerConfig(budget_seconds=None, budget_nodes=4),
    FeaturesConfig("ram"),
    max_actions=4,
)


def collecting(home):
    return Job(COLLECT, "screens/Pong", home, "Pong", CollectConfig(EPISODE, num_screens=10))


def playing(home):
    return Job(PLAY, "runs/ram/Pong/seed-0", home, "Pong", PlayConfig(EPISODE))


@pytest.mark.parametrize("make", [collecting, playing])
def test_a_damaged_record_is_set_aside_and_the_job_done_again(tmp_path, make):
    job = make(tmp_path)
    assert worker.perform(job, never, silent)
    whole = job.record.read_bytes()
    for damage in (b"", b"[]", b"null", b"{}", whole[:50], whole.replace(b"Pong", b"Qong")):
        job.record.write_bytes(damage)
        assert not job.is_done()
        assert worker.perform(job, never, silent)
        assert job.is_done()
        assert job.record.read_bytes() == whole
        assert job.record.with_name(f"{job.record.name}.damaged").read_bytes() == damage


def test_a_damaged_save_of_a_game_is_set_aside_with_a_damaged_record(tmp_path):
    job = playing(tmp_path)
    for path in (job.run.progress, job.record):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"torn")
    assert worker.perform(job, never, silent)
    assert job.is_done()


def test_what_a_job_cannot_do_without_is_not_set_aside(tmp_path):
    job = collecting(tmp_path)
    assert worker.perform(job, never, silent)
    job.record.unlink()
    save = job.directory / "progress.npz"
    save.write_bytes(b"torn")
    with pytest.raises(UserError, match=r"progress\.npz is damaged"):
        worker.perform(job, never, silent)
    assert save.exists()


def test_what_the_system_refuses_is_the_last_line_and_the_log_says_where(tmp_path):
    (tmp_path / "runs").write_text("a file where a folder should be")
    command = [sys.executable, "-m", "vaeiw_jax.experiments.worker", playing(tmp_path).to_json()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == worker.FAILED
    assert "Traceback" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"error: {tmp_path}/runs/ram/Pong")
    assert last.endswith(": Not a directory")


def test_only_training_loads_jax(tmp_path):
    jobs = [job.to_json() for job in (collecting(tmp_path), playing(tmp_path))]
    code = (
        "import sys; from vaeiw_jax.experiments import worker; from vaeiw_jax import collect, play\n"
        "assert [worker.main([job]) for job in sys.argv[1:]] == [0, 0]; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *jobs], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not {"jax", "flax", "optax", "orbax"} & set(done.stdout.split())
