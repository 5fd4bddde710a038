"""The flag that chooses a protocol, and the settings that follow from it, for every command that plays."""

from typing import Any

from absl import flags

from launch import command
from vaeiw_jax.episodes import PROTOCOLS
from vaeiw_jax.errors import unknown
from vaeiw_jax.features.bprost import SETS as MASKABLE

_PROTOCOL = flags.DEFINE_string(
    "protocol",
    "vae_iw",
    "vae_iw: as the paper plays; rollout_iw: as the RolloutIW scores it compares with were made (18,000 frames, all "
    "18 actions, discount 1, background mask, up to 30 idle frames). Settings given one by one come first",
)


def episode_defaults() -> dict[str, Any]:
    """The settings to use where the user gave none, as far as they differ from the config's own."""
    if _PROTOCOL.value not in PROTOCOLS:
        raise unknown("protocol", _PROTOCOL.value, PROTOCOLS)
    defaults = dict(PROTOCOLS[_PROTOCOL.value])
    if flags.FLAGS.features not in MASKABLE:
        defaults.pop("background_mask", None)
    if command.given("budget_nodes") and not command.given("budget_seconds"):
        defaults["budget_seconds"] = None
    return defaults
