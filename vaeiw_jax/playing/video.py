"""A recorded run as an mp4: the game as played, with score and decision statistics beside it."""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from tqdm import tqdm

from vaeiw_jax import durable, features
from vaeiw_jax.atari import Atari
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning import Statistics
from vaeiw_jax.playing.episodes import EpisodeConfig, replay
from vaeiw_jax.playing.runs import Run

FRAMES_PER_SECOND = 60
_GAME_SIZE = (480, 420)  # of pixels that are wider than high, as on a television
_PANEL_WIDTH = 320
_BACKGROUND, _DIM, _BRIGHT, _ACCENT = (16, 18, 24), (138, 145, 160), (238, 240, 245), (255, 176, 59)


def film(run: Run, config: EpisodeConfig, every_frame: bool = False) -> None:
    """Writes the video of a finished run, if there is none yet, with a progress bar."""
    if run.video.exists():
        return
    decisions = durable.read_arrays(run.decisions)
    with tqdm(total=len(decisions["actions"]), desc="filming", unit=" actions", leave=False) as bar:
        write(run.video, config, run.seed, decisions, every_frame, bar.update)


def write(
    path: Path,
    config: EpisodeConfig,
    seed: int,
    decisions: dict[str, np.ndarray],
    every_frame: bool = False,
    on_decision: Callable[[], object] = lambda: None,
) -> None:
    """Plays the recorded actions again and films them.

    Args:
      path: where the mp4 goes; it appears there only when it is whole.
      config: how the run was played.
      seed: of the run.
      decisions: the arrays that were recorded.
      every_frame: film every emulated frame, not only the last of each action.
      on_decision: called after each decision, to show progress.
    """
    skip = 1 if every_frame else config.atari.frameskip
    panel = Panel(config, seed, decisions)
    with _encoder(path, FRAMES_PER_SECOND / skip) as show:
        actions = decisions["actions"].tolist()
        for i, (transition, shown) in enumerate(replay(config, seed, actions, every_frame)):
            beside = panel.draw(i, transition.lives)
            for frame in shown:
                game = Image.fromarray(frame).resize(_GAME_SIZE, Image.Resampling.NEAREST)
                show(np.hstack([np.asarray(game), beside]))
            on_decision()


@contextlib.contextmanager
def _encoder(path: Path, frames_per_second: float) -> Iterator[Callable[[np.ndarray], object]]:
    """Gives a function to be shown the pictures, uint8[420, 800, 3], of the movie that will be at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}.mp4")
    size = f"{_GAME_SIZE[0] + _PANEL_WIDTH}x{_GAME_SIZE[1]}"
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", str(frames_per_second)]
    coding = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-preset", "veryfast"]
    process = subprocess.Popen(
        [_ffmpeg(), "-y", "-loglevel", "error", *source, "-i", "-", *coding, str(unfinished)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    write = process.stdin.write
    try:
        with contextlib.suppress(BrokenPipeError):  # ffmpeg gave up, and says why below
            yield lambda picture: write(picture.tobytes())
        _, complaint = process.communicate()
        if process.returncode:
            raise OSError(_error_number(complaint), complaint.decode().strip(), str(path))
        unfinished.replace(path)
    finally:
        process.kill()
        process.communicate()
        unfinished.unlink(missing_ok=True)


def _ffmpeg() -> str:
    found = None
    with contextlib.suppress(RuntimeError):
        found = shutil.which(imageio_ffmpeg.get_ffmpeg_exe())
    if found is None:
        raise UserError(
            "no ffmpeg was found to write videos with; install one, or `pip install imageio-ffmpeg`, "
            "which brings it"
        )
    return found


def _error_number(complaint: bytes) -> int:
    """What the system told ffmpeg, as far as it passes it on."""
    return errno.ENOSPC if b"No space left" in complaint else errno.EIO


class Panel:
    """What stands beside the game: score so far, the action taken, and what its decision cost."""

    def __init__(self, config: EpisodeConfig, seed: int, decisions: dict[str, np.ndarray]):
        self._decisions = decisions
        self._scores = np.cumsum(decisions["rewards"])
        self._action_names = Atari(config.atari).action_names
        self._title = config.atari.game
        planner = config.planner
        self._looks_ahead = planner.search.looks_ahead
        method = planner.search.title
        if self._looks_ahead:
            features_title = features.lookup(config.features.features).title
            method = f"{method}({planner.width}), {features_title}"
        self.subtitle = f"{method}, seed {seed}"

    def draw(self, decision: int, lives: int) -> np.ndarray:
        """uint8[420, 320, 3]: the panel while the given decision's action is played."""
        image = Image.new("RGB", (_PANEL_WIDTH, _GAME_SIZE[1]), _BACKGROUND)
        pen = ImageDraw.Draw(image)
        pen.text((20, 16), self._title, _BRIGHT, ImageFont.load_default(24))
        pen.text((20, 48), self.subtitle, _DIM, ImageFont.load_default(13))
        pen.text((20, 76), f"{self._scores[decision]:,.0f}", _ACCENT, ImageFont.load_default(44))
        self._draw_lines(pen, decision, lives)
        self._draw_curve(pen, decision, top=330, bottom=400)
        return np.asarray(image)

    def _draw_lines(self, pen: ImageDraw.ImageDraw, decision: int, lives: int) -> None:
        names = {"actions", *Statistics.names()} & self._decisions.keys()
        column = {name: self._decisions[name][decision] for name in names}
        lines = [
            ("decision", f"{decision + 1:,} of {len(self._scores):,}"),
            ("lives", f"{lives}"),
            ("action", self._action_names[column["actions"]]),
        ]
        if self._looks_ahead:
            lines += [
                ("nodes", f"{column['new_nodes']:,} new, {column['kept_nodes']:,} kept"),
                ("rollouts", f"{column['rollouts']:,}, longest {column['max_rollout_length']:,}"),
                ("atoms a node", f"{column['atoms_per_node']:,.0f}"),
                ("seconds", f"{column['seconds']:.2f}, ended by {column['ended']}"),
            ]
        font = ImageFont.load_default(15)
        for i, (label, text) in enumerate(lines):
            pen.text((20, 142 + 25 * i), label, _DIM, font)
            pen.text((130, 142 + 25 * i), text, _BRIGHT, font)

    def _draw_curve(self, pen: ImageDraw.ImageDraw, decision: int, top: int, bottom: int) -> None:
        """The score over the episode: what is past bright, what is to come dim."""
        low, high = min(0.0, self._scores.min()), max(1.0, self._scores.max())
        left, right = 20, _PANEL_WIDTH - 20
        x = np.linspace(left, right, max(2, len(self._scores)))[: len(self._scores)]
        y = bottom - (self._scores - low) / (high - low) * (bottom - top)
        points = list(zip(x.tolist(), y.tolist(), strict=True))
        pen.line(points, (60, 66, 80), 2)
        pen.line(points[: decision + 1], _ACCENT, 2)
        px, py = points[decision]
        pen.ellipse((px - 4, py - 4, px + 4, py + 4), _BRIGHT)
