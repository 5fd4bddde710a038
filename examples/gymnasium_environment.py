"""Planning in environments of Gymnasium: pip install '.[gymnasium]'.

One of its own, which is copied, and one of ALE, which plays as `vaeiw play` does with the same seed and settings.
"""

import ale_py
import gymnasium
import numpy as np

import vaeiw_jax as vx
from vaeiw_jax.playing.gymnasium_world import GymnasiumEpisode, GymnasiumWorld

CONFIG = vx.PlannerConfig(budget_seconds=None, budget_nodes=60)


class Square:
    """Where one stands on the frozen lake."""

    num_features = 16

    def atoms(self, seen, previous) -> np.ndarray:
        return np.array([seen.observation], np.int32)


lake = gymnasium.make("FrozenLake-v1", is_slippery=False)
episode = GymnasiumEpisode(GymnasiumWorld(lake, Square()), CONFIG, seed=0)
while not episode.stop:
    episode.advance()
print(f"over the lake in {len(episode.actions)} steps, score {episode.score:g}")

gymnasium.register_envs(ale_py)
env = gymnasium.make("ALE/Asterix-v5", frameskip=15, repeat_action_probability=0.0)
episode = GymnasiumEpisode(GymnasiumWorld(env, "ram"), CONFIG, seed=0, max_actions=10)
while not episode.stop:
    episode.advance()
print(f"{len(episode.actions)} actions of Asterix, score {episode.score:g}")
