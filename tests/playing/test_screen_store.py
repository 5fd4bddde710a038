"""The screen store gives back what was put in, also after a crash, and names what is damaged."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.random_play import emulator, random_screens
from vaeiw_jax import frames
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing import screen_store


def test_a_store_gives_back_all_screens_in_order_with_the_game(tmp_path: Path) -> None:
    played = random_screens("pong", 30)
    assert screen_store.append(tmp_path, "pong", played[:20]) == 20
    assert screen_store.append(tmp_path, "pong", played[20:]) == 30
    loaded = screen_store.load(tmp_path)
    assert loaded.game == "pong"
    np.testing.assert_array_equal(loaded.screens, played)
    assert screen_store.count(tmp_path) == 30


def test_many_screens_are_split_into_shards(tmp_path: Path) -> None:
    many = np.repeat(random_screens("pong", 25), 100, axis=0)
    screen_store.append(tmp_path, "pong", many)
    assert len(list(tmp_path.glob("shard-*.npz"))) == 3
    np.testing.assert_array_equal(screen_store.load(tmp_path).screens, many)


def test_a_screen_takes_a_few_kilobytes(tmp_path: Path) -> None:
    screen_store.append(tmp_path, "ms_pacman", random_screens("ms_pacman", 200))
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 15_000 * size / 200 < 50e6


def test_a_truncated_shard_is_named(tmp_path: Path) -> None:
    played = random_screens("pong", 10)
    screen_store.append(tmp_path, "pong", played[:5])
    screen_store.append(tmp_path, "pong", played[5:])
    shard = tmp_path / "shard-000001.npz"
    os.truncate(shard, shard.stat().st_size - 1)
    with pytest.raises(UserError, match=r"shard-000001\.npz is torn"):
        screen_store.load(tmp_path)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    screen_store.append(tmp_path, "pong", random_screens("pong", 5))
    (tmp_path / "shard-000000.npz").unlink()
    with pytest.raises(UserError, match=r"shard-000000\.npz is missing"):
        screen_store.load(tmp_path)


def test_a_reader_sees_the_store_as_of_the_manifest_while_a_shard_is_being_written(
    tmp_path: Path,
) -> None:
    played = random_screens("pong", 10)
    screen_store.append(tmp_path, "pong", played[:5])
    (tmp_path / "shard-000001.npz").write_bytes(b"half a shard")
    np.testing.assert_array_equal(screen_store.load(tmp_path).screens, played[:5])
    screen_store.append(tmp_path, "pong", played[5:])
    np.testing.assert_array_equal(screen_store.load(tmp_path).screens, played)


def _append_one_by_one(directory: Path, value: int) -> None:
    for _ in range(10):
        screen_store.append(directory, "pong", np.full((1, 210, 160), value, np.uint8))


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_append_one_by_one, args=(tmp_path, value)) for value in (2, 4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    values = screen_store.load(tmp_path).screens[:, 0, 0]
    assert sorted(values) == [2] * 10 + [4] * 10


def test_a_writer_killed_at_any_moment_leaves_a_readable_store(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; import numpy as np\n"
        "from vaeiw_jax.playing import screen_store\n"
        "for value in range(100_000):\n"
        "  screens = np.full((3, 210, 160), value % 128 * 2, np.uint8)\n"
        "  screen_store.append(Path(sys.argv[1]), 'pong', screens)\n"
        "  print(value, flush=True)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for _ in range(5):
        appended = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    loaded = screen_store.load(tmp_path).screens
    assert len(loaded) >= 3 * (appended + 1)
    expected = np.arange(len(loaded)) // 3 % 128 * 2
    np.testing.assert_array_equal(loaded[:, 0, 0], expected)
    screen_store.append(tmp_path, "pong", loaded[:1])
    assert screen_store.count(tmp_path) == len(loaded) + 1


def test_another_game_or_shape_is_refused(tmp_path: Path) -> None:
    played = random_screens("pong", 3)
    screen_store.append(tmp_path, "pong", played)
    with pytest.raises(UserError, match="screens of 'pong', not of 'breakout'"):
        screen_store.append(tmp_path, "breakout", played)
    with pytest.raises(UserError, match="210x160 pixels, not of 250x160"):
        screen_store.append(tmp_path, "pong", np.zeros((1, 250, 160), np.uint8))
    with pytest.raises(UserError, match=r"not float32\[1, 210, 160\]"):
        screen_store.append(tmp_path, "pong", np.zeros((1, 210, 160), np.float32))
    assert screen_store.count(tmp_path) == 3


def test_folders_without_frames_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither a screen store"):
        screen_store.load(tmp_path)
    with pytest.raises(UserError, match="there is no folder"):
        screen_store.load(tmp_path / "absent")
    (tmp_path / screen_store.MANIFEST).write_text(json.dumps({"format": "something else"}))
    with pytest.raises(UserError, match="not the manifest of a screen store"):
        screen_store.load(tmp_path)


def test_coloured_png_files_give_the_palette_screens(tmp_path: Path) -> None:
    ale = emulator("breakout")
    expected = []
    for number in range(3):
        ale.act(1)
        Image.fromarray(ale.getScreenRGB()).save(tmp_path / f"{number:03d}.png")
        expected.append(ale.getScreen())
    loaded = screen_store.load(tmp_path)
    np.testing.assert_array_equal(loaded.screens, np.stack(expected))
    assert loaded.game == ""


def test_grey_png_files_give_the_same_frames(tmp_path: Path) -> None:
    played = random_screens("ms_pacman", 4)
    for number, screen in enumerate(played):
        grey = frames.GREY[screen].astype(np.uint8)
        Image.fromarray(grey).save(tmp_path / f"{number:03d}.png")
    loaded = screen_store.load(tmp_path).screens
    np.testing.assert_array_equal(frames.from_screens(loaded), frames.from_screens(played))


def test_png_files_that_are_no_screens_are_named(tmp_path: Path) -> None:
    path = tmp_path / "b.png"
    Image.fromarray(np.zeros((210, 160), np.uint8)).save(tmp_path / "a.png")
    Image.fromarray(np.zeros((128, 128), np.uint8)).save(path)
    with pytest.raises(UserError, match=r"b\.png has 128x128 pixels, but a\.png has 210x160"):
        screen_store.load(tmp_path)
    Image.fromarray(np.full((210, 160, 3), 77, np.uint8)).save(path)
    with pytest.raises(UserError, match=r"b\.png has the colour #4d4d4d"):
        screen_store.load(tmp_path)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(UserError, match=r"b\.png is not a whole PNG file"):
        screen_store.load(tmp_path)
