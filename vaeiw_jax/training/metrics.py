"""What a training run leaves to read: `metrics.jsonl` and TensorBoard events."""

import collections
import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.training.event_file import EventFile

FILE = "metrics.jsonl"
HISTOGRAM_BINS = 20


class MetricsLog:
    """One line of JSON per training step and per validation, and the same for TensorBoard.

    A line is {"kind": "train" or "validation", "step": steps done, "epoch": epochs begun, ...}.
    Nothing in it depends on the clock, so runs can be compared line by line.
    """

    def __init__(self, workdir: Path, step: int, digest: str | None = None) -> None:
        """Opens the log of a run that goes on after `step`; what was logged beyond is dropped.

        Args:
          workdir: of the run.
          step: steps done.
          digest: SHA-256 of what was logged up to `step`; a log with another is refused.
        """
        self._path = workdir / FILE
        kept = _up_to(self._path, step)
        self._digest = hashlib.sha256(kept)
        if digest is not None and digest != self.digest:
            remedy = f"restore it, or begin again in another --workdir than {workdir}"
            raise durable.DamagedFileError(
                self._path, f"it is not as it was at step {step}", remedy
            )
        if self._path.exists():
            durable.write_bytes(self._path, kept)
        self._file = self._path.open("a")
        self._events = EventFile(workdir / "tensorboard", first_step=step + 1)

    def train(self, step: int, epoch: int, metrics: Mapping[str, float]) -> None:
        self._write({"kind": "train", "step": step, "epoch": epoch, **metrics})
        for name, value in metrics.items():
            self._events.scalar(f"train/{name}", value, step)

    def validation(
        self,
        step: int,
        epoch: int,
        metrics: Mapping[str, float],
        features: np.ndarray,
        games: Mapping[str, Mapping[str, float]],
    ) -> None:
        """Logs a validation.

        Args:
          step: steps done.
          epoch: epochs begun.
          metrics: of all frames together.
          features: int[N], how many are true in each frame.
          games: the metrics of each game, if there are several.
        """
        counts, edges = np.histogram(features, bins=HISTOGRAM_BINS)
        histogram = {"counts": counts.tolist(), "edges": [round(float(edge), 3) for edge in edges]}
        line: dict[str, Any] = {"kind": "validation", "step": step, "epoch": epoch, **metrics}
        if games:
            line["games"] = {game: dict(values) for game, values in games.items()}
        self._write({**line, "features_histogram": histogram})
        for game, values in games.items():
            self._events.scalar(f"games/{game}", values["excess_bce"], step)
        for name, value in metrics.items():
            self._events.scalar(f"validation/{name}", value, step)
        self._events.histogram("validation/features_per_frame", features, step, HISTOGRAM_BINS)

    def speed(self, step: int, images_per_second: float) -> None:
        """Depends on the machine, hence for TensorBoard alone."""
        self._events.scalar("speed/images_per_second", images_per_second, step)

    def picture(self, step: int, picture: np.ndarray, name: str) -> None:
        """picture: uint8[rows, columns, 3]."""
        self._events.picture(name, picture, step)

    def flush(self) -> None:
        """Brings all that was logged to disk: a checkpoint must not be ahead of its metrics."""
        with durable.errors_naming(self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
        self._events.flush()

    def close(self) -> None:
        with contextlib.ExitStack() as stack:  # both are closed, whatever fails
            stack.callback(self._events.close)
            stack.callback(durable.errors_naming(self._path)(self._file.close))
            self.flush()

    @property
    def digest(self) -> str:
        """SHA-256 of all that was logged."""
        return self._digest.hexdigest()

    def _write(self, line: Mapping[str, Any]) -> None:
        text = json.dumps(line) + "\n"
        self._digest.update(text.encode())
        with durable.errors_naming(self._path):
            self._file.write(text)


def _up_to(path: Path, step: int) -> bytes:
    """The lines of the steps up to `step`."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    kept = []
    for line in lines:
        try:
            beyond = json.loads(line)["step"] > step
        except (ValueError, TypeError, KeyError):  # cut short by a crash, or damaged
            break
        if beyond:
            break
        kept.append(line)
    return b"".join(kept)


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`; a last line that a crash cut short is left out."""
    data = path.read_bytes()
    lines = []
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise durable.DamagedFileError(path, f"line {number}: {error}") from error
        if not isinstance(entry, dict) or not {"kind", "step"} <= entry.keys():
            raise durable.DamagedFileError(path, f"line {number} is {entry!r}"[:100])
        lines.append(entry)
    return lines


def validations(workdir: Path) -> list[dict[str, Any]]:
    """The validations logged in `workdir`, in order."""
    path = workdir / FILE
    lines = read(path) if path.exists() else []
    return [line for line in lines if line["kind"] == "validation"]


def best_validation(workdir: Path) -> dict[str, Any] | None:
    """The validation of the least loss that is logged in `workdir`, as records have it; None if there is none."""
    best = min(validations(workdir), key=lambda line: line["loss"], default=None)
    return best and _as_recorded(best)


def logged_validation(workdir: Path, step: int) -> dict[str, Any] | None:
    """The validation after a step, as `best_validation` has it; None if none is logged."""
    found = (line for line in validations(workdir) if line["step"] == step)
    line = next(found, None)
    return line and _as_recorded(line)


def _as_recorded(line: dict[str, Any]) -> dict[str, Any]:
    only_logged = ("kind", "features_histogram")
    return {name: value for name, value in line.items() if name not in only_logged}


class Throughput:
    """Images per second, over the latest calls.

    Args:
      batch_size: images per step.
    """

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._recent: collections.deque[tuple[float, int]] = collections.deque(maxlen=50)

    def update(self, step: int) -> None:
        """Notes that `step` steps are done now."""
        self._recent.append((time.monotonic(), step))

    @property
    def images_per_second(self) -> float:
        if len(self._recent) < 2:
            return 0.0
        (start, before), (end, after) = self._recent[0], self._recent[-1]
        return self._batch_size * (after - before) / max(end - start, 1e-9)
