"""RolloutIW(k) and IW(k) as one would first write it down: objects, dictionaries, recursion, no shortcuts."""

import math
from itertools import combinations_with_replacement

from vaeiw_jax.planning.tree import NO_NODE, ROOT


class Node:
    def __init__(self, state, atoms, parent=None, action=None, reward=0.0, lives=0, terminal=False):
        self.state, self.atoms, self.parent, self.action = (
            state,
            set(atoms.tolist()),
            parent,
            action,
        )
        self.reward, self.utility, self.lives, self.terminal = reward, 0.0, lives, terminal
        self.children = {}
        self.solved = self.ruled_out = False
        self.looks_like_its_parent = False

    @property
    def depth(self):
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def repeats(self):
        """How many nodes in a row, this one the last, look like their parents."""
        if self.parent is None or not self.looks_like_its_parent:
            return 0
        return self.parent.repeats + 1

    @property
    def path_reward(self):
        return 0.0 if self.parent is None else self.parent.path_reward + self.utility

    @property
    def height(self):
        return max((child.height + 1 for child in self.children.values()), default=0)

    def below(self):
        yield self
        for child in self.children.values():
            yield from child.below()


class ObviousPlanner:
    """What both share: generating, backing up, acting. `search` is theirs."""

    def __init__(self, world, config, rng):
        self.world, self.config, self.rng = world, config, rng
        self.rules = config.rules
        self.root = Node(world.start, world.atoms(world.start, None), lives=world.start.lives)
        self.branch = []

    def tuples(self, node):
        return list(combinations_with_replacement(sorted(node.atoms), self.config.width))

    def keys(self, node):
        """What a node makes true: tuples, each in the table that the reward of the path says."""
        table = None
        if self.rules.novelty_subtables and node.path_reward > 0:
            table = math.floor(math.log2(node.path_reward))
        return [(table, t) for t in self.tuples(node)]

    def written_keys(self, node):
        return self.keys(node) if self.rules.terminals_write or not node.terminal else []

    def decide(self):
        self.new_nodes = 0
        self.lengths = []
        if self.branch:
            return self.branch[0]
        for node in self.root.below():
            node.utility = 0.0 if node is self.root else self.utility(node)
            node.ruled_out = False
        self.search()
        self.branch = self.best_branch()
        return self.branch[0]

    def best_branch(self):
        values = self.action_values(self.root)
        if not values:
            return [int(self.rng.integers(self.world.num_actions))]
        longest = self.rules.zero_ties == "longest" and max(values.values()) == 0
        branch, node = [], self.root
        while (
            len(branch) < self.rules.branch_actions
            and node
            and (values := self.action_values(node))
        ):
            best = [action for action in sorted(values) if values[action] == max(values.values())]
            if longest:
                height = {a: node.children[a].height if a in node.children else 0 for a in best}
                best = [action for action in best if height[action] == max(height.values())]
            action = best[self.rng.integers(len(best))]
            if node is self.root or action in node.children:
                branch.append(action)
            node = node.children.get(action)
        return branch

    def actions(self, node):
        """Those that there are: one that repeats what was seen is continued as it began."""
        return [node.action] if node.repeats else range(self.world.num_actions)

    def spent(self):
        return self.new_nodes >= self.config.budget_nodes

    def generate(self, node, action):
        after = self.world.step(node.state, action)
        atoms = self.world.atoms(after.snapshot, node.state)
        child = Node(after.snapshot, atoms, node, action, after.reward, after.lives, after.terminal)
        child.utility = self.utility(child)
        if self.rules.follow_repeats is not None and not child.terminal:
            child.looks_like_its_parent = child.atoms == node.atoms
        node.children[action] = child
        self.new_nodes += 1
        return child

    def utility(self, node):
        if not self.config.risk_averse:
            return node.reward
        before = self.root if self.rules.losses == "published" else node.parent
        lost_game = self.rules.penalise_game_over and node.terminal and node.lives > 0
        if node.lives < before.lives or lost_game:
            return -10 * self.config.risk_alpha
        return node.reward * self.config.risk_alpha if node.reward < 0 else node.reward

    def action_values(self, node):
        values = {action: self.value(child) for action, child in node.children.items()}
        if values and self.rules.untried_as_zero:
            values = dict.fromkeys(self.actions(node), 0.0) | values
        return values

    def value(self, node):
        if node.ruled_out:
            return -float("inf")
        if not node.children:
            still_multiplied = self.rules.losses == "published" and not self.config.risk_averse
            alpha = self.config.risk_alpha if still_multiplied and node.utility < 0 else 1
            return alpha * node.utility
        return node.utility + self.config.discount * max(self.action_values(node).values())

    def act(self, action):
        self.branch = self.branch[1:]
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
                for action in self.actions(node)
                if action not in node.children or not node.children[action].solved
            ]
            action = self.choose(node, actions)
            if action not in node.children:
                child = self.generate(node, action)
                goes_on = self.goes_on_from_new(child)
                cut_off = self.spent()
            else:
                child = node.children[action]
                goes_on = self.goes_on_from_known(child)
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

    def goes_on_from_new(self, node):
        if node.repeats:
            return node.repeats <= self.rules.follow_repeats
        new = [
            key
            for key in self.written_keys(node)
            if self.least_depth.get(key, float("inf")) > node.depth
        ]
        self.least_depth |= dict.fromkeys(new, node.depth)
        return bool(new)

    def goes_on_from_known(self, node):
        if node.repeats:
            return node.repeats <= self.rules.follow_repeats
        depths = [self.least_depth.get(key, float("inf")) for key in self.keys(node)]
        novel = any(depth >= node.depth for depth in depths)
        if not novel and self.rules.rule_out_known:
            node.ruled_out = True
        return novel

    def solve(self, node):
        node.solved = True
        parent = node.parent
        if parent is not None and all(
            action in parent.children and parent.children[action].solved
            for action in self.actions(parent)
        ):
            self.solve(parent)


