"""Files that a crash leaves whole: the old one or the new one, never a half. Damaged ones are refused by name."""

import hashlib
import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    _sync_directory(path.parent)


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
    write_bytes(path, json_bytes({**value, _SEAL: _seal(value)} if sealed else value))


def read_json(path: Path, sealed: bool = False) -> dict[str, Any]:
    """Reads an object; whatever else the file may hold is refused."""
    data = path.read_bytes()
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(path, error) from error
    if not isinstance(value, dict):
        raise DamagedFileError(path, f"it holds {str(value)[:20]!r}, not an object")
    if sealed and _SEAL in value and value.pop(_SEAL) != _seal(value):
        raise DamagedFileError(path, "its SHA-256 is not the one it names")
    return value


def _seal(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


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
