"""Screens become frames as the emulator's grey palette and Pillow's resize say."""

import ale_py
import jax
import numpy as np
import pytest
from PIL import Image

from tests.random_play import emulator, random_screens
from vaeiw_jax import frames

GAMES = ("pong", "breakout", "ms_pacman", "assault", "video_pinball", "carnival")


@pytest.mark.parametrize("game", GAMES)
def test_palettes_are_those_of_the_emulator(game: str) -> None:
    ale: ale_py.ALEInterface = emulator(game)
    actions = ale.getLegalActionSet()
    for step in range(200):
        ale.act(actions[step * 7 % len(actions)])
        if step % 10 == 0:
            screen = ale.getScreen()
            np.testing.assert_array_equal(frames.GREY[screen], ale.getScreenGrayscale())
            np.testing.assert_array_equal(frames.RGB[screen], ale.getScreenRGB())


@pytest.mark.parametrize("game", GAMES)
def test_frames_agree_with_pillow_in_float_mode(game: str) -> None:
    played = random_screens(game, 12)
    ours = np.asarray(frames.from_screens(played))
    for screen, frame in zip(played, ours, strict=True):
        grey = Image.fromarray(frames.GREY[screen])
        assert grey.mode == "F"
        theirs = np.asarray(grey.resize((128, 128), Image.Resampling.BILINEAR))
        np.testing.assert_allclose(frame * 255, theirs, atol=1e-3)


def test_frames_agree_with_pillow_in_grey_mode_to_one_level() -> None:
    played = random_screens("breakout", 12)
    for screen, frame in zip(played, np.asarray(frames.from_screens(played)), strict=True):
        grey = Image.fromarray(frames.GREY[screen].astype(np.uint8))
        theirs = np.asarray(grey.resize((128, 128), Image.Resampling.BILINEAR), np.float32)
        assert np.abs(frame * 255 - theirs).max() <= 1


def test_a_frame_does_not_depend_on_its_batch_nor_on_compilation() -> None:
    played = random_screens("ms_pacman", 33)
    together = np.asarray(jax.jit(frames.from_screens)(played))
    alone = np.stack([np.asarray(frames.from_screens(screen)) for screen in played])
    np.testing.assert_array_equal(together, alone)


def test_noise_gives_exact_sums_whatever_the_order() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (2, 210, 160), dtype=np.uint8)
    rows, row_sums = frames.resize_weights(210)
    columns, column_sums = frames.resize_weights(160)
    exact = rows.astype(np.int64) @ frames.GREY[noise].astype(np.int64) @ columns.T.astype(np.int64)
    assert exact.max() < 2**24
    scale = (1 / (255.0 * np.outer(row_sums, column_sums))).astype(np.float32)
    np.testing.assert_array_equal(frames.from_screens(noise), exact.astype(np.float32) * scale)


def test_leading_dimensions_are_kept_and_frames_lie_between_zero_and_one() -> None:
    played = random_screens("pong", 6).reshape(2, 3, 210, 160)
    made = np.asarray(frames.from_screens(played))
    assert made.shape == (2, 3, 128, 128)
    assert made.dtype == np.float32
    assert 0 <= made.min() <= made.max() <= 1
