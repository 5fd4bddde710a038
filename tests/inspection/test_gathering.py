import numpy as np
import pytest

from vaeiw_jax.errors import UserError
from vaeiw_jax.inspection import gathering
from vaeiw_jax.playing import screen_store
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig


def test_a_short_game_is_a_function_of_its_seed():
    first, again = (gathering.from_play("Breakout", 21, seed=3) for _ in range(2))
    other = gathering.from_play("Breakout", 21, seed=4)
    assert first.game == "Breakout"
    assert first.screens.shape == (21, 210, 160)
    assert np.array_equal(first.screens, again.screens)
    assert not np.array_equal(first.screens, other.screens)
    assert len(np.unique(first.screens, axis=0)) > 5


def test_screens_of_a_short_game_know_what_they_came_from():
    seen = gathering.from_play("Breakout", 9, seed=3)
    episode = Episode(EpisodeConfig.of("Breakout", features="ram", budget_nodes=20), seed=3)
    episode.planner.decide()
    tree = episode.planner.tree
    came_from: dict[bytes, set[bytes]] = {}
    for node in range(1, tree.size):
        parent = tree.snapshots[tree.parent[node]].screen
        came_from.setdefault(tree.snapshots[node].screen.tobytes(), set()).add(parent.tobytes())
    for screen, parent in zip(seen.screens[1:4], seen.parents[1:4], strict=True):
        assert parent.tobytes() in came_from[screen.tobytes()]
    assert seen.parents[0] is None  # a decision gives four screens, its root's first
    assert np.array_equal(seen.parents[4], seen.screens[0])
    assert np.array_equal(seen.parents[8], seen.screens[4])


def test_a_store_gives_evenly_spaced_screens_or_all_it_has(tmp_path):
    screens = np.arange(9, dtype=np.uint8)[:, None, None].repeat(210, 1).repeat(160, 2)
    screen_store.append(tmp_path, "Pong", screens)
    assert gathering.from_store(tmp_path, 3, "Pong").screens[:, 0, 0].tolist() == [0, 4, 8]
    assert len(gathering.from_store(tmp_path, 100, "").screens) == 9


def test_a_store_of_another_game_is_refused_by_name(tmp_path):
    screen_store.append(tmp_path, "Pong", np.zeros((2, 210, 160), np.uint8))
    with pytest.raises(UserError, match="frames of Pong, and the model was trained on MsPacman"):
        gathering.from_store(tmp_path, 2, "MsPacman")
