"""Records of the first edition: whatever is rewritten, the same config and seed play the same game."""

import json
from pathlib import Path

import pytest

from vaeiw_jax import configs
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig

KEPT = json.loads((Path(__file__).parent / "kept_records.json").read_text())


@pytest.mark.parametrize(
    "kept", KEPT, ids=lambda kept: "-".join(map(str, list(kept["settings"].values())[3:]))
)
def test_a_game_is_played_as_it_always_was(kept):
    episode = Episode(
        configs.from_settings(EpisodeConfig, kept["settings"], partial=True), kept["seed"]
    )
    while not episode.stop:
        episode.advance()
    record = episode.record()
    record.pop("config")
    assert episode.actions == kept["played"]
    assert record == kept["record"]
