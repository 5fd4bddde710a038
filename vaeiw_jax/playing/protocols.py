"""The settings of an episode where some were given: those of a protocol, and those that follow from others."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from vaeiw_jax import configs
from vaeiw_jax.cores import usable_cores
from vaeiw_jax.errors import unknown
from vaeiw_jax.features import FeaturesConfig, lookup
from vaeiw_jax.features.config import BACKGROUNDS, OF_LEARNED_BITS
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.planning.rules import OF_ROLLOUTS, Rules
from vaeiw_jax.planning.searches import lookup_search
from vaeiw_jax.playing.emulators import default_rollouts_in_flight
from vaeiw_jax.playing.episodes import PROTOCOLS

DEFAULT = "vae_iw"

REPEATED_FRAMES = 30
"""For how many emulator frames the program of Bandres, Bonet and Geffner (AAAI 2018) follows repeated screens."""

_REPLACES = {"noop_max": "noop_actions", "background_mask": "background_subtract"}
"""Settings that take the place of one of a protocol's, where they are given."""


def settings(protocol: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a protocol, but for those that what is given replaces or leaves without effect.

    Args:
      protocol: one of `PROTOCOLS`.
      given: settings that come before those of the protocol.
    """
    if protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, PROTOCOLS)
    settings = dict(PROTOCOLS[protocol])
    chosen = settings | dict(given)
    planner = chosen.get("planner", PlannerConfig.planner)
    _leave_out(settings, [_REPLACES[name] for name in given if name in _REPLACES])
    looks_ahead = lookup_search(planner).looks_ahead
    features = lookup(chosen.get("features", FeaturesConfig.features))
    if not looks_ahead or not features.maskable:
        _leave_out(settings, BACKGROUNDS)
    if not looks_ahead or not features.takes_directory:
        _leave_out(settings, OF_LEARNED_BITS)
    if not looks_ahead:
        _leave_out(settings, [rule.name for rule in dataclasses.fields(Rules)])
    if planner != "rollout_iw":
        _leave_out(settings, [*OF_ROLLOUTS, "action_choice"])
    if "follow_repeats" in settings and "frameskip" in given:
        settings["follow_repeats"] = REPEATED_FRAMES // max(1, given["frameskip"])
    return settings


def _leave_out(settings: dict[str, Any], names: Iterable[str]) -> None:
    for name in names:
        settings.pop(name, None)


def complete(
    config_class: type, given: Mapping[str, Any], protocol: str = DEFAULT
) -> dict[str, Any]:
    """What was given, by flag name, and what follows from it as far as that differs from the config's own defaults.

    Args:
      config_class: what the settings are for, `PlayConfig` or another with an episode in it.
      given: settings of it, and perhaps others. They come first.
      protocol: one of `PROTOCOLS`.
    """
    chosen = dict(given)
    if "features" not in PROTOCOLS.get(protocol, {}):
        chosen.setdefault("features", configs.default(config_class, "features"))
    completed = settings(protocol, chosen)
    if given.get("budget_nodes") is not None and given.get("budget_seconds") is None:
        completed["budget_seconds"] = None
    else:  # the clock decides what is found in any case, so all cores may help
        completed["rollouts_in_flight"] = default_rollouts_in_flight(usable_cores())
    return completed | dict(given)
