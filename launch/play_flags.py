"""What every command that plays shares: the protocol, the settings that follow from it, the model that is used."""

from typing import Any

from absl import flags

from launch import command
from vaeiw_jax import configs
from vaeiw_jax.features import registry
from vaeiw_jax.playing import protocols
from vaeiw_jax.playing.episodes import EpisodeConfig

PROTOCOL = flags.DEFINE_string(
    "protocol",
    protocols.DEFAULT,
    "vae_iw: as the paper plays; recommended: the same with symbols and a search that won more games "
    "(--literals=either, --action_choice=top_two, --zero_ties=longest; docs/symbols.md says why); "
    "published: the same as its published code has it (--losses=published, --noise); "
    "rollout_iw: as the RolloutIW scores it compares with were made, by the same rules (18,000 frames, all 18 actions, "
    "discount 1, background subtracted, fewer than 30 idle actions, --untried_as_zero, --zero_ties=longest, "
    "--follow_repeats=2, --rule_out_known, --noterminals_write). Flags for single settings override the protocol",
)


def tell_features(episode: EpisodeConfig) -> None:
    """Says which trained model plays, if one does."""
    if not episode.planner.search.looks_ahead:
        return
    if origin := registry.origin(episode.features, episode.atari.game):
        print(f"features: {origin}")


def settings(config_class: type) -> dict[str, Any]:
    """The settings of a config that plays: those given, and those that follow from them."""
    given = command.given_flags(configs.names(config_class))
    return protocols.complete(config_class, given, PROTOCOL.value)
