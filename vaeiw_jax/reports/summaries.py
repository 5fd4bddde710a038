"""What an experiment says as a whole: aggregates with intervals, methods against methods, figures."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from vaeiw_jax.experiments import paper
from vaeiw_jax.experiments.catalogue import Experiment
from vaeiw_jax.experiments.evaluation_results import Results
from vaeiw_jax.reports import figures, score_statistics
from vaeiw_jax.reports.score_statistics import Interval, Paired, Share
from vaeiw_jax.reports.score_tables import PRINTED_TITLES

MOST_BARS = 6
"""More methods than these would not be told apart in a chart of games."""


@dataclass(frozen=True)
class Aggregate:
    """A method over all games of an experiment that have a human score."""

    title: str
    games: int
    runs: int
    interquartile_mean: Interval
    mean: Interval


@dataclass(frozen=True)
class Duel:
    """A method against another, ours or the paper's."""

    title: str
    against: str
    share: Share
    paired: Paired | None


@dataclass(frozen=True)
class Drawing:
    """A figure with its name and what it shows."""

    name: str
    caption: str
    figure: Figure


def aggregates(results: Results, experiment: Experiment) -> list[Aggregate]:
    """Human-normalised, over the games that all methods have runs of."""
    games = _common_games(results, experiment)
    found = []
    for method in experiment.methods:
        groups = [_normalised_runs(results, experiment, method.name, game) for game in games]
        if groups:
            found.append(
                Aggregate(
                    method.title,
                    len(groups),
                    sum(map(len, groups)),
                    score_statistics.bootstrap(groups, score_statistics.interquartile_mean),
                    score_statistics.bootstrap(groups, score_statistics.overall_mean),
                )
            )
    return found


def _common_games(results: Results, experiment: Experiment) -> list[str]:
    return [
        game
        for game in experiment.games
        if game in paper.human_scores()
        and all(results.scores(method.name, game, experiment) for method in experiment.methods)
    ]


def _normalised_runs(
    results: Results, experiment: Experiment, method: str, game: str
) -> list[float]:
    ends = paper.random_scores()[game], paper.human_scores()[game]
    return [score_statistics.normalised(s, *ends) for s in results.scores(method, game, experiment)]


def duels(results: Results, experiment: Experiment, compare: bool) -> list[Duel]:
    """Every method against those before it, and against what the paper prints."""
    found = []
    for other, method in itertools.combinations(experiment.methods, 2):
        share = score_statistics.share_won(
            results.means(method.name, experiment), results.means(other.name, experiment)
        )
        if share is not None:
            paired = score_statistics.paired(
                _by_seed(results, experiment, method.name),
                _by_seed(results, experiment, other.name),
            )
            found.append(Duel(method.title, other.title, share, paired))
    if compare and experiment.paper_table:
        printed = paper.table(experiment.paper_table).scores
        for method in experiment.methods:
            means = results.means(method.name, experiment)
            rivals = {experiment.paper_columns[method.name]: f"{method.title} in the paper"}
            rivals |= {key: PRINTED_TITLES[key] for key in experiment.printed}
            for key, title in rivals.items():
                share = score_statistics.share_won(means, printed[key])
                if share is not None:
                    found.append(Duel(method.title, title, share, None))
    return found


def _by_seed(results: Results, experiment: Experiment, method: str) -> dict[tuple[str, int], float]:
    return {
        (game, run.seed): run.score
        for game in experiment.games
        for run in results.runs(method, game, experiment)
    }


def nodes_a_decision(results: Results, experiment: Experiment) -> dict[str, dict[str, float]]:
    """New nodes of a decision, the mean over decisions and runs, by method's title and game."""
    return {
        method.title: {
            game: nodes
            for game in experiment.games
            if (nodes := results.statistic(method.name, game, "mean_new_nodes", experiment))
        }
        for method in experiment.methods
    }


def drawings(
    results: Results, experiment: Experiment, totals: Sequence[Aggregate], compare: bool
) -> list[Drawing]:
    """The figures of an experiment, as far as there is something to draw."""
    if not any(results.means(method.name, experiment) for method in experiment.methods):
        return []
    candidates = (
        _figure_1(results, experiment, compare),
        _interquartile_means(experiment, totals),
        _per_game(results, experiment, "mean_expanded_nodes", "expanded nodes a decision"),
        _per_game(results, experiment, "mean_max_rollout_length", "longest rollout of a decision"),
        _correlation(results, experiment),
        _curve(results, experiment),
    )
    return [drawing for drawing in candidates if drawing is not None]


