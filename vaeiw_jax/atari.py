"""The simulator: an Atari game by name, stepped from snapshots. The only file that knows ale-py."""

import functools
import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import ale_py
import ale_py.roms
import numpy as np

from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.planning.world import Transition

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)

NOOP = 0  # ale_py.Action.NOOP

UNUSABLE = frozenset({"combat", "joust", "maze_craze", "warlords"})
"""ROMs ale-py ships but its emulator does not support; loading one may kill the process."""

_SCREEN_HEIGHTS = {  # of the games whose screens are not 210 rows high; to ask the emulator takes a seventh of a second
    **dict.fromkeys(("adventure", "air_raid", "keystone_kapers", "king_kong", "klax"), 250),
    **dict.fromkeys(("laser_gates", "mr_do", "pacman", "sir_lancelot", "space_war"), 250),
    **{"carnival": 214, "journey_escape": 230, "pooyan": 220},
}
_NAMES = {  # where the words of the ROM's file name do not give the usual name
    "et": "ET",
    "koolaid": "KoolAid",
    "tic_tac_toe_3d": "TicTacToe3D",
}
_ALIASES = {  # spellings whose letters differ from the ROM's file name
    "jamesbond007": "jamesbond",
    "montezumasrevenge": "montezuma_revenge",
    "montezuma": "montezuma_revenge",
    "yarrevenge": "yars_revenge",
    "upanddown": "up_n_down",
    "keystonekops": "keystone_kapers",
}


@dataclass(frozen=True)
class AtariConfig:
    """What is played, and how the player is wired to it (Table 2 of the paper)."""

    game: str = field(
        metadata={"help": "the game, in any spelling: MsPacman, ms_pacman, 'Ms. Pac-Man'"}
    )
    frameskip: int = field(
        default=15, metadata={"help": "frames an action is held; rewards are summed over them"}
    )
    full_action_set: bool = field(
        default=False, metadata={"help": "all 18 actions instead of those that matter in the game"}
    )
    noop_max: int = field(
        default=0,
        metadata={"help": "start after a random number of idle frames, at most this many"},
    )
    noop_actions: int = field(
        default=0,
        metadata={
            "help": "start after a random number of idle actions, fewer than this many, each held for --frameskip "
            "frames; in place of none, one random action"
        },
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "game", game_name(rom_id(self.game)))
        if self.frameskip < 1:
            raise UserError(
                f"frameskip must be at least 1, not {self.frameskip}; the paper uses 15"
            )
        if self.noop_max < 0:
            raise UserError(f"noop_max must be 0 or more, not {self.noop_max}")
        if self.noop_actions < 0:
            raise UserError(f"noop_actions must be 0 or more, not {self.noop_actions}")
        if self.noop_max and self.noop_actions:
            raise UserError(
                "noop_max counts idle frames and noop_actions idle actions at the start; give one of them"
            )


class Snapshot(NamedTuple):
    """A state of the emulator with what it shows: a plain value, from which any process can go on.

    The emulator's own states forget the screen, so it is kept here.
    """

    state: bytes
    screen: np.ndarray
    """uint8[height, width] palette colours."""
    ram: np.ndarray
    """uint8[128]"""
    lives: int
    frame: int
    """Frames emulated since the start of the episode, idle ones included."""
    terminal: bool
    noise_seed: int = 0
    """Of what is drawn for features; 0 where nothing is. The emulator does not know it."""


