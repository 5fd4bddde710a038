"""Policies on disk: `policy.npz`, the parameters, and `policy.json`, what they are for."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.policies.network import Network, Parameters

FOLDER = "policies"
"""In the work directory of a run, with a directory for each game, and in it one for each seed."""

_DIGEST = "sha256:"


def save(directory: Path, policy: Network, purpose: Mapping[str, Any]) -> None:
    """Writes a policy; `policy.json`, written last, says what it is for."""
    durable.write_arrays(directory / "policy.npz", policy.parameters)
    about = {**purpose, "parameters_sha256": digest(policy.parameters)}
    durable.write_json(directory / "policy.json", about, sealed=True)


def load(given: str, game: str, purpose: Mapping[str, Any]) -> Parameters:
    """The parameters of a policy that is for the same purpose.

    Args:
      given: the directory of the policy, or of the run it was learned in.
      game: that is played, whose policy is looked for in a run's directory.
      purpose: settings, all of which must be those that the policy was saved with.
    """
    directory = find(given, game)
    about, parameters = read(directory)
    for name, mine in purpose.items():
        if about.get(name) != mine:
            raise UserError(
                f"the policy in {directory} is for {name}={about.get(name)}, and this run has {name}={mine}; give one "
                "that was learned with the same settings"
            )
    return parameters


def read(directory: Path) -> tuple[dict[str, Any], Parameters]:
    """What a policy is for, and its parameters."""
    about: dict[str, Any] = durable.read_json(directory / "policy.json", sealed=True)
    return about, _parameters(directory, about)


def identity(given: str, game: str) -> str:
    """A policy's digest, by which records name it; a digest stays what it is."""
    if given.startswith(_DIGEST):
        return given
    return _DIGEST + digest(read(find(given, game))[1])


def find(given: str, game: str) -> Path:
    """The directory that holds the policy itself."""
    if given.startswith(_DIGEST):
        raise UserError(
            f"policy={given[:20]}... is how a record names a policy; give the directory that it is in"
        )
    directory = Path(given)
    if (directory / "policy.json").exists():
        return directory
    found = sorted(path.parent for path in directory.glob(f"{FOLDER}/{game}/*/policy.json"))
    if not found:
        raise UserError(
            f"{directory} holds no policy for {game}; give the directory of a run that had policy_share above 0"
        )
    if len(found) > 1:
        names = ", ".join(str(path) for path in found)
        raise UserError(f"{directory} holds several policies for {game}: {names}; give one of them")
    return found[0]


def digest(parameters: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of the parameters, names, shapes and all."""
    known = hashlib.sha256()
    for name in sorted(parameters):
        array = np.ascontiguousarray(parameters[name], np.float32)
        known.update(f"{name}{array.shape}".encode())
        known.update(array.tobytes())
    return known.hexdigest()


def _parameters(directory: Path, about: Mapping[str, Any]) -> Parameters:
    path = directory / "policy.npz"
    if not path.exists():
        raise durable.DamagedFileError(directory, "it has no policy.npz")
    parameters = durable.read_arrays(path)
    if digest(parameters) != about.get("parameters_sha256"):
        raise durable.DamagedFileError(path, "its digest is not the one in policy.json")
    return parameters
