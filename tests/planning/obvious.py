"""RolloutIW(k) and IW(k) as one would first write it down: objects, dictionaries, recursion, no shortcuts."""

from itertools import combinations_with_replacement

from vaeiw_jax.planning.tree import NO_NODE, ROOT


class Node:
    def __init__(self, state, atoms, parent=None, reward=0.0, utility=0.0, lives=0, terminal=False):
        self.state, self.atoms, self.parent = state, set(atoms.tolist()), parent
        self.reward, self.utility, self.lives, self.terminal = reward, utility, lives, terminal
        self.children = {}
        self.solved = False

    @property
    def depth(self):
        return 0 if self.parent is None else self.parent.depth + 1

    def below(self):
        yield self
        for child in self.children.values():
            yield from child.below()


class ObviousPlanner:
    """What both share: generating, backing up, acting. `search` is theirs."""

    def __init__(self, world, config, rng):
        self.world, self.config, self.rng = world, config, rng
        self.root = Node(world.start, world.atoms(world.start, None), lives=world.start.lives)

    def tuples(self, node):
        return list(combinations_with_replacement(sorted(node.atoms), self.config.width))

    def decide(self):
        self.new_nodes = 0
        self.lengths = []
        self.search()
        values = {action: self.value(child) for action, child in self.root.children.items()}
        if not values:
            return int(self.rng.integers(self.world.num_actions))
        best = [action for action in sorted(values) if values[action] == max(values.values())]
        return best[self.rng.integers(len(best))]

    def spent(self):
        return self.new_nodes >= self.config.budget_nodes

    def generate(self, node, action):
        after = self.world.step(node.state, action)
        utility = after.reward
        if self.config.risk_averse:
            if after.lives < node.lives:
                utility = -10 * self.config.risk_alpha
            elif after.reward < 0:
                utility = after.reward * self.config.risk_alpha
        atoms = self.world.atoms(after.snapshot, node.state)
        child = Node(
            after.snapshot, atoms, node, after.reward, utility, after.lives, after.terminal
        )
        node.children[action] = child
        self.new_nodes += 1
        return child

    def value(self, node):
        if not node.children:
            return node.utility
        return node.utility + self.config.discount * max(
            self.value(child) for child in node.children.values()
        )

    def act(self, action):
        child = self.root.children.get(action) or self.generate(self.root, action)
        if self.config.caching == "none":
            atoms = self.world.atoms(child.state, None)
            child = Node(child.state, atoms, lives=child.lives, terminal=child.terminal)
        child.parent = None
        self.root = child
        return child


class ObviousRolloutIW(ObviousPlanner):
    def search(self):
        self.forget()
        while not self.root.solved and not self.spent():
            self.rollout()

    def forget(self):
        """Forgets what was seen and solved, but for terminal nodes."""
        self.least_depth = {}
        for node in self.root.below():
            node.solved = False
        for node in self.root.below():
            if node.terminal:
                self.solve(node)

    def rollout(self):
        node = self.root
        while True:
            actions = [
                action
                for action in range(self.world.num_actions)
                if action not in node.children or not node.children[action].solved
            ]
            action = self.choose(node, actions)
            if action not in node.children:
                child = self.generate(node, action)
                depths = [self.least_depth.get(t, float("inf")) for t in self.tuples(child)]
                goes_on = any(depth > child.depth for depth in depths)
                for t in self.tuples(child):
                    if self.least_depth.get(t, float("inf")) > child.depth:
                        self.least_depth[t] = child.depth
                cut_off = self.spent()
            else:
                child = node.children[action]
                depths = [self.least_depth.get(t, float("inf")) for t in self.tuples(child)]
                goes_on = any(depth >= child.depth for depth in depths)
                cut_off = False
            if not goes_on or child.terminal or child.depth >= self.config.max_depth:
                self.solve(child)
                break
            if cut_off:
                break
            node = child
        self.lengths.append(child.depth)
        self.learn(child)

    def choose(self, node, actions):
        return actions[self.rng.integers(len(actions))]

    def learn(self, end):
        """Uniform rollouts learn nothing from how one ended."""

    def solve(self, node):
        node.solved = True
        parent = node.parent
        if parent is not None and all(
            action in parent.children and parent.children[action].solved
            for action in range(self.world.num_actions)
        ):
            self.solve(parent)


class ObviousIW(ObviousPlanner):
    def search(self):
        seen = set()
        queue = []
        level = [self.root]
        while level:
            for node in level:
                seen |= set(self.tuples(node))
                queue += self.untried(node)
            level = [node.children[a] for node in level for a in sorted(node.children)]
        while queue and not self.spent():
            child = self.generate(*queue.pop(0))
            new = set(self.tuples(child)) - seen
            seen |= new
            if new:
                queue += self.untried(child)

    def untried(self, node):
        if node.terminal or node.depth >= self.config.max_depth:
            return []
        return [(node, a) for a in range(self.world.num_actions) if a not in node.children]


def play_side_by_side(fast, obvious):
    """Checks that both see, label and choose the same, over several decisions."""
    for _ in range(6):
        decision = fast.decide()
        assert decision.action == obvious.decide()
        assert described(fast.tree) == described_obvious(obvious.root)
        assert decision.statistics.new_nodes == obvious.new_nodes
        assert decision.statistics.rollouts == len(obvious.lengths)
        assert decision.statistics.max_rollout_length == max(obvious.lengths, default=0)
        transition = fast.act(decision.action)
        assert transition.snapshot == obvious.act(decision.action).state
        if transition.terminal:
            break


def described(tree, node=ROOT):
    """A tree as nested dictionaries, to be compared."""
    return {
        "state": tree.snapshots[node],
        "depth": int(tree.depth[node]),
        "solved": bool(tree.solved[node]),
        "utility": float(tree.utility[node]) if node != ROOT else 0.0,
        "children": {
            action: described(tree, child)
            for action, child in enumerate(tree.children[node])
            if child != NO_NODE
        },
    }


def described_obvious(node):
    return {
        "state": node.state,
        "depth": node.depth,
        "solved": node.solved,
        "utility": node.utility if node.parent is not None else 0.0,
        "children": {a: described_obvious(child) for a, child in node.children.items()},
    }
