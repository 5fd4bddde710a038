"""What is logged of a training, and that a full disk is an error, not a wait for ever."""

import resource
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from vaeiw_jax.training import metrics
from vaeiw_jax.training.metrics import MetricsLog


def events(path: Path) -> Iterator[Event]:
    """What a file of TensorBoard holds: records of a length, its checksum, an event, its checksum."""
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]


@pytest.fixture
def small_disk() -> Iterator[None]:
    """Files may not grow beyond 20 kB, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("small_disk")
def test_events_that_find_no_room_are_an_error_that_names_where(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, 0)

    def log_much() -> None:
        for step in range(1, 2000):
            log.speed(step, 100.0)  # which is for TensorBoard alone

    with pytest.raises(OSError, match="File too large") as caught:
        log_much()
    assert caught.value.filename == str(tmp_path / "tensorboard")


@pytest.mark.timeout(60)
@pytest.mark.usefixtures("small_disk")
def test_lines_that_find_no_room_are_an_error_that_names_their_file(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, 0)
    for step in range(1, 501):  # more than 20 kB, of which the last are not written before a flush
        log.train(step, 1, {})
    for write in (log.flush, log.close):
        with pytest.raises(OSError, match="File too large") as caught:
            write()
        assert caught.value.filename == str(tmp_path / metrics.FILE)
    assert metrics.read(tmp_path / metrics.FILE)[0]["step"] == 1


def test_tensorboard_hides_what_was_logged_beyond_the_step_that_a_run_goes_on_from(
    tmp_path: Path,
) -> None:
    log = MetricsLog(tmp_path, 7)
    log.train(8, 1, {"loss": 2.5})
    log.validation(8, 1, {"bce": 1.5}, np.array([3, 4, 4]), {"Pong": {"excess_bce": 0.5}})
    log.picture(8, np.zeros((2, 3, 3), np.uint8), "frames")
    log.close()
    (path,) = (tmp_path / "tensorboard").iterdir()
    version, start, *logged = events(path)
    assert version.file_version == "brain.Event:2"
    assert (start.step, start.session_log.status) == (8, SessionLog.START)
    values = {event.summary.value[0].tag: event.summary.value[0] for event in logged}
    assert {event.step for event in logged} == {8}
    for name, value in (("train/loss", 2.5), ("validation/bce", 1.5), ("games/Pong", 0.5)):
        assert values[name].simple_value == value
    assert values["validation/features_per_frame"].histo.num == 3
    assert (values["frames"].image.height, values["frames"].image.width) == (2, 3)
