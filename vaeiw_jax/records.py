"""Records of finished jobs. A record is written last and at once: where it is, and is whole, the job is done.

Beside it lies its host file, `<record>.host.json`, with what depends on the machine and the digest of the record.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vaeiw_jax import durable
from vaeiw_jax.durable import DamagedFileError
from vaeiw_jax.errors import UserError

COLLECTION, TRAINING, ONLINE = "collection.json", "trained.json", "online.json"
"""The records of a screen store, a training run and an online training, in their work directories."""

DIGEST = "record_sha256"
"""The entry of the host file that holds the SHA-256 of the record's bytes."""


def host_path(path: Path) -> Path:
    """The host file of the record at `path`."""
    return path.with_name(f"{path.stem}.host.json")


def write(path: Path, record: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    """Writes the host file, and then the record."""
    data = durable.json_bytes(record)
    durable.write_json(host_path(path), {**host, DIGEST: hashlib.sha256(data).hexdigest()})
    durable.write_bytes(path, data)


def read(path: Path) -> dict[str, Any] | None:
    """The record at `path`, None if there is none. One that is not as it was written is refused."""
    if not path.exists():
        return None
    record = durable.read_json(path)
    digest = _recorded_digest(path)
    if digest is not None and digest != hashlib.sha256(path.read_bytes()).hexdigest():
        raise DamagedFileError(path, f"its SHA-256 is not the one in {host_path(path).name}")
    if not isinstance(record.get("config"), dict):
        raise DamagedFileError(path, "it has no config")
    return record


def _recorded_digest(path: Path) -> str | None:
    """None where the host file is lost: it adds nothing to the result but this check."""
    try:
        return durable.read_json(host_path(path)).get(DIGEST)
    except (UserError, FileNotFoundError):
        return None