class Atari:
    """One emulator with one game loaded.

    `step` is a function of its arguments alone: the emulator keeps no state that matters between calls.
    """

    def __init__(self, config: AtariConfig):
        self.config = config
        self._emulator = _load(config.game, config.frameskip)
        self._actions = (
            self._emulator.getLegalActionSet()
            if config.full_action_set
            else self._emulator.getMinimalActionSet()
        )
        # Resetting the emulator does not always lead back to the same memory; this snapshot does.
        self._power_on = _snapshot(self._emulator)
        if self._power_on.frame > 0:
            # Loading pressed buttons to begin the game, and held each for `frameskip` frames (Berzerk, DoubleDunk).
            self._power_on = _snapshot(_load(config.game, frameskip=1))
        self._emulator.act(NOOP)  # see `_load`
        self._current = b""

    @property
    def num_actions(self) -> int:
        return len(self._actions)

    @property
    def action_names(self) -> list[str]:
        return [action.name for action in self._actions]

    @property
    def screen_shape(self) -> tuple[int, int]:
        height, width = self._emulator.getScreenDims()
        return height, width

    def start(self, rng: np.random.Generator) -> Snapshot:
        """The first state of an episode; `rng` draws the number of idle frames or actions, if there may be any."""
        if self.config.noop_actions:
            return self._start_after_actions(rng)
        if not self.config.noop_max:
            return self._power_on
        emulator = self._frame_by_frame
        emulator.restoreState(ale_py.ALEState(self._power_on.state))
        for _ in range(rng.integers(self.config.noop_max, endpoint=True)):
            emulator.act(NOOP)
        return _snapshot(emulator)

    def _start_after_actions(self, rng: np.random.Generator) -> Snapshot:
        """The state after some idle actions, or one random one; the first of all if the game ended meanwhile."""
        number = int(rng.integers(self.config.noop_actions))
        action = NOOP if number else self._actions[rng.integers(len(self._actions))]
        self._current = b""
        self._emulator.restoreState(ale_py.ALEState(self._power_on.state))
        for _ in range(max(1, number)):
            self._emulator.act(action)
        snapshot = _snapshot(self._emulator)
        return self._power_on if snapshot.terminal else snapshot

    def step(
        self,
        snapshot: Snapshot,
        action: int,
        watch: Callable[[np.ndarray], None] | None = None,
    ) -> Transition:
        """Holds the action for `frameskip` frames, or until the game is over.

        `watch`, if given, is shown every emulated frame as uint8[height, width, 3].
        """
        if watch is not None:
            return self._watched_step(snapshot, action, watch)
        if snapshot.state != self._current:  # else the emulator stands there already
            self._emulator.restoreState(ale_py.ALEState(snapshot.state))
        reward = self._emulator.act(self._actions[action])
        after = _snapshot(self._emulator)
        self._current = after.state
        return Transition(after, float(reward), after.lives, after.terminal)

    def _watched_step(
        self, snapshot: Snapshot, action: int, watch: Callable[[np.ndarray], None]
    ) -> Transition:
        emulator, reward = self._frame_by_frame, 0
        emulator.restoreState(ale_py.ALEState(snapshot.state))
        for _ in range(self.config.frameskip):
            if emulator.game_over():
                break
            reward += emulator.act(self._actions[action])
            watch(emulator.getScreenRGB())
        after = _snapshot(emulator)
        return Transition(after, float(reward), after.lives, after.terminal)

    @functools.cached_property
    def _frame_by_frame(self) -> ale_py.ALEInterface:
        """An emulator that does not skip frames, for what happens within an action."""
        emulator = _load(self.config.game, frameskip=1)
        emulator.act(NOOP)
        return emulator

    def bare_rate(
        self, snapshots: Sequence[Snapshot], seconds: float, rng: np.random.Generator
    ) -> float:
        """Steps a second if nothing is done but to restore, act, clone and fetch the screen.

        That is the most any planner with one emulator can generate. Steps are random ones from the given snapshots.
        """
        emulator = self._emulator
        states = [ale_py.ALEState(snapshot.state) for snapshot in snapshots]
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            emulator.restoreState(states[rng.integers(len(states))])
            emulator.act(self._actions[rng.integers(len(self._actions))])
            emulator.cloneState()
            emulator.getScreen()
            steps += 1
        rate = steps / (time.perf_counter() - start)
        self._current = b""  # the emulator stands elsewhere now
        return rate


def _load(game: str, frameskip: int) -> ale_py.ALEInterface:
    """An emulator with the game loaded, which holds every action for `frameskip` frames.

    It must act once before a state is restored: one that has never run a frame is led astray (Qbert, Tetris).
    """
    emulator = ale_py.ALEInterface()
    emulator.setInt("random_seed", 0)
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("frame_skip", frameskip)
    rom = ale_py.roms.get_rom_path(rom_id(game))
    if rom is None:
        raise UserError(f"ale-py was installed without its ROM of {game}; reinstall ale-py")
    emulator.loadROM(rom)
    return emulator


