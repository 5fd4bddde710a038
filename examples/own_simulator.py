"""A planner on a simulator of your own: anything that steps from a snapshot.

A corridor of 40 rooms, the last of which pays. Its states are room numbers, and all there is to see is the room.
"""

import numpy as np

import vaeiw_jax as vx


def step(room: int, action: int) -> vx.Transition:
    there = min(room + action, 39)
    return vx.Transition(snapshot=there, reward=float(there == 39), lives=0, terminal=there == 39)


def atoms(room: int, previous: int | None) -> np.ndarray:
    return np.array([room], np.int32)


planner = vx.Planner(
    vx.PlannerConfig(budget_seconds=None, budget_nodes=200),
    vx.PlainWorld(step, atoms),
    num_actions=2,
    num_features=40,
    snapshot=0,
    rng=np.random.default_rng(0),
)
decision = planner.decide()
print(f"to stay promises {decision.values[0]:.2f}, to go on {decision.values[1]:.2f}")
