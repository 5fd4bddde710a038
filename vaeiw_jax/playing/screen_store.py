"""The store between collecting and training: compressed shards of palette screens and a manifest.

    screens/
      manifest.json      game, shape of a screen; name, number of screens and SHA-256 of each shard
      shard-000000.npz   "screens": uint8[n, 210, 160]

A shard is written whole before the manifest names it and never changes afterwards, so a reader
sees the store as of its manifest while a writer appends, and a crash at any moment loses only the
screens being appended. What the manifest does not name does not exist.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.frames import GREY, RGB

MANIFEST = "manifest.json"
FORMAT = "vaeiw_jax screens 1"
SHARD_SCREENS = 1000


@dataclasses.dataclass(frozen=True)
class ScreenSet:
    """Screens to learn from, of one game or of several, one game after another."""

    games: tuple[str, ...]
    """Of each store; empty where it is unknown."""
    counts: tuple[int, ...]
    """How many screens each store has."""
    screens: np.ndarray
    """uint8[sum(counts), rows, columns], palette bytes."""

    @classmethod
    def of(cls, game: str, screens: np.ndarray) -> "ScreenSet":
        """The screens of one game."""
        return cls((game,), (len(screens),), screens)

    @property
    def game(self) -> str:
        """The only game there is; empty where there are several, or it is unknown."""
        return self.games[0] if len(self.games) == 1 else ""

    def description(self) -> dict[str, Any]:
        """For records: the game; of several games, how many screens of each."""
        if len(self.games) == 1:
            return {"game": self.game}
        return {"game": "", "games": dict(zip(self.games, self.counts, strict=True))}

    def first(self, counts: Sequence[int]) -> "ScreenSet":
        """The first screens of each store, as many as `counts` says."""
        if tuple(counts) == self.counts:
            return self
        starts = np.cumsum([0, *self.counts[:-1]])
        rows = [np.arange(start, start + n) for start, n in zip(starts, counts, strict=True)]
        return ScreenSet(self.games, tuple(counts), self.screens[np.concatenate(rows)])

    def digest(self) -> str:
        """SHA-256 of the screens, in order."""
        return hashlib.sha256(np.ascontiguousarray(self.screens).data).hexdigest()


def append(directory: Path, game: str, screens: np.ndarray) -> int:
    """Adds screens: uint8[n, rows, columns], all or none; returns how many the store then holds.

    Writers take turns. A store holds screens of one game and one shape.
    """
    if screens.ndim != 3 or screens.dtype != np.uint8 or not len(screens):
        raise UserError(
            "screens are stored as uint8[n, rows, columns] with n > 0,"
            f" not {screens.dtype}{list(screens.shape)}"
        )
    directory.mkdir(parents=True, exist_ok=True)
    with _only_writer(directory):
        manifest = _manifest_to_extend(directory, game, screens.shape[1:])
        shards = manifest["shards"]
        for start in range(0, len(screens), SHARD_SCREENS):
            part = screens[start : start + SHARD_SCREENS]
            path = directory / f"shard-{len(shards):06d}.npz"
            durable.write_arrays(path, {"screens": part})
            shards.append(
                {"file": path.name, "screens": len(part), "sha256": durable.file_digest(path)}
            )
        durable.write_json(directory / MANIFEST, manifest, sealed=True)
    return _count(manifest)


def count(directory: Path) -> int:
    """How many screens the store holds; 0 where there is none."""
    return _count(_read_manifest(directory)) if (directory / MANIFEST).exists() else 0


def load(directory: Path) -> ScreenSet:
    """Reads a screen store, each shard checked by its digest, or a folder of PNG files."""
    if not directory.is_dir():
        raise UserError(f"there is no folder {directory}; collect screens into it first")
    if not (directory / MANIFEST).exists():
        return load_png(directory)
    return _load_stores([directory])


def load_all(given: str, leave_out: Sequence[str] = ()) -> ScreenSet:
    """Reads what `--screens` names.

    Args:
      given: one or more folders, with commas between them: screen stores, or folders that hold one per game; or a
        single folder of PNG files.
      leave_out: games whose stores are not read.
    """
    folders = _folders(given)
    if not folders:
        raise UserError(f"--screens names no folder, being {given!r}")
    if len(folders) == 1 and not _stores_in(folders[0]):
        return load(folders[0])
    stores: list[Path] = []
    for folder in folders:
        inside = _stores_in(folder)
        if not inside:
            raise UserError(f"{folder} holds no screen store; collect screens into it first")
        for store in inside:
            if store in stores:
                raise UserError(f"the screen store {store} is named twice; name each store once")
        stores += inside
    return _load_stores(stores, leave_out)


def stores(given: str) -> list[Path]:
    """The screen stores there are in the folders that `--screens` names."""
    return [store for folder in _folders(given) for store in _stores_in(folder)]


def _folders(given: str) -> list[Path]:
    return [Path(part.strip()) for part in given.split(",") if part.strip()]


def _stores_in(folder: Path) -> list[Path]:
    """The folder itself if it is a store, else the stores right inside it."""
    if (folder / MANIFEST).exists():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))


def _load_stores(stores: Sequence[Path], leave_out: Sequence[str] = ()) -> ScreenSet:
    """Reads stores into one array, which is all the memory it takes."""
    manifests = {store: _read_manifest(store) for store in stores}
    games = [manifest["game"] for manifest in manifests.values()]
    for game in leave_out:
        if game not in games:
            raise unknown("game to leave out", game, games)
    if leave_out:
        manifests = {s: m for s, m in manifests.items() if m["game"] not in leave_out}
        stores = list(manifests)
        if not stores:
            raise UserError("every game is left out; leave some to train on")
    store_of: dict[str, Path] = {}
    for store, manifest in manifests.items():
        game, shape = manifest["game"], manifest["screen_shape"]
        if not _count(manifest):
            raise UserError(f"the screen store {store} is empty; collect screens into it first")
        if shape != manifests[stores[0]]["screen_shape"]:
            raise UserError(
                f"{store} holds screens of {_by(shape)} pixels, but {stores[0]} of "
                f"{_by(manifests[stores[0]]['screen_shape'])}; one training takes screens of one size, leave one out"
            )
        if game in store_of:
            raise UserError(
                f"{store_of[game]} and {store} are both of {game}; leave one of them out"
            )
        store_of[game] = store
    shape = tuple(manifests[stores[0]]["screen_shape"])
    counts = tuple(map(_count, manifests.values()))
    screens = np.empty((sum(counts), *shape), np.uint8)
    start = 0
    for store, manifest in manifests.items():
        for shard in manifest["shards"]:
            screens[start : start + shard["screens"]] = _read_shard(store, shard, shape)
            start += shard["screens"]
    return ScreenSet(tuple(store_of), counts, screens)


def load_png(directory: Path) -> ScreenSet:
    """Reads the PNG files of a folder, in the order of their names.

    Each is an unscaled 8-bit image of the emulator's screen, all of one size: in the emulator's
    NTSC colours, or in grey as `getScreenGrayscale` gives it. A grey level stands for the lowest
    palette byte of that level, which makes the same frame. The game is unknown.
    """
    paths = sorted(directory.glob("*.png"))
    if not paths:
        raise UserError(
            f"{directory} holds neither a screen store ({MANIFEST}) nor PNG files;"
            " collect screens into it first"
        )
    first = _read_png(paths[0])
    screens = np.empty((len(paths), *first.shape), np.uint8)
    for row, path in enumerate(paths):
        screen = _read_png(path)
        if screen.shape != first.shape:
            raise UserError(
                f"{path} has {screen.shape[0]}x{screen.shape[1]} pixels, but {paths[0].name} has"
                f" {first.shape[0]}x{first.shape[1]}; all screens of a folder must have one size"
            )
        screens[row] = screen
    return ScreenSet.of("", screens)


@contextlib.contextmanager
def _only_writer(directory: Path) -> Iterator[None]:
    with (directory / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file closes, also by a crash
        yield


def _manifest_to_extend(directory: Path, game: str, shape: tuple[int, ...]) -> dict[str, Any]:
    if not (directory / MANIFEST).exists():
        return {"format": FORMAT, "game": game, "screen_shape": list(shape), "shards": []}
    manifest = _read_manifest(directory)
    if manifest["game"] != game:
        raise UserError(
            f"{directory} holds screens of {manifest['game']!r}, not of {game!r};"
            " keep each game in a folder of its own"
        )
    if manifest["screen_shape"] != list(shape):
        raise UserError(
            f"{directory} holds screens of {_by(manifest['screen_shape'])} pixels,"
            f" not of {_by(shape)}; keep them in a folder of their own"
        )
    return manifest


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    manifest = durable.read_json(path, sealed=True)
    if manifest.get("format") != FORMAT:
        raise UserError(f"{path} is not the manifest of a screen store ({FORMAT!r})")
    for name, kind in (("game", str), ("screen_shape", list), ("shards", list)):
        if not isinstance(manifest.get(name), kind):
            raise durable.DamagedFileError(path, f"its {name} is {manifest.get(name)!r}", _REMEDY)
    for shard in manifest["shards"]:
        kinds = {"file": str, "screens": int, "sha256": str}
        if not isinstance(shard, dict) or not all(
            isinstance(shard.get(name), kind) for name, kind in kinds.items()
        ):
            raise durable.DamagedFileError(path, f"a shard is {shard!r}", _REMEDY)
    return manifest


def _count(manifest: dict[str, Any]) -> int:
    return sum(shard["screens"] for shard in manifest["shards"])


def _read_shard(directory: Path, shard: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    path = directory / shard["file"]
    try:
        digest = durable.file_digest(path)
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing, though {MANIFEST} names it; {_REMEDY}") from error
    if digest != shard["sha256"]:
        raise UserError(f"{path} is torn: its SHA-256 is not the one in {MANIFEST}; {_REMEDY}")
    screens = durable.read_arrays(path).get("screens", np.zeros(0))
    if screens.dtype != np.uint8 or screens.shape != (shard["screens"], *shape):
        raise UserError(
            f"{path} holds {screens.dtype}{list(screens.shape)}, not screens; {_REMEDY}"
        )
    return screens


_REMEDY = "restore it, or collect into another folder"


def _by(shape: tuple[int, ...] | list[int]) -> str:
    return "x".join(map(str, shape))


_PALETTE_OF_GREY = {int(level): byte for byte, level in reversed(list(enumerate(GREY)))}
_PALETTE_OF_RGB = {
    (int(r) << 16) + (int(g) << 8) + int(b): byte
    for byte, (r, g, b) in reversed(list(enumerate(RGB)))
}


def _read_png(path: Path) -> np.ndarray:
    """The palette screen uint8[rows, columns] that a PNG shows."""
    try:
        with Image.open(path) as image:
            image.load()
            if image.mode not in ("L", "P", "RGB", "RGBA"):
                raise UserError(f"{path} has pixels of kind {image.mode}; 8-bit grey or RGB works")
            grey = image.mode == "L"
            pixels = np.asarray(image if grey else image.convert("RGB"), np.int64)
    except (OSError, SyntaxError) as error:
        raise UserError(f"{path} is not a whole PNG file ({error})") from error
    if not grey:
        pixels = pixels @ np.array([1 << 16, 1 << 8, 1])
    palette = _PALETTE_OF_GREY if grey else _PALETTE_OF_RGB
    values, positions = np.unique(pixels, return_inverse=True)
    for value in values.tolist():
        if value not in palette:
            raise UserError(
                f"{path} has the {f'grey level {value}' if grey else f'colour #{value:06x}'},"
                " which the emulator's palette lacks; give unscaled screens of the emulator"
            )
    table = np.array([palette[value] for value in values.tolist()], np.uint8)
    return table[positions].reshape(pixels.shape)