class ObviousIW(ObviousPlanner):
    def search(self):
        seen = set()
        queue = []
        level = [self.root]
        while level:
            for node in level:
                seen |= set(self.written_keys(node))
                queue += self.untried(node)
            level = [node.children[a] for node in level for a in sorted(node.children)]
        while queue and not self.spent():
            child = self.generate(*queue.pop(0))
            new = set(self.written_keys(child)) - seen
            seen |= new
            if new:
                queue += self.untried(child)

    def untried(self, node):
        if node.terminal or node.depth >= self.config.max_depth:
            return []
        return [(node, a) for a in range(self.world.num_actions) if a not in node.children]


class ObviousIWByReward(ObviousIW):
    """Level by level, and in a level those first whose path pays most; then first come, first served."""

    def search(self):
        self.seen, self.queue = set(), []
        for node in self.breadth_first():
            if node is self.root and not node.children:
                self.is_novel(node)
            if node is self.root or node.children:
                self.queue += self.untried(node)
            elif not node.terminal:
                self.queue.append((node, None))
        while self.queue and not self.spent():
            first = min(self.queue, key=self.order)  # the first of equal ones
            self.queue.remove(first)
            node, action = first
            there = node if action is None else self.generate(node, action)
            if self.is_novel(there):
                self.queue += self.untried(there)

    def breadth_first(self):
        level = [self.root]
        while level:
            yield from level
            level = [node.children[a] for node in level for a in sorted(node.children)]

    def order(self, entry):
        node, action = entry
        return node.depth + (action is not None), -node.path_reward

    def is_novel(self, node):
        new = set(self.written_keys(node)) - self.seen
        self.seen |= new
        return bool(new)


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
        "ruled_out": bool(tree.ruled_out[node]),
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
        "ruled_out": node.ruled_out,
        "children": {a: described_obvious(child) for a, child in node.children.items()},
    }
