"""The flag that chooses a protocol, and the settings that follow from it, for every command that plays."""

from typing import Any

from absl import flags

from launch import command
from vaeiw_jax import configs
from vaeiw_jax.playing import protocols

PROTOCOL = flags.DEFINE_string(
    "protocol",
    protocols.DEFAULT,
    "vae_iw: as the paper plays; rollout_iw: as the RolloutIW scores it compares with were made (18,000 frames, all "
    "18 actions, discount 1, background mask, up to 30 idle frames). Settings given one by one come first",
)


def settings(config_class: type) -> dict[str, Any]:
    """The settings of a config that plays: those given, and those that follow from them."""
    return protocols.complete(command.given_flags(configs.names(config_class)), PROTOCOL.value)
