"""What a training run leaves to read: `metrics.jsonl`, TensorBoard events, a live progress bar."""

import collections
import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from vaeiw_jax import durable

FILE = "metrics.jsonl"
HISTOGRAM_BINS = 20


class MetricsLog:
    """One line of JSON per training step and per validation, and the same for TensorBoard.

    A line is {"kind": "train" or "validation", "step": steps done, "epoch": epochs begun, ...}.
    Nothing in it depends on the clock, so runs can be compared line by line.
    """

    def __init__(self, workdir: Path, step: int) -> None:
        """Opens the log of a run that goes on after `step`; what was logged beyond is dropped."""
        self._path = workdir / FILE
        self._drop_beyond(step)
        self._file = self._path.open("a")
        import tensorboardX  # which loads PyTorch where there is one: nothing for those who only read

        self._board = tensorboardX.SummaryWriter(str(workdir / "tensorboard"), purge_step=step + 1)

    def train(self, step: int, epoch: int, metrics: Mapping[str, float]) -> None:
        self._write({"kind": "train", "step": step, "epoch": epoch, **metrics})
        for name, value in metrics.items():
            self._board.add_scalar(f"train/{name}", value, step)

    def validation(
        self, step: int, epoch: int, metrics: Mapping[str, float], features: np.ndarray
    ) -> None:
        """Logs a validation; features: int[N], how many are true in each frame."""
        counts, edges = np.histogram(features, bins=HISTOGRAM_BINS)
        histogram = {"counts": counts.tolist(), "edges": [round(float(edge), 3) for edge in edges]}
        line = {"kind": "validation", "step": step, "epoch": epoch, **metrics}
        self._write({**line, "features_histogram": histogram})
        for name, value in metrics.items():
            self._board.add_scalar(f"validation/{name}", value, step)
        self._board.add_histogram("validation/features_per_frame", features, step)

    def speed(self, step: int, images_per_second: float) -> None:
        """Depends on the machine, hence for TensorBoard alone."""
        self._board.add_scalar("speed/images_per_second", images_per_second, step)

    def picture(self, step: int, picture: np.ndarray) -> None:
        """picture: uint8[rows, columns, 3]."""
        self._board.add_image("frames", picture, step, dataformats="HWC")

    def flush(self) -> None:
        """Brings all that was logged to disk: a checkpoint must not be ahead of its metrics."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._board.flush()

    def close(self) -> None:
        self.flush()
        self._file.close()
        self._board.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")

    def _drop_beyond(self, step: int) -> None:
        if not self._path.exists():
            return
        kept = [json.dumps(line) + "\n" for line in read(self._path) if line["step"] <= step]
        durable.write_bytes(self._path, "".join(kept).encode())


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`; a last line that a crash cut short is left out."""
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def validations(workdir: Path) -> list[dict[str, Any]]:
    """The validations logged in `workdir`, in order."""
    path = workdir / FILE
    lines = read(path) if path.exists() else []
    return [line for line in lines if line["kind"] == "validation"]


class ProgressBar:
    """Steps done and to do, time left, images per second, and the latest loss and its parts."""

    def __init__(self, step: int, total_steps: int, batch_size: int, visible: bool) -> None:
        terminal = sys.stderr.isatty()
        self._bar = tqdm(
            total=total_steps,
            initial=step,
            unit="step",
            desc="training",
            dynamic_ncols=True,
            mininterval=0.5 if terminal else 60,  # a log file wants a line a minute, not a film
            smoothing=0.1,
            disable=not visible,
        )
        self._batch_size = batch_size
        self._done = step
        self._recent: collections.deque[tuple[float, int]] = collections.deque(maxlen=50)

    def update(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Shows that `steps` more are done, the last of them with these metrics."""
        self._done += steps
        self._recent.append((time.monotonic(), self._done))
        self._bar.set_postfix_str(
            f"loss {metrics['loss']:,.1f}, reconstruction {metrics['bce']:,.1f},"
            f" KL {metrics['kl']:,.1f}, {self.images_per_second:,.1f} images/s",
            refresh=False,
        )
        self._bar.update(steps)

    @property
    def images_per_second(self) -> float:
        """Over the latest calls."""
        if len(self._recent) < 2:
            return 0.0
        (start, before), (end, after) = self._recent[0], self._recent[-1]
        return self._batch_size * (after - before) / max(end - start, 1e-9)

    def close(self) -> None:
        self._bar.close()
