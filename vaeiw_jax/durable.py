"""Files that a crash leaves whole: the old one or the new one, never a half."""

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax.errors import UserError


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


def write_json(path: Path, value: Any) -> None:
    write_bytes(path, (json.dumps(value, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); move it away and run again") from error


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
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError) as error:
        raise UserError(f"{path} is damaged ({error}); move it away and run again") from error
