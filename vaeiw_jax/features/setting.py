"""What a feature set is told about where it is used."""

from typing import NamedTuple

import numpy as np


class Setting(NamedTuple):
    game: str
    screen_shape: tuple[int, int]
    background: np.ndarray | None = None
    """int16[height, width]: the colour a pixel never left, -1 where it did; None if screens are not masked."""
