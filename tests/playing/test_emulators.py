import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from vaeiw_jax.atari import Atari, AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing import emulators
from vaeiw_jax.playing.emulators import EmulatorPool
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.noise_seeds import with_seed

GAME = AtariConfig("Breakout")


def same(one, other):
    return (
        one.snapshot.state == other.snapshot.state
        and (one.snapshot.screen == other.snapshot.screen).all()
        and (one.snapshot.ram == other.snapshot.ram).all()
        and one.snapshot[3:] == other.snapshot[3:]
        and one[1:] == other[1:]
    )


def questions(number=40):
    """Steps from all over a random tree, with where they lead."""
    simulator, rng = Atari(GAME), np.random.default_rng(0)
    snapshots = [simulator.start(rng)]
    asked = []
    for _ in range(number):
        snapshot = snapshots[rng.integers(len(snapshots))]
        action = int(rng.integers(simulator.num_actions))
        transition = simulator.step(snapshot, action)
        snapshots.append(transition.snapshot)
        asked.append((snapshot, action, transition))
    return asked


@pytest.fixture
def pool():
    made = []

    def make(number, **settings):
        made.append(EmulatorPool(GAME, number, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("number", [1, 3])
def test_answers_come_in_the_order_of_the_questions(pool, number):
    workers, asked = pool(number), questions()
    for snapshot, action, _ in asked:
        workers.ask(snapshot, action)
    for _, _, expected in asked:
        transition, seconds = workers.answer()
        assert same(transition, expected)
        assert seconds > 0
    assert workers.replaced == 0


def test_a_worker_that_is_killed_is_replaced_and_its_step_redone(pool):
    workers, asked = pool(2), questions()
    for snapshot, action, _ in asked:
        workers.ask(snapshot, action)
    for i, (_, _, expected) in enumerate(asked):
        if i in (5, 6, 20):
            victim = workers._workers[i % 2]._process.pid
            os.kill(victim, signal.SIGKILL)
        assert same(workers.answer()[0], expected)
    assert workers.replaced == 3


def test_a_worker_that_hangs_is_killed_after_a_limit(pool):
    workers, asked = pool(2, hang_seconds=1.0), questions(10)
    os.kill(workers._workers[0]._process.pid, signal.SIGSTOP)
    for snapshot, action, _ in asked:
        workers.ask(snapshot, action)
    for _, _, expected in asked:
        assert same(workers.answer()[0], expected)
    assert workers.replaced == 1


def test_a_step_no_worker_survives_is_an_error_that_names_the_game(pool):
    workers = pool(1)
    snapshot, action, _ = questions(1)[0]
    workers.ask(snapshot._replace(state=b"no state of an emulator" * 100), action)
    with pytest.raises(UserError, match="3 emulators of Breakout in turn died"):
        workers.answer()


def test_workers_end_with_the_planner(pool):
    workers = pool(2)
    processes = [worker._process for worker in workers._workers]
    workers.close()
    assert all(process.returncode is not None for process in processes)


def test_a_worker_whose_planner_was_killed_leaves():
    read, write = os.pipe()
    if os.fork() == 0:
        worker = emulators._Worker(GAME)
        os.write(write, str(worker._process.pid).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
    pid = int(os.read(read, 20))
    deadline = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists():
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            break  # ended, though not yet reaped
        assert time.monotonic() < deadline
        time.sleep(0.05)


def play(number, config, disturb=False):
    episode = Episode(config, seed=1, emulators=number)
    pool = episode.planner.world.pool if number else None
    if disturb:

        def kill():
            with suppress(ProcessLookupError):  # it may have gone the same way just before
                os.kill(pool._workers[0]._process.pid, signal.SIGKILL)

        timers = [threading.Timer(delay, kill) for delay in (0.1, 0.5, 0.9)]
        for timer in timers:
            timer.start()
    while not episode.stop:
        episode.advance()
    if disturb:
        for timer in timers:
            timer.cancel()
        assert pool.replaced > 0
    if pool:
        pool.close()
    return episode.record(), episode.actions


def test_a_game_does_not_depend_on_how_many_emulators_step_it_nor_on_their_deaths():
    config = EpisodeConfig(
        AtariConfig("Asterix"),
        PlannerConfig(budget_seconds=None, budget_nodes=40, rollouts_in_flight=4),
        FeaturesConfig("bprost"),
        max_actions=8,
    )
    expected = play(0, config)
    assert play(1, config) == expected
    assert play(3, config) == expected
    assert play(2, config, disturb=True) == expected


@pytest.mark.parametrize(("cores", "rollouts", "processes"), [(1, 1, 0), (2, 6, 2), (32, 6, 5)])
def test_more_cores_do_not_put_more_rollouts_in_flight_than_a_planner_can_use(
    cores, rollouts, processes
):
    assert emulators.default_rollouts_in_flight(cores) == rollouts
    assert emulators.default_emulators(rollouts, cores) == processes


def test_answers_that_have_arrived_are_seen_before_they_are_asked_for(pool):
    workers, asked = pool(2), questions(6)
    for snapshot, action, _ in asked:
        workers.ask(snapshot, action)
    seen = []
    deadline = time.monotonic() + 20
    while len(seen) < len(asked):
        seen = workers.arrived()
        assert time.monotonic() < deadline
    for transition, (_, _, expected) in zip(seen, asked, strict=True):
        assert same(transition, expected)
        assert same(workers.answer()[0], expected)
    assert workers.arrived() == []


def test_a_world_prefetches_what_it_is_asked_for_and_whatever_has_arrived(pool):
    asked = []
    for seed, (snapshot, action, transition) in enumerate(questions(5), start=1):
        seeded = snapshot._replace(noise_seed=seed)
        asked.append((seeded, action, with_seed(transition, seeded, action)))
    calls = []

    def key(snapshot):
        return snapshot.state, snapshot.noise_seed

    def atoms(snapshot, previous):
        calls.append(("atoms", [key(snapshot)]))
        return np.zeros(0, np.int32)

    def prefetch(snapshots):
        calls.append(("prefetch", [key(snapshot) for snapshot in snapshots]))

    world = emulators.PooledWorld(pool(2), atoms, prefetch)
    for snapshot, action, _ in asked:
        world.ask(snapshot, action)
    expected = [key(transition.snapshot) for _, _, transition in asked]
    for i in range(len(asked)):
        world.answer()
        (first, waiting), (then, state) = calls[-2:]
        assert (first, then) == ("prefetch", "atoms")
        assert waiting[0] == state[0] == expected[i]
        assert set(waiting) <= set(expected[i:])
