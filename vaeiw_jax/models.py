"""Trained models on disk: what planning needs, in one small folder that any version of the libraries reads.

config.json        which autoencoder, and what is known about it
weights-....npz    its variables, compressed; config.json holds their digest
usual-....npz      if known, for each game the code that its screens mostly have; config.json holds their digest

Those that come with the project are in `checkpoints`, `universal` for every game, `left_out` to show what one is worth
in games it never saw, and one folder per game that has one of its own: package data in an installation, and in a
checkout a link to the folder at its top level.
"""

import importlib.resources
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import configs, durable
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.vae.architecture import variable_shapes
from vaeiw_jax.vae.config import ModelConfig

SHIPPED = Path(str(importlib.resources.files("vaeiw_jax") / "checkpoints")).resolve()
"""The trained models that come with the project, one folder each."""

UNIVERSAL = "universal"
"""The shipped model that was trained on many games, for those that have none of their own."""

CONFIG = "config.json"
FORMAT = "vaeiw_jax model 1"


def shipped_games() -> list[str]:
    """The games that a trained model of their own comes with."""
    return [name for name in shipped_models() if trained_on(SHIPPED / name) == [name]]


def shipped_models() -> list[str]:
    """The names of the models that come with the project."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{CONFIG}"))


def shipped_by_digest() -> dict[str, str]:
    """The names of the models that come with the project, by the SHA-256 of their weights."""
    return {model_digest(SHIPPED / name): name for name in shipped_models()}


def model_directory(name: str, game: str) -> Path:
    """Where the model is that `features` names.

    Args:
      name: `vae` for the one shipped for the game, or for every game if it has none of its own; `vae:DIRECTORY`, where
        a training run's directory will do; `vae:NAME` for the shipped one of that name.
      game: its usual name.
    """
    _, _, given = name.partition(":")
    if not given:
        return SHIPPED / (game if game in shipped_games() else UNIVERSAL)
    return named(given)


def named(name_or_directory: str | Path) -> Path:
    """Where the model is that has this name or is in this directory.

    Args:
      name_or_directory: a directory, where a training run's will do; or, where there is none of the name, that of a
        shipped model.
    """
    directory = Path(name_or_directory)
    if not directory.exists() and str(name_or_directory) in shipped_models():
        return SHIPPED / name_or_directory
    return directory / "model" if (directory / "model").is_dir() else directory


def trained_on(directory: Path) -> list[str]:
    """The games a model was trained on, as far as that is known."""
    about = model_description(directory)["about"]
    games = about.get("games") or [about.get("game")]
    return [game for game in games if game]


def save_model(
    directory: Path,
    config: ModelConfig,
    variables: Mapping[str, Any],
    about: Mapping[str, Any] | None = None,
    usual: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Writes a model that `load_model` reads, in place of the one `directory` may hold.

    Args:
      directory: where to.
      config: which autoencoder.
      variables: its "params" and "batch_stats".
      about: what else to note in `config.json`, such as the game and the validation loss.
      usual: by game, the value that each bit of a code has on most of its screens, uint8[ceil(bits / 8)], packed.
    """
    arrays = {name: np.asarray(array) for name, array in _flatten(variables).items()}
    _check_shapes(config, arrays, directory)
    # The names of files hold their digests: a crash before the new config leaves the old ones whole.
    description: dict[str, Any] = {
        "format": FORMAT,
        "model": configs.settings(config),
        "weights": _write_arrays(directory, "weights", arrays),
        "about": dict(about or {}),
    }
    if usual:
        description["usual"] = _write_arrays(directory, "usual", usual) | {"games": sorted(usual)}
    durable.write_json(directory / CONFIG, description, sealed=True)
    named = {description[part]["file"] for part in ("weights", "usual") if part in description}
    for old in (*directory.glob("weights-*.npz"), *directory.glob("usual-*.npz")):
        if old.name not in named:
            old.unlink()


