"""Weights across frameworks: a PyTorch state_dict <-> the variables of the networks here.

In PyTorch each network is one `nn.Sequential`, convolution, block, convolution, block, ...: of the
paper's variant `encoder.{0,2,4}` are convolutions and `encoder.{1,3}` blocks. The published code
has an activation after each convolution but the last, so there `encoder.{0,3,6}` are convolutions
and `encoder.{2,5}` blocks. In a block, `block.{0,4}` are BatchNorms and `block.{2,6}` convolutions.
"""

import io
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import flax
import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.vae.architecture import num_layers, variable_shapes
from vaeiw_jax.vae.config import ModelConfig

_VECTOR = (0,)
_CONV = (3, 2, 0, 1)  # [height, width, in, out] -> [out, in, height, width]
_CONV_TRANSPOSE = (2, 3, 0, 1)  # [height, width, in, out] -> [in, out, height, width]
# PyTorch counts the batches a BatchNorm has seen. Nothing here needs it.
_COUNTER = "num_batches_tracked"


class _Tensor(NamedTuple):
    """One tensor: its name in PyTorch, its name here, and which axis here each of PyTorch's is."""

    torch_name: str
    name: str
    axes: tuple[int, ...]


def from_torch(config: ModelConfig, state_dict: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The variables, "params" and "batch_stats", that a state_dict holds.

    A state_dict of another model is refused with the first tensor that does not fit.
    """
    shapes = variable_shapes(config)
    flat = {}
    for tensor in _tensors(config):
        if tensor.torch_name not in state_dict:
            raise UserError(
                f"the file has no tensor {tensor.torch_name!r}: it does not hold"
                f" {_describe(config)}; check --variant and --latent"
            )
        array = state_dict[tensor.torch_name]
        expected = tuple(shapes[tensor.name][axis] for axis in tensor.axes)
        if array.shape != expected:
            raise UserError(
                f"tensor {tensor.torch_name!r} has shape {list(array.shape)}, but"
                f" {_describe(config)} needs {list(expected)};"
                " check --variant, --latent and --latent_kind"
            )
        flat[tensor.name] = array.transpose(np.argsort(tensor.axes)).astype(np.float32)
    known = {tensor.torch_name for tensor in _tensors(config)}
    for name in state_dict:
        if name not in known and not name.endswith(_COUNTER):
            raise UserError(
                f"tensor {name!r} has no place in {_describe(config)}; check --variant and --latent"
            )
    return flax.traverse_util.unflatten_dict(flat, sep="/")


def to_torch(config: ModelConfig, variables: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The state_dict, as arrays, that `load_state_dict` of the PyTorch model takes."""
    flat = flax.traverse_util.flatten_dict(dict(variables), sep="/")
    state_dict = {}
    for tensor in _tensors(config):
        array = np.asarray(flat[tensor.name], np.float32).transpose(tensor.axes)
        state_dict[tensor.torch_name] = np.ascontiguousarray(array)
        if tensor.torch_name.endswith("running_var"):
            counter = tensor.torch_name.replace("running_var", _COUNTER)
            state_dict[counter] = np.zeros((), np.int64)
    return state_dict


def read(path: Path) -> dict[str, np.ndarray]:
    """Reads the tensors of a file that torch.save wrote; anything but tensors is refused, unrun."""
    torch = _torch()
    if not path.exists():
        raise UserError(f"there is no file {path}")
    try:
        state_dict = torch.load(path, map_location="cpu", weights_only=True)
    except (
        RuntimeError,
        EOFError,
        ValueError,
        pickle.UnpicklingError,
        zipfile.BadZipFile,
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        if isinstance(error, pickle.UnpicklingError):  # whose text advises to load it all the same
            reason = "it is no file of tensors alone"
        raise UserError(
            f"{path} cannot be read as weights ({reason});"
            " save them with torch.save(model.state_dict(), FILE)"
        ) from error
    is_state_dict = isinstance(state_dict, Mapping) and all(
        isinstance(value, torch.Tensor) for value in state_dict.values()
    )
    if not is_state_dict:
        raise UserError(
            f"{path} does not hold a state_dict; save it with torch.save(model.state_dict(), FILE)"
        )
    return {name: tensor.detach().float().numpy() for name, tensor in state_dict.items()}


def write(path: Path, state_dict: Mapping[str, np.ndarray]) -> None:
    """Writes a file that torch.load reads."""
    torch = _torch()
    buffer = io.BytesIO()
    torch.save({name: torch.from_numpy(array) for name, array in state_dict.items()}, buffer)
    durable.write_bytes(path, buffer.getvalue())


def _tensors(config: ModelConfig) -> Iterator[_Tensor]:
    """Every tensor of the model, from the first layer of the encoder to the last of the decoder."""
    apart = 3 if config.variant == "published" else 2
    for network, axes in (("encoder", _CONV), ("decoder", _CONV_TRANSPOSE)):
        last = num_layers(config) - 1
        for i in range(last + 1):
            yield from _conv(f"{network}.{apart * i}", f"{network}/conv_{i}", axes)
            if i < last:
                yield from _block(f"{network}.{apart * (i + 1) - 1}.block", f"{network}/block_{i}")


def _block(torch_name: str, name: str) -> Iterator[_Tensor]:
    for i in range(2):
        yield from _norm(f"{torch_name}.{4 * i}", f"{name}/norm_{i}")
        yield from _conv(f"{torch_name}.{4 * i + 2}", f"{name}/conv_{i}", _CONV)


def _conv(torch_name: str, name: str, axes: tuple[int, ...]) -> Iterator[_Tensor]:
    yield _Tensor(f"{torch_name}.weight", f"params/{name}/kernel", axes)
    yield _Tensor(f"{torch_name}.bias", f"params/{name}/bias", _VECTOR)


def _norm(torch_name: str, name: str) -> Iterator[_Tensor]:
    yield _Tensor(f"{torch_name}.weight", f"params/{name}/scale", _VECTOR)
    yield _Tensor(f"{torch_name}.bias", f"params/{name}/bias", _VECTOR)
    yield _Tensor(f"{torch_name}.running_mean", f"batch_stats/{name}/mean", _VECTOR)
    yield _Tensor(f"{torch_name}.running_var", f"batch_stats/{name}/var", _VECTOR)


def _describe(config: ModelConfig) -> str:
    return f"the {config.variant} {config.latent_kind} model with latent {config.latent}"


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UserError("PyTorch files need PyTorch: pip install torch") from error
    return torch
