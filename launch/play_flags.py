"""The flag that chooses a protocol, and the settings that follow from it, for every command that plays."""

from typing import Any

from absl import flags

from launch import command
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.features import lookup
from vaeiw_jax.playing.emulators import default_emulators, default_rollouts_in_flight
from vaeiw_jax.playing.episodes import PROTOCOLS

_PROTOCOL = flags.DEFINE_string(
    "protocol",
    "vae_iw",
    "vae_iw: as the paper plays; rollout_iw: as the RolloutIW scores it compares with were made (18,000 frames, all "
    "18 actions, discount 1, background mask, up to 30 idle frames). Settings given one by one come first",
)


_EMULATORS = flags.DEFINE_integer(
    "emulators",
    None,
    "processes that step the game while the planner thinks, 0 for none (default: one per core, as far as there are "
    "rollouts in flight to keep them busy). They change nothing but the time it takes",
)


def emulators(rollouts_in_flight: int) -> int:
    """How many emulator processes to use."""
    if _EMULATORS.value is not None:
        if _EMULATORS.value < 0:
            raise UserError(f"--emulators must be 0 or more, not {_EMULATORS.value}")
        return _EMULATORS.value
    return default_emulators(rollouts_in_flight, usable_cores())


def episode_defaults() -> dict[str, Any]:
    """The settings to use where the user gave none, as far as they differ from the config's own."""
    if _PROTOCOL.value not in PROTOCOLS:
        raise unknown("protocol", _PROTOCOL.value, PROTOCOLS)
    defaults = dict(PROTOCOLS[_PROTOCOL.value])
    if not lookup(flags.FLAGS.features).maskable:
        defaults.pop("background_mask", None)
    if command.given("budget_nodes") and not command.given("budget_seconds"):
        defaults["budget_seconds"] = None
    else:  # the clock decides what is found in any case, so all cores may help
        defaults["rollouts_in_flight"] = default_rollouts_in_flight(usable_cores())
    return defaults
