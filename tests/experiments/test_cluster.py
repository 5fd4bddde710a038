"""The Ray engine, on a real cluster of two nodes on this machine, whose parts are killed."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.experiments.evaluations import (
    ROOT,
    TINY,
    evaluate,
    finish,
    kill,
    records,
    running,
    start,
    wait_for,
)

pytest.importorskip("ray")


class Cluster:
    """`launch/ray_local.sh`, and the pids of its nodes."""

    def __init__(self, directory):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._directory = directory
        self.flags = ("--engine=ray", f"--ray_address=127.0.0.1:{port}")
        self._process = subprocess.Popen(
            ["bash", "launch/ray_local.sh", "2", "1", str(port)],
            cwd=ROOT,
            env=os.environ
            | {
                "RAY_LOCAL_DIR": str(directory),
                "RAY_LOCAL_PARENT": str(os.getpid()),
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
        self._process.terminate()
        self._process.communicate(timeout=60)


@pytest.fixture
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("ray"))
    yield cluster
    cluster.stop()


def test_records_are_those_of_the_local_engine_whatever_is_killed(undisturbed, tmp_path, cluster):
    """First the driver is killed, then one of the two nodes while the driver that goes on uses it."""
    process = start(tmp_path, *TINY, *cluster.flags)
    wait_for(lambda: running(tmp_path))
    kill(process)
    process = start(tmp_path, *TINY, *cluster.flags)
    wait_for(lambda: running(tmp_path))
    os.kill(cluster.raylet(1), signal.SIGKILL)
    assert "state-dump" not in finish(process)  # what Ray would say of a dead node
    assert records(tmp_path) == undisturbed
    assert not running(tmp_path)
    assert evaluate(tmp_path, *TINY) == undisturbed  # the other engine finds nothing left to do


def test_an_interrupt_saves_what_is_being_played_on_the_cluster(undisturbed, tmp_path, cluster):
    process = start(tmp_path, *TINY, *cluster.flags)
    wait_for(lambda: running(tmp_path))
    process.send_signal(signal.SIGINT)
    assert "stopped and saved" in finish(process, code=130)
    wait_for(lambda: not running(tmp_path))
    assert list(tmp_path.glob("runs/*/*/progress/*/*.npz")) or records(tmp_path)
    assert evaluate(tmp_path, *TINY) == undisturbed
