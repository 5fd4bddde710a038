"""A seed of its own for every node, for features that are drawn.

It is part of the node's snapshot, and a function of the seed of the run and of the actions that lead from its start to
the node: so it is kept with the node, and depends neither on timing nor on the order in which nodes are generated.
"""

import hashlib
import struct
from collections.abc import Callable

import numpy as np

from vaeiw_jax.atari import Snapshot
from vaeiw_jax.planning.world import Transition

NO_SEED = 0
"""Of the nodes of a run in which nothing is drawn."""

_CHILD = struct.Struct("<Qq")


def first_seed(rng: np.random.Generator) -> int:
    """The seed of a run's first node."""
    return int(rng.integers(1, 2**64, dtype=np.uint64))


def with_seed(transition: Transition, parent: Snapshot, action: int) -> Transition:
    """The transition that an action leads to, its snapshot with the seed of the new node."""
    if parent.noise_seed == NO_SEED:
        return transition
    digest = hashlib.blake2b(_CHILD.pack(parent.noise_seed, action), digest_size=8).digest()
    seed = int.from_bytes(digest, "little") or 1  # a child is never without
    return transition._replace(snapshot=transition.snapshot._replace(noise_seed=seed))


def seeding(
    step: Callable[[Snapshot, int], Transition],
) -> Callable[[Snapshot, int], Transition]:
    """The step function, with the seed of the new node in every transition."""
    return lambda snapshot, action: with_seed(step(snapshot, action), snapshot, action)