def _snapshot(emulator: ale_py.ALEInterface) -> Snapshot:
    return Snapshot(
        state=cast(bytes, emulator.cloneState().__getstate__()),
        screen=emulator.getScreen(),
        ram=emulator.getRAM(),
        lives=emulator.lives(),
        frame=emulator.getEpisodeFrameNumber(),
        terminal=emulator.game_over(),
    )


def pack(snapshots: Sequence[Snapshot]) -> dict[str, np.ndarray]:
    """Snapshots as plain arrays, from which another process continues bit for bit."""
    joined = b"".join(snapshot.state for snapshot in snapshots)
    return {
        "states": np.frombuffer(joined, np.uint8),
        "state_lengths": np.array([len(snapshot.state) for snapshot in snapshots], np.int64),
        "states_digest": np.frombuffer(hashlib.sha256(joined).digest(), np.uint8),
        "screens": np.stack([snapshot.screen for snapshot in snapshots]),
        "rams": np.stack([snapshot.ram for snapshot in snapshots]),
        "lives": np.array([snapshot.lives for snapshot in snapshots], np.int32),
        "frames": np.array([snapshot.frame for snapshot in snapshots], np.int64),
        "terminals": np.array([snapshot.terminal for snapshot in snapshots], np.bool_),
        "noise_seeds": np.array([snapshot.noise_seed for snapshot in snapshots], np.uint64),
    }


def unpack(arrays: Mapping[str, np.ndarray]) -> list[Snapshot]:
    """The snapshots `pack` was given. The emulator trusts its states blindly, so their digest is checked first."""
    joined = arrays["states"].tobytes()
    if hashlib.sha256(joined).digest() != arrays["states_digest"].tobytes():
        raise UserError("the saved emulator states do not match their digest")
    ends = np.cumsum(arrays["state_lengths"]).tolist()
    return [
        Snapshot(
            state=joined[start:end],
            screen=arrays["screens"][i],
            ram=arrays["rams"][i],
            lives=int(arrays["lives"][i]),
            frame=int(arrays["frames"][i]),
            terminal=bool(arrays["terminals"][i]),
            noise_seed=int(arrays["noise_seeds"][i]) if "noise_seeds" in arrays else 0,
        )
        for i, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
    ]


def rom_id(game: str) -> str:
    """The file name of a game's ROM, from any spelling: `ALE/MsPacman-v5` gives `ms_pacman`."""
    if "," in game:
        raise UserError(f"{game!r} are several games, and one is wanted here")
    letters = _letters(game)
    found = _rom_ids().get(letters)
    if found is None:
        raise unknown("game", game, game_names())
    if found in UNUSABLE:
        raise UserError(
            f"{game_name(found)} cannot be played: the emulator of ale-py does not support its ROM"
        )
    return found


def game_name(rom: str) -> str:
    """The usual name of a ROM, as in the paper: `ms_pacman` gives `MsPacman`."""
    return _NAMES.get(rom) or "".join(word[:1].upper() + word[1:] for word in rom.split("_"))


def screen_shape(game: str) -> tuple[int, int]:
    """(height, width) of a game's screen, without an emulator."""
    return _SCREEN_HEIGHTS.get(rom_id(game), 210), 160


def game_names() -> list[str]:
    """Every game that can be played."""
    return sorted(game_name(rom) for rom in set(_rom_ids().values()) - UNUSABLE)


@functools.cache
def _rom_ids() -> dict[str, str]:
    return {_letters(rom): rom for rom in ale_py.roms.get_all_rom_ids()} | _ALIASES


def _letters(game: str) -> str:
    """What is left of a name without capitals, signs, and the prefix and version Gymnasium adds."""
    bare = re.sub(r"^ale/", "", game.strip().lower())
    bare = re.sub(r"(noframeskip|deterministic)?-v\d+$", "", bare)
    bare = re.sub(r"\.bin$", "", bare)
    return re.sub(r"[^a-z0-9]", "", bare)
