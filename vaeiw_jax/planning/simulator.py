"""What the planners ask of a world: steps from snapshots, and the atoms of what is seen."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Transition(NamedTuple):
    """Where one action leads."""

    snapshot: Any
    """All that is needed to step from here, and to tell the atoms. The planners never look inside."""
    reward: float
    lives: int
    terminal: bool


Step = Callable[[Any, int], Transition]
"""(snapshot, action) -> transition. The same arguments always give the same transition."""

Atoms = Callable[[Any, Any | None], np.ndarray]
"""(snapshot, its parent's snapshot or None) -> int32[n], the true features, without duplicates."""
