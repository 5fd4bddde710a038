"""The command `launch.evaluate`, as a user types it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def test_a_dry_run_lists_the_jobs_and_estimates_the_hours(launch, tmp_path):
    done = launch("evaluate", "--experiment=main", f"--workdir={tmp_path}", "--dry_run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("runs/vae_iw_ra/") == 550
    assert "1,650 play     at most      3,4" in done.stdout  # 1,650 games of 15,000 half seconds
    assert "100 machines like this" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def evaluated(launch, tmp_path_factory):
    """The work directory of two games of random play."""
    workdir = tmp_path_factory.mktemp("evaluated")
    flags = ("--experiment=random", "--games=Pong", "--runs=2", "--max_actions=5")
    assert launch("evaluate", *flags, f"--workdir={workdir}").returncode == 0
    return workdir


def test_status_tells_what_is_done_and_left(launch, evaluated):
    (evaluated / "runs/random/Pong/episodes/Pong/seed-1.json").unlink()
    told = launch("evaluate", "--status", f"--workdir={evaluated}")
    assert "1 done     0 running     0 failed      1 left" in told.stdout
    assert "expected: " in told.stdout


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "--experiment is missing"),
        (("--experiment=main", "--games=Pnog"), "did you mean 'Pong'"),
        (("--experiment=main", "--engine=slurm"), "unknown engine 'slurm'"),
        (("--experiment=main", "--retries=-1"), "--retries must be 0 or more"),
        (("--experiment=main", "--cpus_per_job=0", "--dry_run"), "--cpus_per_job must be at least"),
        (("--experiment=", "--dry_run"), "--experiment= names nothing"),
        (
            ("--experiment=own_vaes", "--publish_to=none", "--dry_run"),
            "makes a VAE that nobody ships",
        ),
        (("--experiment=main", "--cpus_per_job=999", "--dry_run"), "the cores of this machine"),
        (
            ("--experiment=custom", "--features=vae:univeral", "--budget_nodes=5", "--dry_run"),
            "did you mean 'universal'",
        ),
        (
            ("--experiment=random", f"--publish_to={__file__}", "--budget_nodes=5", "--dry_run"),
            "is a file; results are published to a folder",
        ),
        (("--experiment=main", "--engine=ray", "--ray_address=127.0.0.1:9"), "no Ray cluster at"),
        (("--status",), "holds no evaluation"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(launch, tmp_path, flags, sentence):
    done = launch("evaluate", f"--workdir={tmp_path}", *flags)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_without_ray_it_says_what_to_install(tmp_path):
    """A module of that name which cannot be imported stands for one that is not there."""
    (tmp_path / "ray.py").write_text("raise ImportError")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "launch.evaluate",
            "--experiment=main",
            "--engine=ray",
            f"--workdir={tmp_path}/out",
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "Ray is not installed; `pip install '.[cluster]'`" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_work_directory_of_another_experiment_is_refused(launch, evaluated):
    done = launch("evaluate", "--experiment=main", f"--workdir={evaluated}")
    assert done.returncode == 1
    assert "holds an evaluation with experiment=random" in done.stderr


def test_results_are_not_touched_where_nothing_new_is_done(tmp_path):
    code = (
        "import sys; from pathlib import Path; from launch.evaluate import Publisher, Tally\n"
        "Publisher(Path(sys.argv[1]), []).publish(Tally(1))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "results")], check=True, cwd=ROOT)
    assert not list(tmp_path.iterdir())
