import subprocess
import sys
from pathlib import Path

import pytest

from vaeiw_jax.experiments import estimates
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.expansion import expand

JOBS = expand(EvaluationConfig("custom", games="Pong", features="vae", runs=3), Path("/nowhere"))


def test_more_machines_are_sooner_done_but_not_sooner_than_collecting_training_and_playing():
    seconds = {job.name: {"collect": 10.0, "train": 20.0, "play": 5.0}[job.kind] for job in JOBS}
    assert estimates.wall_clock(JOBS, seconds, 1) == 10 + 20 + 3 * 5
    assert estimates.wall_clock(JOBS, seconds, 2) == 35 + (2 * 5) / 2
    assert estimates.wall_clock(JOBS, seconds, 1000) == pytest.approx(35, abs=0.1)
    assert estimates.wall_clock(JOBS[1:], seconds, 1) == 20 + 3 * 5  # the frames are there


def test_a_game_to_the_limit_takes_all_its_seconds_and_training_shares_its_cores():
    collect, train, *play = (estimates.at_most(JOBS)[job.name] for job in JOBS)
    assert play[0] == pytest.approx(15_000 * 0.5, rel=0.02)
    assert collect == pytest.approx(3_000 * 0.5, rel=0.02)
    faster = estimates.at_most(JOBS, cpus=2)[JOBS[1].name]
    assert faster == pytest.approx(train / 2, rel=0.01)


def test_learning_online_is_estimated_without_jax():
    code = (
        "import sys; from pathlib import Path; from vaeiw_jax.experiments import estimates, expansion\n"
        "from vaeiw_jax.experiments.evaluation import EvaluationConfig\n"
        "jobs = expansion.expand(EvaluationConfig('olive', 'Pong', runs=1), Path('/nowhere'))\n"
        "assert 'online' in {job.kind for job in jobs}; assert min(estimates.at_most(jobs).values()) > 0\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {"jax", "flax"} & set(done.stdout.split())