def _write_arrays(directory: Path, part: str, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Writes a file that is named after its digest, and says how `config.json` names it."""
    # Names as JAX writes the keys of a dictionary: the digests of the models there are were made so.
    digest = durable.arrays_digest((f"[{key!r}]", arrays[key]) for key in sorted(arrays))
    name = f"{part}-{digest[:16]}.npz"
    durable.write_arrays(directory / name, dict(arrays))
    return {"file": name, "sha256": durable.file_digest(directory / name)}


def load_model(directory: Path) -> tuple[ModelConfig, dict[str, Any]]:
    """Reads a model: its config and its variables, "params" and "batch_stats", as NumPy arrays."""
    description = model_description(directory)
    config = configs.from_settings(ModelConfig, description["model"], directory / CONFIG)
    arrays = _read_arrays(directory, description["weights"])
    _check_shapes(config, arrays, directory)
    return config, _nest(arrays)


def usual_codes(directory: Path) -> dict[str, np.ndarray]:
    """By game, the code that most of its screens have bit for bit: uint8[ceil(bits / 8)]; empty if it is not known."""
    described = model_description(directory).get("usual")
    return _read_arrays(directory, described) if described else {}


def usual_digest(directory: Path, game: str) -> str | None:
    """What tells the model's usual codes from others; None if that of the game is not known."""
    described = model_description(directory).get("usual", {})
    return described["sha256"][:16] if game in described.get("games", ()) else None


def _read_arrays(directory: Path, described: Mapping[str, Any]) -> dict[str, np.ndarray]:
    path = directory / Path(described["file"]).name
    if not path.exists():
        raise UserError(f"{path} is missing, though {CONFIG} names it; copy the whole folder")
    if durable.file_digest(path) != described["sha256"]:
        raise UserError(
            f"{path} is torn: its SHA-256 is not the one in {CONFIG}; copy the folder again"
        )
    return durable.read_arrays(path)


def model_description(directory: Path) -> dict[str, Any]:
    """What `config.json` says: "model", "weights" and "about"."""
    path = directory / CONFIG
    if directory.name == str(directory) and not directory.exists():  # a name rather than a path
        raise unknown("directory or VAE that is shipped", str(directory), shipped_models())
    if not path.exists():
        raise UserError(f"there is no model in {directory}: it has no {CONFIG}")
    description = durable.read_json(path, sealed=True)
    if description.get("format") != FORMAT:
        raise UserError(f"{path} does not describe a model ({FORMAT!r})")
    for name in ("model", "weights", "about"):
        if not isinstance(description.get(name), dict):
            raise durable.DamagedFileError(path, f"its {name} is {description.get(name)!r}")
    for part in ("weights", "usual"):
        for name in ("file", "sha256"):
            if part in description and not isinstance(description[part].get(name), str):
                raise durable.DamagedFileError(path, f"it does not say the {name} of its {part}")
    return description


def model_digest(directory: Path) -> str:
    """The SHA-256 of the model's weights, as its `config.json` says."""
    return model_description(directory)["weights"]["sha256"]


def _flatten(variables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries to one, whose names are paths such as "params/encoder/conv_0/kernel"."""
    flat: dict[str, Any] = {}
    for name, value in variables.items():
        path = f"{prefix}{name}"
        flat |= _flatten(value, f"{path}/") if isinstance(value, Mapping) else {path: value}
    return flat


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """What `_flatten` made one dictionary of."""
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        *folders, name = path.split("/")
        inner = nested
        for folder in folders:
            inner = inner.setdefault(folder, {})
        inner[name] = value
    return nested


def _check_shapes(config: ModelConfig, arrays: Mapping[str, np.ndarray], directory: Path) -> None:
    expected = variable_shapes(config)
    for name in sorted(expected.keys() | arrays.keys()):
        if name not in arrays:
            raise UserError(f"the model for {directory} lacks {name}")
        if name not in expected:
            raise UserError(f"the model for {directory} has {name}, unknown to {config}")
        if arrays[name].shape != expected[name] or arrays[name].dtype != np.float32:
            raise UserError(
                f"{name} of the model for {directory} is"
                f" {arrays[name].dtype}{list(arrays[name].shape)}, but its config asks for"
                f" float32{list(expected[name])}"
            )
