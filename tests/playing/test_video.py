import numpy as np
import pytest
from PIL import Image

from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing import video
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig


@pytest.fixture(scope="module")
def episode():
    planner = PlannerConfig(budget_seconds=None, budget_nodes=5)
    config = EpisodeConfig(AtariConfig("Pong"), planner, FeaturesConfig("ram"), max_actions=4)
    played = Episode(config, seed=0)
    while not played.stop:
        played.advance()
    return played


def frames_of(path) -> list[np.ndarray]:
    """The pictures of a film, decoded."""
    import imageio_ffmpeg

    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


@pytest.mark.parametrize(("every_frame", "pictures"), [(False, 4), (True, 60)])
def test_a_film_has_a_picture_per_action_or_per_emulated_frame(
    episode, tmp_path, every_frame, pictures
):
    path = tmp_path / "films" / "game.mp4"
    told = []
    video.write(
        path, episode.config, 0, episode.decisions(), every_frame, lambda: told.append(None)
    )
    film = frames_of(path)
    assert len(film) == pictures
    assert film[0].shape == (420, 800, 3)
    assert len(told) == 4
    assert [file.name for file in path.parent.iterdir()] == ["game.mp4"]


def test_the_game_is_on_the_left_as_it_was_played(episode, tmp_path):
    path = tmp_path / "game.mp4"
    video.write(path, episode.config, 0, episode.decisions())
    shown = Image.fromarray(frames_of(path)[-1][:, :480]).resize((160, 210))
    last = list(video.replay(episode.config, 0, episode.actions))[-1][1][-1]
    assert np.abs(np.asarray(shown, int) - last).mean() < 8  # the film is compressed with loss


def test_the_panel_changes_with_the_decision(episode):
    panel = video.Panel(episode.config, 0, episode.decisions())
    assert panel.draw(0, lives=0).shape == (420, 320, 3)
    assert (panel.draw(0, lives=0) != panel.draw(3, lives=0)).any()
    assert (panel.draw(0, lives=0) != panel.draw(0, lives=2)).any()


def test_what_the_file_of_decisions_holds_besides_is_not_drawn(episode):
    others = {"usual": np.zeros(2, np.uint8), "generated_shape": np.array([210, 160])}
    panel = video.Panel(episode.config, 0, episode.decisions() | others)
    plain = video.Panel(episode.config, 0, episode.decisions())
    assert (panel.draw(3, lives=0) == plain.draw(3, lives=0)).all()
