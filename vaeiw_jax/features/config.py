"""Which feature set, and what it is told about where it is used."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class FeaturesConfig:
    """What the planner sees."""

    features: str = field(default="bprost", metadata={"help": "basic, bpros, bprost or ram"})
    background_mask: bool = field(
        default=False,
        metadata={"help": "basic, bpros, bprost: pixels that never change count as colour 0"},
    )


class Setting(NamedTuple):
    """Where features are used."""

    game: str
    screen_shape: tuple[int, int]
    background: np.ndarray | None = None
    """int16[height, width]: the colour a pixel never left, -1 where it did; None if screens are not masked."""
