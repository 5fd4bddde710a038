"""The steps made last, so that none of them is made again.

A step is a function of state and action, and rollouts come to the same state on many ways: by actions that do the same
there, or whose order does not matter. In searches of 100 to 150 nodes, 2% (Seaquest) to 61% (Breakout) of the steps had
been made before.
"""

from collections import OrderedDict
from collections.abc import Callable

from vaeiw_jax.atari import Snapshot
from vaeiw_jax.planning.world import Transition

REMEMBERED_STEPS = 1000
"""The steps of a few decisions, some 40 MB. Of those that are made again, nine in ten were made in the last two."""


class StepMemory:
    """The transitions of the last steps, by state and action.

    Args:
      size: how many are remembered; the one that was not needed for longest is forgotten first.
    """

    def __init__(self, size: int = REMEMBERED_STEPS):
        self._size = size
        self._transitions: OrderedDict[tuple[bytes, int], Transition] = OrderedDict()

    def recall(self, snapshot: Snapshot, action: int) -> Transition | None:
        """Where the action leads, if it is remembered."""
        key = snapshot.state, action
        transition = self._transitions.get(key)
        if transition is not None:
            self._transitions.move_to_end(key)
        return transition

    def remember(self, snapshot: Snapshot, action: int, transition: Transition) -> None:
        self._transitions[snapshot.state, action] = transition
        if len(self._transitions) > self._size:
            self._transitions.popitem(last=False)


def remembering(
    step: Callable[[Snapshot, int], Transition], memory: StepMemory
) -> Callable[[Snapshot, int], Transition]:
    """The step function, asked only for steps that are not remembered."""

    def remembered_step(snapshot: Snapshot, action: int) -> Transition:
        transition = memory.recall(snapshot, action)
        if transition is None:
            transition = step(snapshot, action)
            memory.remember(snapshot, action, transition)
        return transition

    return remembered_step
