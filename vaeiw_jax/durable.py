"""Files that a crash leaves whole: the old one or the new one, never a half. Damaged ones are refused by name."""

import contextlib
import hashlib
import io
import json
import os
import secrets
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax.errors import UserError

_SEAL = "sha256"
_END_OF_ARCHIVE = struct.Struct("<4s4H2LH")


class DamagedFileError(UserError):
    """A file that is not as it was written."""

    def __init__(self, path: Path, reason: object, remedy: str = "move it away and run again"):
        super().__init__(f"{path} is damaged ({reason}); {remedy}")
        self.path = path
        self.reason = reason


def write_bytes(path: Path, data: bytes) -> None:
    """Replaces the file at `path` by `data`; if that fails, the old file stays as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Processes on several machines that share the directory may have the same number.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with errors_naming(path):
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    _sync_directory(path.parent)


@contextlib.contextmanager
def errors_naming(path: Path) -> Iterator[None]:
    """An OSError inside names `path`, which those of a file that is open do not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _sync_directory(directory: Path) -> None:
    """Makes a rename in `directory` survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def json_bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def write_json(path: Path, value: Mapping[str, Any], sealed: bool = False) -> None:
    """Writes an object; `sealed` adds an entry with the digest of the others, which `read_json` verifies."""
    write_bytes(path, json_bytes({**value, _SEAL: seal(value)} if sealed else value))


def read_json(path: Path, sealed: bool = False) -> dict[str, Any]:
    """Reads an object; whatever else the file may hold is refused."""
    data = path.read_bytes()
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(path, error) from error
    if not isinstance(value, dict):
        raise DamagedFileError(path, f"it holds {str(value)[:20]!r}, not an object")
    if sealed and _SEAL in value and value.pop(_SEAL) != seal(value):
        raise DamagedFileError(path, "its SHA-256 is not the one it names")
    return value


def seal(value: Mapping[str, Any]) -> str:
    """SHA-256 of an object as JSON, whatever the order of its entries."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def arrays_digest(arrays: Iterable[tuple[str, np.ndarray]]) -> str:
    """SHA-256 of the names, types, shapes and values of arrays, in the order given."""
    digest = hashlib.sha256()
    for name, array in arrays:
        header = json.dumps([name, str(array.dtype), array.shape])
        digest.update(header.encode() + array.tobytes())
    return digest.hexdigest()


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a compressed .npz; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy")  # dated 1980, whatever the clock says
            archive.writestr(info, member.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=1)
    write_bytes(path, buffer.getvalue())


def part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with "PREFIX.", by the rest of their names."""
    start = f"{prefix}."
    return {name.removeprefix(start): arrays[name] for name in arrays if name.startswith(start)}


@contextlib.contextmanager
def resuming(path: Path, remedy: str) -> Iterator[None]:
    """What fails inside for what `path` holds, damaged or of another config, is a damaged file with this remedy."""
    try:
        yield
    except DamagedFileError as error:
        raise DamagedFileError(path, error.reason, remedy) from error
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise DamagedFileError(path, error, remedy) from error


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads an .npz whole; every member's checksum is verified on the way."""
    data = path.read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        _, _, _, _, members, *_ = _END_OF_ARCHIVE.unpack(data[-_END_OF_ARCHIVE.size :])
    except Exception as error:  # zipfile raises almost anything where bits are wrong
        raise DamagedFileError(path, error) from error
    if members != len(arrays):
        raise DamagedFileError(path, f"it holds {len(arrays)} arrays of {members}")
    return arrays
