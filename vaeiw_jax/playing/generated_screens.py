"""The screens that a planner generates while it plays: each distinct one, remembered without changing the game."""

import hashlib
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.planning import Decision
from vaeiw_jax.planning.tree import NO_NODE, ROOT
from vaeiw_jax.playing.episodes import Episode
from vaeiw_jax.progress import Progress

SPENT = "simulator_calls"
"""Why an episode ends that has made all the simulator calls it may."""

_CALLS = "generated_calls"
"""Simulator calls so far: new nodes and, where the tree did not hold the step that was played, that step."""

_DIGEST_BYTES = 16


def digest(screen: np.ndarray) -> bytes:
    """What tells a screen from others."""
    return hashlib.blake2b(np.ascontiguousarray(screen).data, digest_size=_DIGEST_BYTES).digest()


class GeneratedScreens:
    """Distinct screens of one shape in the order they were first seen, compressed to about a kilobyte each."""

    def __init__(self) -> None:
        self._packed: dict[bytes, bytes] = {}
        self._shape: tuple[int, ...] = (0, 0)

    def __len__(self) -> int:
        return len(self._packed)

    @property
    def digests(self) -> list[bytes]:
        return list(self._packed)

    def add(self, screen: np.ndarray) -> None:
        """Remembers a screen, uint8[rows, columns], unless it is known."""
        key = digest(screen)
        if key not in self._packed:
            self._packed[key] = zlib.compress(screen.tobytes(), level=1)
            self._shape = screen.shape

    def unlike(self, known: Iterable[np.ndarray]) -> list[bytes]:
        """The digests of the screens that are not among these, each uint8[rows, columns]."""
        there = set(map(digest, known))
        return [key for key in self._packed if key not in there]

    def screens(self, digests: Sequence[bytes]) -> np.ndarray:
        """uint8[n, rows, columns]: the screens that have these digests."""
        pixels = [np.frombuffer(zlib.decompress(self._packed[key]), np.uint8) for key in digests]
        return np.stack(pixels).reshape(-1, *self._shape)

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {
            "generated": np.frombuffer(b"".join(self._packed.values()), np.uint8),
            "generated_sizes": np.array([len(packed) for packed in self._packed.values()], int),
            "generated_digests": np.frombuffer(b"".join(self._packed), np.uint8),
            "generated_shape": np.array(self._shape),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "GeneratedScreens":
        """What `to_arrays` made arrays of, and perhaps other arrays beside them."""
        made = cls()
        made._shape = tuple(arrays["generated_shape"].tolist())
        digests = arrays["generated_digests"].reshape(-1, _DIGEST_BYTES)
        ends = np.cumsum(arrays["generated_sizes"])
        packed = np.split(arrays["generated"], ends[:-1]) if len(ends) else []
        for key, part in zip(digests, packed, strict=True):
            made._packed[key.tobytes()] = part.tobytes()
        return made


class RememberingEpisode(Episode):
    """Plays as `Episode` does with the same config and seed, and remembers the distinct screens of all new nodes.

    They are part of its decisions, and so of its save and of its file of decisions.

    Args:
      *arguments, **options: of `Episode`.
      calls_limit: the episode ends with the decision that brings the simulator calls to this number.
    """

    def __init__(self, *arguments: Any, calls_limit: int, **options: Any):
        super().__init__(*arguments, **options)
        self.generated = GeneratedScreens()
        self.calls = 0
        self._calls_limit = calls_limit

    def act(self, decision: Decision) -> None:
        statistics = decision.statistics
        snapshots = self.planner.tree.snapshots
        for snapshot in snapshots[len(snapshots) - statistics.new_nodes :]:
            self.generated.add(snapshot.screen)
        known = self.planner.tree.children[ROOT, decision.action] != NO_NODE
        self.calls += statistics.new_nodes + (not known)
        super().act(decision)

    @property
    def stop(self) -> str | None:
        return super().stop or (SPENT if self.calls >= self._calls_limit else None)

    def progress(self) -> Progress:
        """How far the episode is, in simulator calls."""
        return Progress(self.calls, self._calls_limit, super().progress().text)

    def record(self) -> dict[str, Any]:
        counts = {SPENT: self.calls, "generated_screens": len(self.generated)}
        return super().record() | counts

    def decisions(self) -> dict[str, np.ndarray]:
        calls = {_CALLS: np.array(self.calls)}
        return super().decisions() | calls | self.generated.to_arrays()

    def resume(self, saved: dict[str, np.ndarray]) -> None:
        super().resume(saved)
        decisions = durable.part(saved, "decisions")
        self.generated = GeneratedScreens.from_arrays(decisions)
        self.calls = int(decisions[_CALLS])
