"""The checkpoints of a training run: its full state, written by Orbax in the background."""

import contextlib
import errno
import logging
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import absl.logging
import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.durable import DamagedFileError
from vaeiw_jax.errors import UserError

State = TypeVar("State")


class TrainingCheckpoints:
    """The checkpoints of a training run: the latest few and the best by validation loss."""

    def __init__(self, directory: Path, keep: int = 3) -> None:
        """Opens `directory`, which is made if need be; what a crash left unfinished is removed."""
        import orbax.checkpoint as ocp
        from orbax.checkpoint.checkpoint_managers import AnyPreservationPolicy, BestN, LatestN

        self._directory = directory
        _check_metadata(directory)

        def validation_loss(metrics: Mapping[str, float]) -> float:
            return metrics["loss"]

        best = BestN(
            n=1,
            get_metric_fn=validation_loss,
            reverse=True,
            keep_checkpoints_without_metrics=False,
        )
        options = ocp.CheckpointManagerOptions(
            preservation_policy=AnyPreservationPolicy([LatestN(keep), best]),
            best_fn=validation_loss,  # without it Orbax does not write the metrics down
            best_mode="min",
            cleanup_tmp_directories=True,
            enable_async_checkpointing=True,
        )
        try:
            self._manager = ocp.CheckpointManager(directory.absolute(), options=options)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _damaged(directory, error) from error

    def latest_step(self) -> int | None:
        return self._manager.latest_step()

    def best_step(self) -> int | None:
        """The step of the least validation loss, None where none was validated."""
        return self._manager.best_step()

    def save(
        self,
        step: int,
        state: Any,
        config: Mapping[str, Any],
        metrics: Mapping[str, float] | None = None,
        log_digest: str | None = None,
    ) -> None:
        """Begins to save; returns once `state` is copied, so that its buffers may be donated.

        On the CPU Orbax would read the very memory that the next step overwrites, hence the copy.

        Args:
          step: steps done.
          state: a tree of arrays.
          config: how the run is configured.
          metrics: of the validation after this step, if there was one.
          log_digest: SHA-256 of the metrics logged up to this step.
        """
        import jax
        import orbax.checkpoint as ocp

        if step == self.latest_step():
            return
        arrays = jax.tree.map(lambda array: np.array(array, copy=True), state)
        about = {
            "config": dict(config),
            "metrics": dict(metrics or {}),
            "log_sha256": log_digest,
            "sha256": _digest(arrays),
        }
        about["about_sha256"] = durable.seal(about)
        with _as_os_error(self._directory):
            self._manager.save(
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave(arrays), about=ocp.args.JsonSave(about)
                ),
                metrics=None if metrics is None else dict(metrics),
            )

    def restore(self, step: int, like: State) -> State:
        """The state saved at `step`, as NumPy arrays; `like` gives structure, shapes and types."""
        import jax
        import orbax.checkpoint as ocp

        path = self._directory / str(step)
        template = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), like)
        try:
            restored = self._manager.restore(
                step, args=ocp.args.Composite(state=ocp.args.StandardRestore(template))
            )
            state = jax.tree.map(np.asarray, restored.state)
        except (
            Exception
        ) as error:  # Orbax raises almost anything where a file is not as it was written
            raise _damaged(path, str(error).partition("\n")[0][:200]) from error
        if _digest(state) != _read_about(path).get("sha256"):
            raise _damaged(path, "wrong SHA-256")
        if jax.tree.map(np.shape, state) != jax.tree.map(np.shape, like):
            raise UserError(f"the checkpoint {path} is of a model of another shape; {_REMEDY}")
        return state

    def log_digest(self, step: int) -> str | None:
        """SHA-256 of the metrics logged up to `step`, as far as the checkpoint knows it."""
        return _read_about(self._directory / str(step)).get("log_sha256")

    def wait(self) -> None:
        """Returns when everything saved is on disk."""
        with _as_os_error(self._directory):
            self._manager.wait_until_finished()

    def close(self) -> None:
        with _as_os_error(self._directory):
            self._manager.close()


def quiet_orbax() -> None:
    """Keeps Orbax from logging to stderr.

    A save that fails is raised where it is waited for; its threads need not print it as well.
    """
    absl.logging.set_verbosity(absl.logging.FATAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    in_thread, in_callback = threading.excepthook, sys.unraisablehook

    def except_orbax(raised: threading.ExceptHookArgs) -> None:
        if "orbax" not in "".join(traceback.format_tb(raised.exc_traceback)):
            in_thread(raised)

    def except_late_callbacks(raised: Any) -> None:
        if str(raised.exc_value) != "Event loop is closed":
            in_callback(raised)

    threading.excepthook, sys.unraisablehook = except_orbax, except_late_callbacks


_REMEDY = "remove it to go on from the one before"
_ABOUT, _METRICS, _ORBAX = "about/metadata", "metrics/metrics", "_CHECKPOINT_METADATA"


def _damaged(path: Path, reason: object) -> DamagedFileError:
    return DamagedFileError(path, reason, _REMEDY)


def _check_metadata(directory: Path) -> None:
    """Refuses a checkpoint that Orbax would stumble over, or misread: metrics decide which is the best."""
    # A name such as `200.orbax-checkpoint-tmp` is of one that a crash left unfinished, which Orbax removes.
    for path in sorted(path for path in directory.glob("*") if path.name.isdigit()):
        try:
            found = {
                name: durable.read_json(path / name)
                for name in (_ORBAX, _ABOUT, _METRICS)
                if (path / name).exists()
            }
        except DamagedFileError as error:
            raise _damaged(error.path, error.reason) from error
        if _ABOUT in found and found.get(_METRICS, {}) != _read_about(path).get("metrics"):
            raise _damaged(path / _METRICS, f"its metrics are not those in {_ABOUT}")


def _read_about(checkpoint: Path) -> dict[str, Any]:
    """What was saved beside the state."""
    path = checkpoint / _ABOUT
    try:
        about = durable.read_json(path)
    except (DamagedFileError, FileNotFoundError) as error:
        raise _damaged(path, error) from error
    if about.pop("about_sha256", None) not in (None, durable.seal(about)):
        raise _damaged(path, "its SHA-256 is not the one it names")
    return about


@contextlib.contextmanager
def _as_os_error(directory: Path) -> Iterator[None]:
    """Orbax reports a failed write as whatever its storage raises; callers expect an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS):
            if os.strerror(number) in str(error):
                raise OSError(number, os.strerror(number), str(directory)) from error
        raise


def _digest(tree: Any) -> str:
    """SHA-256 of a tree of NumPy arrays."""
    import jax

    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return durable.arrays_digest(
        (jax.tree_util.keystr(path), np.asarray(leaf)) for path, leaf in leaves
    )
