"""A search of your own: grow a tree from its root until the budget is spent.

This one tries untried actions anywhere in the tree, whatever is novel there.
"""

import numpy as np

import vaeiw_jax as vx
from vaeiw_jax.planning import Search
from vaeiw_jax.planning.search import SOLVED
from vaeiw_jax.planning.tree import NO_NODE


def random_growth(search: Search) -> str:
    tree = search.tree
    while not (ended := search.spent()):
        untried = (tree.children[: tree.size] == NO_NODE) & ~tree.terminal[: tree.size, None]
        if not untried.any():
            return SOLVED
        node, action = search.rng.choice(np.argwhere(untried))
        search.ask(int(node), int(action))
        search.receive()
    return ended


if __name__ == "__main__":
    config = vx.EpisodeConfig.of("Asterix", features="ram", budget_nodes=20, max_actions=10)
    episode = vx.Episode(config, seed=0, search=random_growth)
    while not episode.stop:
        statistics = episode.advance().statistics
        print(f"{statistics.new_nodes} nodes, at most {statistics.depth} deep")
    print(f"score {episode.score} with {episode.record()['config']['planner']}")
