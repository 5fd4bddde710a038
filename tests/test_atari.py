import hashlib
import multiprocessing

import ale_py
import ale_py.roms
import numpy as np
import pytest

from tests.paper_games import GAMES
from vaeiw_jax import atari
from vaeiw_jax.atari import Atari, AtariConfig
from vaeiw_jax.errors import UserError


def digest(snapshot):
    return hashlib.sha256(
        b"".join(
            [
                snapshot.state,
                snapshot.screen.tobytes(),
                snapshot.ram.tobytes(),
                str(tuple(snapshot[3:])).encode(),
            ]
        )
    ).hexdigest()


def walk(simulator, snapshot, seed, steps):
    """Digests and rewards along a random path."""
    rng = np.random.default_rng(seed)
    trail = []
    for _ in range(steps):
        after = simulator.step(snapshot, int(rng.integers(simulator.num_actions)))
        snapshot = after.snapshot
        trail.append((digest(snapshot), after.reward, after.lives, after.terminal))
    return trail


def start(game, **config):
    simulator = Atari(AtariConfig(game, **config))
    return simulator, simulator.start(np.random.default_rng(0))


@pytest.mark.parametrize(
    "spelling",
    [
        "MsPacman",
        "ms_pacman",
        "Ms. Pac-Man",
        "ms pacman",
        "ALE/MsPacman-v5",
        "MsPacmanNoFrameskip-v4",
    ],
)
def test_a_game_is_known_by_any_spelling(spelling):
    assert AtariConfig(spelling).game == "MsPacman"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Q*bert", "Qbert"),
        ("Yars' revenge", "YarsRevenge"),
        ("James bond 007", "Jamesbond"),
        ("Up'n down", "UpNDown"),
        ("Kung-fu master", "KungFuMaster"),
        ("Pitfall!", "Pitfall"),
        ("Stargunner", "StarGunner"),
        ("River raid", "Riverraid"),
    ],
)
def test_the_papers_own_spellings_are_known(spelling, name):
    assert AtariConfig(spelling).game == name


def test_every_game_of_the_paper_has_the_papers_name():
    assert [AtariConfig(game).game for game in GAMES] == GAMES
    assert len(GAMES) == 55


def test_an_unknown_game_names_the_nearest():
    with pytest.raises(UserError, match=r"unknown game 'pnog'; did you mean .*'Pong'"):
        AtariConfig("pnog")


@pytest.mark.parametrize("game", ["combat", "Joust", "maze_craze", "Warlords"])
def test_a_rom_the_emulator_cannot_use_is_refused(game):
    with pytest.raises(UserError, match="cannot be played"):
        AtariConfig(game)


def _walk_in_a_new_emulator(connection):
    """Walks from snapshots as they come, each in an emulator that has done nothing before, until None comes."""
    while (task := connection.recv()) is not None:
        game, arrays = task
        (snapshot,) = atari.unpack(arrays)
        connection.send(walk(Atari(AtariConfig(game)), snapshot, seed=7, steps=2))


def test_every_other_rom_goes_on_alike_in_a_new_emulator_a_used_one_and_another_process():
    names = atari.game_names()
    assert len(names) == 104
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_walk_in_a_new_emulator, args=(there,), daemon=True)
    process.start()
    for game in names:
        simulator, first = start(game)
        snapshot = simulator.step(first, 0).snapshot
        assert snapshot.screen.shape == simulator.screen_shape == atari.screen_shape(game)
        assert snapshot.frame - first.frame == 15
        known = game in ("Qbert", "Tetris", "MiniatureGolf")  # for going on otherwise
        for origin in (first, snapshot) if known else (snapshot,):
            here.send((game, atari.pack([origin])))
            used = walk(simulator, origin, seed=7, steps=2)
            assert here.recv() == used, game
            if known:
                assert walk(Atari(AtariConfig(game)), origin, seed=7, steps=2) == used, game
    here.send(None)
    process.join()


@pytest.mark.parametrize("game", ["MsPacman", "Breakout", "Seaquest"])
def test_stepping_is_a_function_of_snapshot_and_action(game):
    """It does not matter what the emulator did before, nor whether it stood there already."""
    simulator, snapshot = start(game)
    straight = walk(simulator, snapshot, seed=1, steps=30)
    rng = np.random.default_rng(1)
    current = snapshot
    for expected in straight:
        action = int(rng.integers(simulator.num_actions))
        walk(simulator, snapshot, seed=2, steps=2)  # elsewhere in between
        after = simulator.step(current, action)
        assert (digest(after.snapshot), *after[1:]) == expected
        current = after.snapshot


@pytest.mark.parametrize("game", ["Freeway", "MsPacman", "Tennis"])
def test_a_start_depends_on_its_seed_alone(game):
    simulator, _ = start(game, noop_max=30)
    fresh, first = start(game, noop_max=30)
    expected = walk(fresh, first, seed=3, steps=10)
    for seed in range(3):
        walk(simulator, simulator.start(np.random.default_rng(seed)), seed, steps=50)
        again = simulator.start(np.random.default_rng(0))
        assert digest(again) == digest(first)
        assert walk(simulator, again, seed=3, steps=10) == expected


