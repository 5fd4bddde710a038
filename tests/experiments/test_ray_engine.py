"""The Ray engine, on a real cluster of two nodes on this machine, whose parts are killed."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.experiments import evaluations
from tests.experiments.evaluations import TINY, evaluate, finish, records, running, start, wait_for
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments.ray_engine import RayEngine

pytest.importorskip("ray")


class Cluster:
    """`launch/ray_local.sh`, and the pids of its nodes."""

    def __init__(self, directory):
        directory.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._directory = directory
        self.flags = ("--engine=ray", f"--ray_address=127.0.0.1:{port}")
        # However this process ends, that one ends with it, and so does the cluster.
        self._parent = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        self._process = subprocess.Popen(
            ["bash", "launch/ray_local.sh", "2", "1", str(port)],
            cwd=evaluations.ROOT,
            env=os.environ
            | {
                "RAY_LOCAL_DIR": str(directory),
                "RAY_LOCAL_PARENT": str(self._parent.pid),
                "PYTHON": sys.executable,
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        assert "2 nodes" in self._process.stdout.readline()
        wait_for(lambda: all(self.raylet(node) for node in (0, 1)))

    def raylet(self, node):
        """The pid of a node's raylet, without which the node is dead."""
        pid = int((self._directory / f"node-{node}.pid").read_text())
        told = subprocess.run(
            ["pgrep", "--pgroup", str(pid), "--full", "raylet/raylet"],
            capture_output=True,
            text=True,
        )
        return int(told.stdout.split()[0]) if told.stdout else None

    def stop(self):
        """The cluster ends with the process that wanted it, leaving nothing behind."""
        self._parent.communicate()
        self._process.communicate(timeout=300)
        assert not any(self.raylet(node) for node in (0, 1))


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path / "ray")
    yield cluster
    cluster.stop()


def test_records_are_those_of_the_local_engine_whatever_is_killed(undisturbed, tmp_path, cluster):
    """The evaluation is interrupted, then killed, then one of the two nodes it uses is."""
    workdir = tmp_path / "evaluation"
    process = start(workdir, *TINY, *cluster.flags)
    wait_for(lambda: running(workdir))
    process.send_signal(signal.SIGINT)
    assert "stopped and saved" in finish(process, code=130)
    wait_for(lambda: not running(workdir))
    assert list(workdir.glob("runs/*/*/progress/*/*.npz")) or records(workdir)

    process = start(workdir, *TINY, *cluster.flags)
    wait_for(lambda: running(workdir))
    evaluations.kill(process)

    process = start(workdir, *TINY, *cluster.flags)
    wait_for(lambda: running(workdir))
    os.kill(cluster.raylet(1), signal.SIGKILL)
    assert "state-dump" not in finish(process)  # what Ray would say of a dead node
    assert records(workdir) == undisturbed
    assert not running(workdir)
    assert evaluate(workdir, *TINY) == undisturbed  # the other engine finds nothing left to do

    process = start(tmp_path / "large", *TINY, *cluster.flags, "--cpus_per_job=2")
    assert "the largest machine of the cluster has 1" in finish(process, code=1)


@pytest.mark.parametrize(
    ("address", "cpus", "sentence"),
    [
        ("there", 1, "must be auto or HOST:PORT"),
        ("127.0.0.1:9", 1, "no Ray cluster at"),
        ("127.0.0.1:9", 0, "--cpus_per_job must be at least 1"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(tmp_path, address, cpus, sentence):
    with pytest.raises(UserError, match=sentence):
        RayEngine(address, cpus, tmp_path)
