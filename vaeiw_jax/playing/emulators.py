"""Emulators in processes of their own, so that steps are made while the planner thinks.

A worker reads questions (a state and an action) from its standard input and writes answers to its standard output, as
the structs below. States and screens go through memory that both sides share. It keeps nothing from one question to the
next: a worker that dies or hangs is replaced by another, which is given the same questions.
"""

import contextlib
import itertools
import json
import mmap
import os
import selectors
import struct
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from vaeiw_jax import configs
from vaeiw_jax.atari import Atari, AtariConfig, Snapshot
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning.world import Answer, Transition
from vaeiw_jax.playing.noise_seeds import with_seed
from vaeiw_jax.playing.step_memory import StepMemory

_QUESTION = struct.Struct("=iI")
"""Action, length of the state."""

_ANSWER = struct.Struct("=dd?iqIHH")
"""Reward, seconds, terminal, lives, frame, length of the state, height, width."""

_RAM_BYTES = 128

_READY = b"ready"
"""What a worker writes when it has started."""

_AHEAD = 2
"""Questions a worker may have: one it works on and one that waits."""

_SLOT_BYTES = 2**17
"""A question's part of the shared memory. The state is put there, and then replaced by the answer's state, screen and
RAM, one after another. The slot is free again when the answer was taken, for no more than `_AHEAD` are under way."""

_TRIES = 3
"""Workers that may fail at the same question before the game is given up with an error."""


ROLLOUTS_IN_FLIGHT = 6
"""Rollouts that keep the planner busy. More would keep more emulators busy, whose answers the planner could not take
any sooner, and every one costs depth: rollouts begun side by side do not know what the others will find, and spread out
where one alone would go on (docs/benchmarks.md has the measurements)."""


def default_rollouts_in_flight(cores: int) -> int:
    """How many rollouts to have in flight where the clock decides what is found in any case."""
    return ROLLOUTS_IN_FLIGHT if cores > 1 else 1


def default_emulators(rollouts_in_flight: int, cores: int) -> int:
    """How many emulator processes to use: one per core, as far as there are rollouts to keep them busy."""
    return min(cores, rollouts_in_flight - 1) if cores > 1 else 0


class EmulatorPool:
    """Workers with one emulator each. Answers come in the order of the questions, whichever worker found them.

    Args:
      config: the game.
      number: of workers.
      hang_seconds: a worker that is silent for this long is killed.
    """

    def __init__(self, config: AtariConfig, number: int, hang_seconds: float = 20.0):
        self.replaced = 0
        self._config = config
        self._hang_seconds = hang_seconds
        self._selector = selectors.DefaultSelector()
        self._waiting: deque[_Question] = deque()
        self._questions: deque[_Question] = deque()
        self._workers = [self._start_worker() for _ in range(number)]

    def ask(self, snapshot: Snapshot, action: int) -> None:
        question = _Question(snapshot, action)
        self._questions.append(question)
        self._waiting.append(question)
        self._assign()

    def answer(self) -> tuple[Transition, float]:
        """The transition asked for longest, and the seconds its step took."""
        question = self._questions.popleft()
        while question.answer is None:
            self._wait()
        return question.answer

    def arrived(self) -> list[Transition]:
        """The transitions that are here and were not yet given as answers, in the order of the questions."""
        self._take(timeout=0)
        answers = (question.answer for question in self._questions)
        return [answer[0] for answer in answers if answer is not None]

    def _assign(self) -> None:
        while self._waiting:
            worker = min(self._workers, key=lambda worker: len(worker.questions))
            if len(worker.questions) >= _AHEAD:
                return
            question = self._waiting.popleft()
            try:
                worker.put(question)
            except BrokenPipeError:
                self._replace(worker)

    def _wait(self) -> None:
        """Waits for answers; if none comes, replaces the workers that should have given one."""
        if not self._take(timeout=self._hang_seconds):
            for worker in [worker for worker in self._workers if worker.questions]:
                self._replace(worker)
            self._assign()

    def _take(self, timeout: float) -> bool:
        """Takes every answer that has arrived, waiting for one if there is none; returns whether there was any."""
        ready = self._selector.select(timeout)
        for key, _ in ready:
            worker: _Worker = key.data
            try:
                worker.take()
            except EOFError:
                self._replace(worker)
        self._assign()
        return bool(ready)

    def _start_worker(self) -> "_Worker":
        try:
            worker = _Worker(self._config)
        except EOFError as error:
            raise UserError(f"no emulator of {self._config.game} could be started") from error
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        return worker

    def _replace(self, worker: "_Worker") -> None:
        """Replaces a worker that died or hangs; its questions go first in the queue."""
        self.replaced += 1
        self._selector.unregister(worker.answers)
        worker.kill()
        for question in worker.questions:
            question.tries += 1
            if question.tries >= _TRIES:
                raise UserError(
                    f"{_TRIES} emulators of {self._config.game} in turn died or hung at the same step"
                )
        self._waiting.extendleft(reversed(worker.questions))
        self._workers[self._workers.index(worker)] = self._start_worker()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._selector.close()

    def __del__(self) -> None:
        if hasattr(self, "_workers"):
            self.close()


Prefetch = Callable[[list[Snapshot]], None]
"""Prepares for the atoms of snapshots: encodes their screens in one batch. It decides when they are computed, not what
they are."""