def _figure_1(results: Results, experiment: Experiment, compare: bool) -> Drawing | None:
    shown = [method for method in experiment.methods if method.name != "iw"]
    if len(shown) > MOST_BARS:
        return None
    bars = {method.title: _normalised(results.means(method.name, experiment)) for method in shown}
    main = next(reversed(bars.values()), {})
    if compare and experiment.paper_table:
        scores = paper.table(experiment.paper_table).scores
        last = experiment.methods[-1]
        games = main.keys()
        printed = _normalised(scores[experiment.paper_columns[last.name]])
        bars[f"{last.title} in the paper"] = {g: v for g, v in printed.items() if g in games}
    if not main:
        return None
    caption = (
        f"Scores of each game on the way from random play (0%) to a professional human player (100%), as in the "
        f"paper's Figure 1. The percentages are those of {experiment.methods[-1].title}."
    )
    figure = figures.normalised_bars(bars, main, highlighted=len(shown) - 1)
    return Drawing(f"{experiment.name}-normalised", caption, figure)


def _normalised(means: Mapping[str, float]) -> dict[str, float]:
    random, human = paper.random_scores(), paper.human_scores()
    return {
        game: score_statistics.normalised(score, random[game], human[game])
        for game, score in means.items()
        if game in human
    }


def _interquartile_means(experiment: Experiment, totals: Sequence[Aggregate]) -> Drawing | None:
    found = {entry.title: entry.interquartile_mean for entry in totals}
    if not found:
        return None
    caption = (
        "Interquartile mean of human-normalised scores over all games and runs, with 95% intervals from a bootstrap "
        "that draws the runs of each game again."
    )
    figure = figures.intervals(found, "interquartile mean, percent of human", reference=100)
    return Drawing(f"{experiment.name}-interquartile-mean", caption, figure)


def _per_game(results: Results, experiment: Experiment, name: str, label: str) -> Drawing | None:
    bars = {
        method.title: {
            game: value
            for game in experiment.games
            if (value := results.statistic(method.name, game, name, experiment)) is not None
        }
        for method in experiment.methods
    }
    bars = {title: by_game for title, by_game in bars.items() if any(by_game.values())}
    if not 0 < len(bars) <= MOST_BARS:
        return None
    file = f"{experiment.name}-{label.replace(' ', '-')}"
    which = "Figure 2" if name == "mean_expanded_nodes" else "Figure 3"
    caption = f"Mean over decisions: {label} (the paper's {which})."
    return Drawing(file, caption, figures.game_bars(bars, label, logarithmic=True))


def _correlation(results: Results, experiment: Experiment) -> Drawing | None:
    """Of true features and expanded nodes; the paper finds -0.51 with p < 0.001 for VAE-IW."""
    method = next((m for m in reversed(experiment.methods) if m.vae), None)
    if method is None:
        return None
    points = {}
    for game in experiment.games:
        atoms = results.statistic(method.name, game, "mean_atoms_per_node", experiment)
        nodes = results.statistic(method.name, game, "mean_expanded_nodes", experiment)
        if atoms is not None and nodes is not None:
            points[game] = (atoms, nodes)
    xs, ys = [x for x, _ in points.values()], [y for _, y in points.values()]
    found = score_statistics.rank_correlation(xs, ys)
    if found is None:
        return None
    said = f"Spearman's rank correlation {found[0]:.2f}, p {say_p(found[1])}, {len(points)} games"
    caption = (
        f"True features of a node and expanded nodes of a decision, {method.title}. {said} "
        "(the paper: -0.51, p < 0.001)."
    )
    figure = figures.correlation(
        points, ("true features of a node", "expanded nodes a decision"), said
    )
    return Drawing(f"{experiment.name}-correlation", caption, figure)


def _curve(results: Results, experiment: Experiment) -> Drawing | None:
    lines: dict[str, list[tuple[float, Interval]]] = {}
    games = _common_games(results, experiment)
    for method in experiment.methods:
        nodes = dict(method.settings).get("budget_nodes")
        if nodes is not None and games:
            groups = [_normalised_runs(results, experiment, method.name, game) for game in games]
            value = score_statistics.bootstrap(groups, score_statistics.interquartile_mean)
            lines.setdefault(method.title.rpartition(", ")[0] or method.title, []).append(
                (nodes, value)
            )
    if max(map(len, lines.values()), default=0) < 2:
        return None
    caption = f"Interquartile mean of human-normalised scores against the budget, over {len(games)} games."
    labels = ("nodes a decision", "percent of human")
    return Drawing(f"{experiment.name}-curve", caption, figures.curves(lines, labels))


def say_p(value: float) -> str:
    """A p-value, with the sign before it."""
    if math.isnan(value):
        return "too few games"
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
