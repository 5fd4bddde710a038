"""A decision of a recorded run, planned once more so that its lookahead tree can be seen."""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import configs, durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FEATURE_SETS, vae
from vaeiw_jax.planning import SEARCHES, Decision
from vaeiw_jax.planning.novelty import NO_KEY
from vaeiw_jax.planning.tree import NO_NODE, ROOT, Tree
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.runs import Run

EARLY = 50
"""Unless one is named, the decision is chosen among this many at the start, which are soon reached again."""


@dataclass(frozen=True)
class Replanned:
    """A decision and the tree it was made on, still whole."""

    run: Run
    number: int  # of the decision, from 0
    config: EpisodeConfig
    decision: Decision
    tree: Tree
    action_names: list[str]
    score: int  # before the decision
    recorded_action: int
    same_tree: bool  # as in the recorded run, or planned anew from its state
    why_fresh: str  # empty if it is the same

    @property
    def kept(self) -> np.ndarray:
        """bool[size]: nodes of the decision before, the root included."""
        return np.arange(self.tree.size) <= self.decision.statistics.kept_nodes

    @property
    def pruned(self) -> np.ndarray:
        """bool[size]: nodes that the search did not go on from because nothing was new there."""
        tree = self.tree
        solved, terminal = tree.solved[: tree.size], tree.terminal[: tree.size]
        if not self.config.planner.search.labels_solved:
            pruned = ~self.kept & (tree.witness[: tree.size] == NO_KEY) & ~terminal
        else:  # a label that was not passed up from the children leaves actions open
            pruned = solved & ~terminal & tree.open[: tree.size].any(axis=1)
        return pruned

    @property
    def lost_life(self) -> np.ndarray:
        """bool[size]: nodes with fewer lives than their parent, and those where the game is over."""
        tree = self.tree
        fewer = tree.lives[: tree.size] < tree.lives[np.maximum(tree.parent[: tree.size], ROOT)]
        return fewer | tree.terminal[: tree.size]

    def readable_action(self, action: int) -> str:
        """An action's name as one says it: UPRIGHTFIRE is up-right-fire."""
        name = self.action_names[action]
        return "-".join(re.findall("NOOP|UP|DOWN|LEFT|RIGHT|FIRE", name) or [name]).lower()

    def best_path(self) -> list[int]:
        """The nodes below the root that the chosen action's value comes from."""
        tree, value = self.tree, self.decision.returns
        path: list[int] = []
        node = int(tree.children[ROOT, self.decision.action])
        while node != NO_NODE:
            path.append(node)
            children = tree.children[node][tree.children[node] != NO_NODE]
            node = int(children[value[children].argmax()]) if len(children) else NO_NODE
        return path


def replan(
    run: Run,
    model: Path,
    number: int | None = None,
    fresh: bool = False,
    on_decision: Callable[[int, int], None] = lambda done, total: None,
) -> Replanned:
    """Comes to a decision of a recorded run and plans it.

    With a node budget the run is played again from its start, which ends in the same tree; with a budget in seconds,
    or if `fresh` is asked for, the recorded actions lead to the state and the tree is a new one. Which it is, is
    checked against the record.

    Args:
      run: the recorded run.
      model: where the model is, if the run was played with a VAE: records name it by digest.
      number: of the decision, from 0; if None, the one of the first that earned most.
      fresh: do not play the run again.
      on_decision: called with the number of decisions that are done, and of how many.
    """
    recorded = recorded_decisions(run)
    config = _with_model(played_config(run), model, run)
    if config.policy.policy is not None:
        raise UserError(
            f"{run.record} was played with a policy from another run, which it names by digest alone: its decisions "
            "cannot be planned again"
        )
    number = _chosen(number, recorded, run)
    why_fresh = ""
    if fresh:
        why_fresh = "as asked for"
    elif config.planner.budget_seconds is not None:
        why_fresh = "its budget is in seconds, so only the clock knows how far it came"
    else:
        episode = _before(config, run.seed, recorded, number, on_decision)
        if episode is None:
            why_fresh = "played again here, the run takes another course"
    if why_fresh:
        episode = _before(config, run.seed, recorded, number, on_decision, decide=False)
    assert episode is not None
    decision = episode.planner.decide()
    same = not why_fresh and _matches(decision, recorded, number)
    if not same and not why_fresh:
        why_fresh = "played again here, this decision takes another course"
    return Replanned(
        run=run,
        number=number,
        config=config,
        decision=decision,
        tree=episode.planner.tree,
        action_names=episode.simulator.action_names,
        score=int(recorded["rewards"][:number].sum()),
        recorded_action=int(recorded["actions"][number]),
        same_tree=same,
        why_fresh=why_fresh,
    )


