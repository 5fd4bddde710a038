"""The settings of an episode where some were given: those of a protocol, and those that follow from others."""

from collections.abc import Mapping
from typing import Any

from vaeiw_jax import configs
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import unknown
from vaeiw_jax.features import lookup
from vaeiw_jax.playing.emulators import default_rollouts_in_flight
from vaeiw_jax.playing.episodes import PROTOCOLS

DEFAULT = "vae_iw"


def complete(
    config_class: type, given: Mapping[str, Any], protocol: str = DEFAULT
) -> dict[str, Any]:
    """What was given, by flag name, and what follows from it as far as that differs from the config's own defaults.

    Args:
      config_class: what the settings are for, `PlayConfig` or another with an episode in it.
      given: settings of it, and perhaps others. They come first.
      protocol: one of `PROTOCOLS`.
    """
    if protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, PROTOCOLS)
    settings = dict(PROTOCOLS[protocol])
    defaults = {"features": configs.default(config_class, "features")}
    if not lookup((defaults | settings | dict(given))["features"]).maskable:
        settings.pop("background_mask", None)
    if given.get("budget_nodes") is not None and "budget_seconds" not in given:
        settings["budget_seconds"] = None
    else:  # the clock decides what is found in any case, so all cores may help
        settings["rollouts_in_flight"] = default_rollouts_in_flight(usable_cores())
    return settings | dict(given)
