"""What TensorBoard reads of a run: a file of events, written by whoever calls, not by a thread.

TensorBoardX's usual writer has a thread behind a queue of ten. If the disk is full, the thread dies and the queue fills
up, and then the caller waits for ever; here the caller gets the error.
"""

import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import durable


class EventFile:
    """A new file of events in a directory. What cannot be written is an OSError that names the directory."""

    def __init__(self, directory: Path, first_step: int) -> None:
        """Opens the file.

        Args:
          directory: where it is made, beside those of earlier sessions.
          first_step: the next step to be logged; what earlier sessions logged of it and later ones is hidden.
        """
        self._directory = directory
        self._summary, self._proto, writer = _tensorboard(
            "summary", "proto.event_pb2", "event_file_writer"
        )
        with durable.errors_naming(directory):
            directory.mkdir(parents=True, exist_ok=True)
            self._writer = writer.EventsWriter(str(directory / "events"))
        log = self._proto.SessionLog
        self._write(first_step, session_log=log(status=log.START))

    def scalar(self, name: str, value: float, step: int) -> None:
        self._write(step, summary=self._summary.scalar(name, value))

    def histogram(self, name: str, values: np.ndarray, step: int, bins: int) -> None:
        self._write(step, summary=self._summary.histogram(name, values, bins))

    def picture(self, name: str, picture: np.ndarray, step: int) -> None:
        """picture: uint8[rows, columns, 3]."""
        self._write(step, summary=self._summary.image(name, picture, dataformats="HWC"))

    def flush(self) -> None:
        """Brings all that was logged to disk."""
        with durable.errors_naming(self._directory):
            self._writer.flush()

    def close(self) -> None:
        with durable.errors_naming(self._directory):
            self._writer.close()

    def _write(self, step: int, **content: Any) -> None:
        event = self._proto.Event(wall_time=time.time(), step=step, **content)
        with durable.errors_naming(self._directory):
            self._writer.write_event(event)


def _tensorboard(*modules: str) -> list[Any]:
    """Modules of tensorboardX. It loads PyTorch where there is one, for seconds, and needs it for tensors only."""
    without_torch = "torch" not in sys.modules
    if without_torch:
        sys.modules["torch"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        return [importlib.import_module(f"tensorboardX.{module}") for module in modules]
    finally:
        if without_torch:
            del sys.modules["torch"]