def recorded_decisions(run: Run) -> dict[str, np.ndarray]:
    """The record of a run's decisions, arrays [D] by name."""
    decisions = durable.read_arrays(run.decisions)
    # Runs that are older than widening did not widen.
    decisions.setdefault("widened", np.zeros(len(decisions["actions"]), int))
    return decisions


def played_config(run: Run) -> EpisodeConfig:
    """How a recorded run was played; a VAE is named by its digest."""
    record = durable.read_json(run.record)
    settings = record.get("config", {})
    config = configs.from_settings(EpisodeConfig, settings, run.record, partial=True)
    _require_registered(config, run)
    return config


def _require_registered(config: EpisodeConfig, run: Run) -> None:
    """Refuses what the record names by `module:object`: a file must not decide which code is imported."""
    for kind, name, registry in (
        ("search", config.planner.planner, SEARCHES),
        ("feature set", config.features.kind, FEATURE_SETS),
    ):
        if name not in registry:
            raise UserError(
                f"{run.record} was played with the {kind} {name!r}, which is not registered here; register it in the "
                "process that inspects the run"
            )


def _with_model(config: EpisodeConfig, model: Path, run: Run) -> EpisodeConfig:
    """The config with the model's place instead of its digest."""
    if config.features.kind != "vae":
        return config
    given = vae.identity(f"vae:{model}", config.atari.game)
    if given != config.features.features:
        raise UserError(
            f"{run.record} was played with the VAE {config.features.features[4:16]}..., and --checkpoint is "
            f"{given[4:16]}...; give the one it was played with"
        )
    features = dataclasses.replace(config.features, features=f"vae:{model}")
    return dataclasses.replace(config, features=features)


def _chosen(number: int | None, recorded: dict[str, np.ndarray], run: Run) -> int:
    actions = len(recorded["actions"])
    if number is None:
        return int(recorded["rewards"][:EARLY].argmax())
    if number >= actions:
        raise UserError(
            f"{run.record} has {actions:,} decisions, so --decision is from 0 to {actions - 1}, not {number}"
        )
    return number


def _before(
    config: EpisodeConfig,
    seed: int,
    recorded: dict[str, np.ndarray],
    number: int,
    on_decision: Callable[[int, int], None],
    decide: bool = True,
) -> Episode | None:
    """The episode before the decision; None if it took another course than the recorded one.

    Unless it is to `decide`, the recorded actions alone lead there, and nothing is kept in its tree.
    """
    episode = Episode(config, seed)
    for done, action in enumerate(recorded["actions"][:number].tolist()):
        on_decision(done, number)
        if not decide:
            episode.planner.act(action)
        elif not _matches(episode.advance(), recorded, done):
            return None
    return episode


def _matches(decision: Decision, recorded: dict[str, np.ndarray], number: int) -> bool:
    """Whether a decision is the recorded one in all that does not depend on the machine."""
    mine: dict[str, Any] = {
        name: value
        for name, value in dataclasses.asdict(decision.statistics).items()
        if not name.endswith("seconds")
    }
    mine["actions"] = decision.action
    return all(recorded[name][number] == value for name, value in mine.items())
