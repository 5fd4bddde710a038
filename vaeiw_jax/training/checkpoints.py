"""The checkpoints of a training run: its full state, written by Orbax in the background."""

import contextlib
import errno
import hashlib
import json
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

from vaeiw_jax.errors import UserError

State = TypeVar("State")


class TrainingCheckpoints:
    """The checkpoints of a training run: the latest few and the best by validation loss."""

    def __init__(self, directory: Path, keep: int = 3) -> None:
        """Opens `directory`, which is made if need be; halves that a crash left are removed."""
        import orbax.checkpoint as ocp
        from orbax.checkpoint.checkpoint_managers import AnyPreservationPolicy, BestN, LatestN

        self._directory = directory

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
        self._manager = ocp.CheckpointManager(directory.absolute(), options=options)

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
    ) -> None:
        """Begins to save; returns once `state` is copied, so that its buffers may be donated.

        On the CPU Orbax would read the very memory that the next step overwrites, hence the copy.
        """
        import jax
        import orbax.checkpoint as ocp

        arrays = jax.tree.map(lambda array: np.array(array, copy=True), state)
        about = {"config": dict(config), "metrics": dict(metrics or {}), "sha256": _digest(arrays)}
        if step == self.latest_step():
            return
        with _said_in_a_sentence(self._directory):
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
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardRestore(template), about=ocp.args.JsonRestore()
                ),
            )
        except (ValueError, OSError, KeyError, RuntimeError) as error:
            reason = str(error).splitlines()[0][:200]
            raise UserError(f"the checkpoint {path} is damaged ({reason}); {_MEND}") from error
        state = jax.tree.map(np.asarray, restored.state)
        if _digest(state) != restored.about["sha256"]:
            raise UserError(f"the checkpoint {path} is damaged (wrong SHA-256); {_MEND}")
        if jax.tree.map(np.shape, state) != jax.tree.map(np.shape, like):
            raise UserError(f"the checkpoint {path} is of a model of another shape; {_MEND}")
        return state

    def wait(self) -> None:
        """Returns when everything saved is on disk."""
        with _said_in_a_sentence(self._directory):
            self._manager.wait_until_finished()

    def close(self) -> None:
        with _said_in_a_sentence(self._directory):
            self._manager.close()


def quiet_orbax() -> None:
    """Keeps Orbax from telling its life on stderr.

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


_MEND = "remove it to go on from the one before"


@contextlib.contextmanager
def _said_in_a_sentence(directory: Path) -> Iterator[None]:
    """Orbax reports a failed write as whatever its storage raises; launchers know OSError."""
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
    """SHA-256 of the names, types, shapes and values of a tree of NumPy arrays."""
    import jax

    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.asarray(leaf)
        header = [jax.tree_util.keystr(path), str(array.dtype), array.shape]
        digest.update(json.dumps(header).encode() + array.tobytes())
    return digest.hexdigest()
