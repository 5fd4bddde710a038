"""A feature set of your own: say which features are true on a screen.

Where two neighbouring pixels differ there is an edge; feature t is true if tile t of 14 x 16 has one.
"""

import numpy as np

import vaeiw_jax as vx


class Edges:
    num_features = 14 * 16

    def atoms(self, seen, previous) -> np.ndarray:
        edges = np.diff(seen.screen, axis=1, append=seen.screen[:, -1:]) != 0
        tiles = edges.reshape(14, 15, 16, 10).any(axis=(1, 3))
        return np.flatnonzero(tiles).astype(np.int32)


if __name__ == "__main__":
    config = vx.EpisodeConfig.of("Asterix", budget_nodes=20, max_actions=10)
    episode = vx.Episode(config, seed=0, features=Edges())
    while not episode.stop:
        statistics = episode.advance().statistics
        print(f"{statistics.new_nodes} nodes of {statistics.atoms_per_node:.0f} atoms each")
    print(f"score {episode.score} with {episode.record()['config']['features']}")
