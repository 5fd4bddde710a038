"""Training on several devices and hosts: the batch cut along one mesh, all else on every device.

Nothing else in training knows how many devices there are. The compiler inserts what crosses them,
so that BatchNorm's mean is the mean over the whole batch.
"""

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from vaeiw_jax.errors import UserError


def connect(coordinator: str | None, num_processes: int | None, process_id: int | None) -> None:
    """Joins this process to the others of the run; call it before anything else touches JAX.

    `coordinator` is the address host:port of process 0, or "auto" where the platform knows (a TPU
    slice, Slurm); without it the process stays alone.
    """
    if coordinator is None:
        if num_processes is not None or process_id is not None:
            raise UserError("--num_processes and --process_id need --coordinator=HOST:PORT")
    elif coordinator == "auto":
        _initialize()
    elif num_processes is None or process_id is None:
        raise UserError("--coordinator=HOST:PORT needs --num_processes and --process_id")
    elif not 0 <= process_id < num_processes:
        raise UserError(
            f"--process_id must be from 0 to {num_processes - 1} with"
            f" --num_processes={num_processes}, not {process_id}"
        )
    else:
        _initialize(coordinator, num_processes, process_id)


def _initialize(*arguments: Any) -> None:
    try:
        jax.distributed.initialize(*arguments)
    except (ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"this process cannot join the others ({reason}); --coordinator=auto is for TPU slices and Slurm, "
            "elsewhere give --coordinator=HOST:PORT of process 0, --num_processes and --process_id"
        ) from error


def device_mesh(batch_size: int) -> Mesh:
    """All devices of all processes in a row, the axis "batch"."""
    devices = jax.devices()
    if batch_size % len(devices):
        raise UserError(
            f"a batch of {batch_size} cannot be shared evenly by {len(devices)} devices;"
            f" take --batch_size={-(-batch_size // len(devices)) * len(devices)}"
        )
    return Mesh(np.array(devices), ("batch",))


def replicated(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec())


def along_batch(mesh: Mesh, axis: int = 0) -> NamedSharding:
    """Cuts dimension `axis` of an array along the mesh."""
    return NamedSharding(mesh, PartitionSpec(*[None] * axis, "batch"))


def replicate(mesh: Mesh, tree: Any) -> Any:
    """Puts a tree of host arrays, the same in every process, on every device."""

    def put(array: Any) -> jax.Array:
        return place(np.asarray(array), replicated(mesh))

    return jax.tree.map(put, tree)


def place(array: np.ndarray, cut: NamedSharding) -> jax.Array:
    """Puts a host array, the same in every process, on the devices, cut as told."""
    return jax.make_array_from_callback(array.shape, cut, lambda at: array[at])


def is_primary() -> bool:
    """Whether this process writes the files that only one may write."""
    return jax.process_index() == 0


def any_process(flag: bool) -> bool:
    """Whether `flag` is true in some process; every process must ask, in the same order."""
    if jax.process_count() == 1:
        return flag
    return bool(multihost_utils.process_allgather(np.array(flag)).any())
