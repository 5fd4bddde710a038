"""Emulators in processes of their own, so that steps are made while the planner thinks.

A worker reads questions (a state and an action) from its standard input and writes answers to its standard output, as
the structs below followed by raw bytes. It keeps nothing from one question to the next: whoever dies or hangs is
replaced by another, who is asked the same again.
"""

import json
import os
import selectors
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from typing import IO, Any

import numpy as np

from vaeiw_jax.atari import Atari, AtariConfig, Snapshot
from vaeiw_jax.errors import UserError
from vaeiw_jax.planning.simulator import Answer, Transition

_QUESTION = struct.Struct("=iI")
"""Action, length of the state; then the state."""

_ANSWER = struct.Struct("=dd?iqIHH")
"""Reward, seconds, terminal, lives, frame, length of the state, height, width; then state, screen and RAM."""

_RAM_BYTES = 128

_READY = b"ready"
"""What a worker says first."""

_AHEAD = 2
"""Questions a worker may have: one it works on and one that waits. They fit the pipes, so that nobody blocks."""

_TRIES = 3
"""Workers that may fail at the same question before it is blamed."""


class EmulatorPool:
    """Workers with one emulator each. Answers come in the order of the questions, whoever found them.

    Args:
      config: the game.
      number: of workers.
      hang_seconds: a worker that is silent for so long is killed.
    """

    def __init__(self, config: AtariConfig, number: int, hang_seconds: float = 20.0):
        self.replaced = 0
        self._config = config
        self._hang_seconds = hang_seconds
        self._selector = selectors.DefaultSelector()
        self._waiting: deque[_Question] = deque()
        self._questions: deque[_Question] = deque()
        self._workers = [self._hire() for _ in range(number)]

    def ask(self, snapshot: Snapshot, action: int) -> None:
        question = _Question(snapshot.state, action)
        self._questions.append(question)
        self._waiting.append(question)
        self._assign()

    def answer(self) -> tuple[Transition, float]:
        """The transition asked for longest, and the seconds its step took."""
        question = self._questions.popleft()
        while question.answer is None:
            self._listen()
        return question.answer

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

    def _listen(self) -> None:
        """Takes every answer that has arrived, waiting for one if there is none."""
        ready = self._selector.select(timeout=self._hang_seconds)
        for key, _ in ready:
            worker: _Worker = key.data
            try:
                worker.take()
            except EOFError:
                self._replace(worker)
        if not ready:
            for worker in [worker for worker in self._workers if worker.questions]:
                self._replace(worker)
        self._assign()

    def _hire(self) -> "_Worker":
        try:
            worker = _Worker(self._config)
        except EOFError as error:
            raise UserError(f"no emulator of {self._config.game} could be started") from error
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        return worker

    def _replace(self, worker: "_Worker") -> None:
        """Dismisses a worker that died or hangs; what it was asked will be asked again, first of all."""
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
        self._workers[self._workers.index(worker)] = self._hire()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._selector.close()

    def __del__(self) -> None:
        if hasattr(self, "_workers"):
            self.close()


class PooledWorld:
    """A game as a planner's world: its steps by a pool of emulators, its atoms by a feature set."""

    def __init__(self, pool: EmulatorPool, atoms: Callable[[Any, Any | None], np.ndarray]):
        self.pool = pool
        self.atoms = atoms
        self._parents: deque[Snapshot] = deque()

    def ask(self, snapshot: Snapshot, action: int) -> None:
        self._parents.append(snapshot)
        self.pool.ask(snapshot, action)

    def answer(self) -> Answer:
        transition, emulator_seconds = self.pool.answer()
        start = time.perf_counter()
        atoms = self.atoms(transition.snapshot, self._parents.popleft())
        return Answer(transition, atoms, emulator_seconds, time.perf_counter() - start)


class _Question:
    def __init__(self, state: bytes, action: int):
        self.data = _QUESTION.pack(action, len(state)) + state
        self.answer: tuple[Transition, float] | None = None
        self.tries = 0


class _Worker:
    """The planner's side of one worker."""

    def __init__(self, config: AtariConfig):
        self.questions: deque[_Question] = deque()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "vaeiw_jax.emulators", json.dumps(asdict(config))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what is here must be in the pipe, where a selector sees it
            start_new_session=True,  # Ctrl-C is for the planner, who wants the last answers
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked = self._process.stdin
        self.answers = self._process.stdout
        _read(self.answers, len(_READY))

    def put(self, question: _Question) -> None:
        self.questions.append(question)
        left = memoryview(question.data)
        while left:
            left = left[self._asked.write(left) :]

    def take(self) -> None:
        header = _read(self.answers, _ANSWER.size)
        reward, seconds, terminal, lives, frame, length, height, width = _ANSWER.unpack(header)
        snapshot = Snapshot(
            state=_read(self.answers, length),
            screen=np.frombuffer(_read(self.answers, height * width), np.uint8).reshape(
                height, width
            ),
            ram=np.frombuffer(_read(self.answers, _RAM_BYTES), np.uint8),
            lives=lives,
            frame=frame,
            terminal=terminal,
        )
        transition = Transition(snapshot, reward, lives, terminal)
        self.questions.popleft().answer = transition, seconds

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.answers.close()


def _read(pipe: IO[bytes], length: int) -> bytes:
    """Exactly `length` bytes of an unbuffered pipe."""
    parts = []
    while length:
        parts.append(pipe.read(length))
        if not parts[-1]:
            raise EOFError("the emulator is gone")
        length -= len(parts[-1])
    return b"".join(parts)


def _work(config: AtariConfig, questions: IO[bytes], answers: IO[bytes]) -> None:
    """The worker's life: until the planner closes the pipe."""
    simulator = Atari(config)
    answers.write(_READY)
    answers.flush()
    nothing = np.zeros(0, np.uint8)
    while header := questions.read(_QUESTION.size):
        action, length = _QUESTION.unpack(header)
        state = questions.read(length)
        start = time.perf_counter()
        snapshot, reward, lives, terminal = simulator.step(
            Snapshot(state, nothing, nothing, 0, 0, False), action
        )
        seconds = time.perf_counter() - start
        size = (len(snapshot.state), *snapshot.screen.shape)
        header = _ANSWER.pack(reward, seconds, terminal, lives, snapshot.frame, *size)
        answers.write(
            b"".join([header, snapshot.state, snapshot.screen.tobytes(), snapshot.ram.tobytes()])
        )
        answers.flush()


if __name__ == "__main__":
    # The answers get a descriptor of their own: whatever prints must not get among them.
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _work(AtariConfig(**json.loads(sys.argv[1])), sys.stdin.buffer, pipe)