class PooledWorld:
    """A game as a planner's world: its steps by a pool of emulators, its atoms by a feature set.

    Args:
      pool: makes the steps.
      atoms: (snapshot, its parent's or None) -> int32[n].
      prefetch: given, before the atoms of an answer are asked for, its snapshot and those of all later answers that
        are here already.
    """

    def __init__(
        self,
        pool: EmulatorPool,
        atoms: Callable[[Any, Any | None], np.ndarray],
        prefetch: Prefetch | None = None,
    ):
        self.pool = pool
        self.atoms = atoms
        self._prefetch = prefetch
        self._memory = StepMemory()
        self._asked: deque[tuple[Snapshot, int, Transition | None]] = deque()

    def ask(self, snapshot: Snapshot, action: int) -> None:
        remembered = self._memory.recall(snapshot, action)
        self._asked.append((snapshot, action, remembered))
        if remembered is None:
            self.pool.ask(snapshot, action)

    def answer(self) -> Answer:
        parent, action, remembered = self._asked.popleft()
        if remembered is None:
            transition, emulator_seconds = self.pool.answer()
        else:
            transition, emulator_seconds = with_seed(remembered, parent, action), 0.0
        self._memory.remember(parent, action, transition)
        start = time.perf_counter()
        if self._prefetch is not None:
            later = self.pool.arrived()
            self._prefetch([transition.snapshot, *(each.snapshot for each in later)])
        atoms = self.atoms(transition.snapshot, parent)
        return Answer(transition, atoms, emulator_seconds, time.perf_counter() - start)


class _Question:
    def __init__(self, snapshot: Snapshot, action: int):
        self.snapshot = snapshot
        self.action = action
        self.answer: tuple[Transition, float] | None = None
        self.tries = 0


class _Worker:
    """The planner's side of one worker."""

    def __init__(self, config: AtariConfig):
        self.questions: deque[_Question] = deque()
        with _anonymous_file() as shared:
            self._slots = mmap.mmap(shared, _AHEAD * _SLOT_BYTES)
            arguments = [json.dumps(configs.settings(config)), str(shared)]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "vaeiw_jax.playing.emulators", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,  # what is here must be in the pipe, where a selector sees it
                pass_fds=[shared],
                start_new_session=True,  # Ctrl-C is for the planner, which needs the last answers
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked = self._process.stdin
        self.answers = self._process.stdout
        self._slot_to_ask = itertools.cycle(range(0, len(self._slots), _SLOT_BYTES))
        self._slot_to_take = itertools.cycle(range(0, len(self._slots), _SLOT_BYTES))
        _read(self.answers, len(_READY))

    def put(self, question: _Question) -> None:
        self.questions.append(question)
        state = question.snapshot.state
        slot, length = next(self._slot_to_ask), len(state)
        self._slots[slot : slot + length] = state
        self._asked.write(_QUESTION.pack(question.action, length))

    def take(self) -> None:
        header = _read(self.answers, _ANSWER.size)
        reward, seconds, terminal, lives, frame, length, height, width = _ANSWER.unpack(header)
        slot = next(self._slot_to_take)
        data = self._slots[slot : slot + length + height * width + _RAM_BYTES]
        screen = np.frombuffer(data, np.uint8, height * width, length)
        snapshot = Snapshot(
            state=data[:length],
            screen=screen.reshape(height, width),
            ram=np.frombuffer(data, np.uint8, _RAM_BYTES, length + height * width),
            lives=lives,
            frame=frame,
            terminal=terminal,
        )
        transition = Transition(snapshot, reward, lives, terminal)
        question = self.questions.popleft()
        question.answer = with_seed(transition, question.snapshot, question.action), seconds

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.answers.close()


@contextlib.contextmanager
def _anonymous_file() -> Iterator[int]:
    """A descriptor of a file to share, in memory where possible; it vanishes with its last descriptor."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("emulator")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _AHEAD * _SLOT_BYTES)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(pipe: IO[bytes], length: int) -> bytes:
    """Reads this many bytes from an unbuffered pipe, which were written at once."""
    data = pipe.read(length)
    if len(data) < length:
        raise EOFError("the emulator process has ended")
    return data


def _work(config: AtariConfig, questions: IO[bytes], answers: IO[bytes], slots: mmap.mmap) -> None:
    """The worker's life: until the planner closes the pipe."""
    simulator = Atari(config)
    answers.write(_READY)
    nothing = np.zeros(0, np.uint8)
    for slot in itertools.cycle(range(0, len(slots), _SLOT_BYTES)):
        header = questions.read(_QUESTION.size)
        if not header:
            return
        action, length = _QUESTION.unpack(header)
        state = slots[slot : slot + length]
        start = time.perf_counter()
        snapshot, reward, lives, terminal = simulator.step(
            Snapshot(state, nothing, nothing, 0, 0, False), action
        )
        seconds = time.perf_counter() - start
        for part in (snapshot.state, snapshot.screen, snapshot.ram):
            end = slot + memoryview(part).nbytes
            slots[slot:end] = part
            slot = end
        size = (len(snapshot.state), *snapshot.screen.shape)
        answers.write(_ANSWER.pack(reward, seconds, terminal, lives, snapshot.frame, *size))


def _yield_to_planner() -> None:
    """A worker that is asked something waits for its turn, as if it had been computing all along.

    Otherwise, where all cores are busy, a question interrupts the planner that asks it.
    """
    with contextlib.suppress(AttributeError, OSError):  # where there is no such policy
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


if __name__ == "__main__":
    # The answers get a descriptor of their own: whatever prints must not get among them.
    pipe = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    game, descriptor = sys.argv[1:]
    memory = mmap.mmap(int(descriptor), _AHEAD * _SLOT_BYTES)
    _yield_to_planner()
    _work(configs.from_settings(AtariConfig, json.loads(game)), sys.stdin.buffer, pipe, memory)