@pytest.mark.parametrize("game", ["Pong", "Qbert", "Freeway", "Seaquest"])
def test_an_action_is_held_for_all_its_frames_or_until_the_game_is_over(game):
    simulator, snapshot = start(game)
    emulator = ale_py.ALEInterface()
    emulator.setInt("random_seed", 0)
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("frame_skip", 1)
    emulator.loadROM(ale_py.roms.get_rom_path(atari.rom_id(game)))
    power_on = emulator.cloneState()
    emulator.act(0)  # in Qbert one that has run before goes on one frame apart from a new one
    emulator.restoreState(power_on)
    actions = emulator.getMinimalActionSet()
    rng = np.random.default_rng(0)
    for _ in range(200):
        action = int(rng.integers(len(actions)))
        after = simulator.step(snapshot, action)
        snapshot = after.snapshot
        reward = 0
        for _ in range(15):
            if not emulator.game_over():
                reward += emulator.act(actions[action])
        assert after.reward == reward
        assert snapshot.state == emulator.cloneState().__getstate__()
        assert (snapshot.screen == emulator.getScreen()).all()
        assert (snapshot.ram == emulator.getRAM()).all()
        assert (after.lives, after.terminal) == (emulator.lives(), emulator.game_over())


def test_a_watcher_sees_every_frame_and_changes_nothing():
    simulator, snapshot = start("Breakout", frameskip=7)
    shown = []
    watched = simulator.step(snapshot, 1, shown.append)
    unwatched = simulator.step(snapshot, 1)
    assert [frame.shape for frame in shown] == [(210, 160, 3)] * 7
    assert digest(watched.snapshot) == digest(unwatched.snapshot)


def test_a_snapshot_keeps_the_screen_it_was_taken_with():
    simulator, snapshot = start("Pong")
    before = snapshot.screen.copy()
    walk(simulator, snapshot, seed=0, steps=20)
    assert (snapshot.screen == before).all()


def _walk_from_packed(arrays, connection):
    (snapshot,) = atari.unpack(arrays)
    connection.send(walk(Atari(AtariConfig("MsPacman")), snapshot, seed=7, steps=40))


def test_a_packed_snapshot_continues_in_another_process_bit_for_bit():
    simulator, snapshot = start("MsPacman")
    for action in [1, 2, 3] * 20:
        snapshot = simulator.step(snapshot, action).snapshot
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_walk_from_packed, args=(atari.pack([snapshot]), there)
    )
    process.start()
    assert here.recv() == walk(simulator, snapshot, seed=7, steps=40)
    process.join()


def test_snapshots_with_a_wrong_digest_are_refused():
    _, snapshot = start("Pong")
    arrays = atari.pack([snapshot])
    arrays["states"] = arrays["states"].copy()
    arrays["states"][100] ^= 1
    with pytest.raises(UserError, match="digest"):
        atari.unpack(arrays)


def test_the_full_action_set_has_eighteen_actions():
    assert start("Pong")[0].num_actions == 6
    assert start("Pong", full_action_set=True)[0].num_actions == 18


def test_idle_starts_are_drawn_from_the_seed_up_to_the_limit():
    simulator = Atari(AtariConfig("Pong", noop_max=30))
    frames = [simulator.start(np.random.default_rng(seed)).frame for seed in range(60)]
    again = [simulator.start(np.random.default_rng(seed)).frame for seed in range(60)]
    assert frames == again
    assert min(frames) == 0
    assert max(frames) == 30
    assert Atari(AtariConfig("Pong")).start(np.random.default_rng(0)).frame == 0


def test_idle_actions_are_held_and_in_place_of_none_one_random_action_is_taken():
    simulator = Atari(AtariConfig("Pong", noop_actions=4, frameskip=5))
    starts = [simulator.start(np.random.default_rng(seed)) for seed in range(40)]
    again = [simulator.start(np.random.default_rng(seed)) for seed in range(40)]
    assert list(map(digest, starts)) == list(map(digest, again))
    assert {start.frame for start in starts} == {5, 10, 15}
    power_on = Atari(AtariConfig("Pong", frameskip=5)).start(np.random.default_rng(0))
    one_action = {digest(simulator.step(power_on, a).snapshot) for a in range(6)}
    after_one = {digest(start) for start in starts if start.frame == 5}
    assert after_one <= one_action
    assert len(after_one) > 1  # not all are idle
    idle = digest(simulator.step(simulator.step(power_on, 0).snapshot, 0).snapshot)
    assert {digest(start) for start in starts if start.frame == 10} == {idle}


def test_a_game_that_ends_while_idling_starts_without():
    simulator = Atari(AtariConfig("RoadRunner", noop_actions=2, frameskip=1500))
    idles = next(seed for seed in range(9) if np.random.default_rng(seed).integers(2))
    first = simulator.start(np.random.default_rng(idles))
    assert (first.frame, first.terminal) == (0, False)
    after = simulator.step(first, 0)  # from the start, not from where idling ended
    assert after.terminal
    assert after.snapshot.frame > 1000


def test_the_game_ends_within_an_action_and_stays_ended():
    simulator, snapshot = start("Breakout", frameskip=400)
    terminal = None
    for _ in range(200):
        after = simulator.step(snapshot, 1)
        if after.terminal:
            terminal = after
            break
        snapshot = after.snapshot
    assert terminal is not None
    assert terminal.snapshot.frame - snapshot.frame < 400
    assert simulator.step(terminal.snapshot, 0).reward == 0


@pytest.mark.parametrize(
    "settings", [{"frameskip": 0}, {"frameskip": -1}, {"noop_max": -1}, {"noop_actions": -1}]
)
def test_nonsense_is_refused_in_a_sentence(settings):
    with pytest.raises(UserError, match="must be"):
        AtariConfig("Pong", **settings)


def test_idle_frames_and_idle_actions_are_not_combined():
    with pytest.raises(UserError, match="give one of them"):
        AtariConfig("Pong", noop_max=30, noop_actions=30)
