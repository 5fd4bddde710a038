"""What an experiment says as a whole: aggregates with intervals, methods against methods, nodes a decision."""

import itertools
import math
from collections.abc import Mapping

from vaeiw_jax.experiments import paper
from vaeiw_jax.experiments.evaluation_results import ExperimentResults, Played
from vaeiw_jax.planning.search import SOLVED
from vaeiw_jax.reports import score_statistics as statistics
from vaeiw_jax.reports import score_tables
from vaeiw_jax.reports.score_statistics import Interval, Paired, Share
from vaeiw_jax.reports.score_tables import PRINTED_TITLES
from vaeiw_jax.reports.tables import Cell, Column, Table, Value


def common_games(results: ExperimentResults) -> list[str]:
    """Games with a human score that all methods have runs of."""
    methods = results.experiment.methods
    games = score_tables.with_human(results.experiment.games)
    return [game for game in games if all(results.runs(m.name, game) for m in methods)]


def normalised_runs(results: ExperimentResults, method: str) -> list[list[float]]:
    """Human-normalised scores of the runs of each common game: the first, as many as every game has.

    So a game with more runs than others weighs no more than they do.
    """
    scores = {game: results.scores(method, game) for game in common_games(results)}
    fewest = min(map(len, scores.values()), default=0)
    return [
        [normalised({game: score})[game] for score in runs[:fewest]]
        for game, runs in scores.items()
    ]


def normalised(scores: Mapping[str, float]) -> dict[str, float]:
    """Human-normalised, of the games that have a human score."""
    random, human = paper.random_scores(), paper.human_scores()
    return {
        game: statistics.normalised(score, random[game], human[game])
        for game, score in scores.items()
        if game in human
    }


def interquartile_mean(results: ExperimentResults, method: str) -> Interval:
    return statistics.bootstrap(normalised_runs(results, method), statistics.interquartile_mean)


def aggregates_table(results: ExperimentResults) -> Table:
    """Each method over all common games."""
    rows: list[list[Value | Cell]] = []
    for method in results.experiment.methods:
        if groups := normalised_runs(results, method.name):
            mean = statistics.bootstrap(groups, statistics.overall_mean)
            middle = interquartile_mean(results, method.name)
            counts = len(groups), sum(map(len, groups))
            rows.append([method.title, *counts, _percent(middle), _percent(mean)])
    note = "human-normalised, 95% interval"
    columns = [Column("method", text=True), Column("games"), Column("runs")]
    columns += [Column("interquartile mean", note), Column("mean", note)]
    return Table(
        columns,
        rows,
        "Over the games that all methods have and that have a human score",
        notes=_left_out(results),
    )


def _left_out(results: ExperimentResults) -> list[str]:
    """That runs were left out, if any were."""
    games = common_games(results)
    for method in results.experiment.methods:
        used = sum(map(len, normalised_runs(results, method.name)))
        if used < sum(len(results.runs(method.name, game)) for game in games):
            return [
                "Of every game as many runs of a method are taken as there are of the game with the fewest, so that "
                "all games count alike."
            ]
    return []


def comparisons_table(results: ExperimentResults, compare: bool) -> Table:
    """Every method against those before it and, with `compare`, against what the paper prints."""
    experiment = results.experiment
    means = {method.name: results.means(method.name) for method in experiment.methods}
    rows = []
    for other, method in itertools.combinations(experiment.methods, 2):
        share = statistics.share_won(means[method.name], means[other.name])
        paired = statistics.paired(_by_seed(results, method.name), _by_seed(results, other.name))
        better = _improvement(results, method.name, other.name)
        rows.append((method.title, other.title, share, better, paired))
    if compare and experiment.paper_table:
        printed = paper.table(experiment.paper_table).scores
        for method in experiment.methods:
            if method.name not in experiment.paper_columns:
                continue
            rivals = {experiment.paper_columns[method.name]: f"{method.title} in the paper"}
            rivals |= {key: PRINTED_TITLES[key] for key in experiment.printed}
            for key, title in rivals.items():
                share = statistics.share_won(means[method.name], printed[key])
                rows.append((method.title, title, share, None, None))
    return Table(
        [
            *(Column("method", text=True), Column("against", text=True)),
            Column("games won", "share, ties half; 95% interval"),
            Column("won / tied / lost", "games"),
            Column("probability of improvement", "of a run; 95% interval"),
            Column("won / tied / lost", "runs of equal seed"),
            Column("p", "Wilcoxon, over games"),
        ],
        [
            (
                *(method, other, _percent(share.interval, 100)),
                *(_outcomes(share), _percent(better, 100) if better else Cell("")),
                *(_outcomes(paired), _p_cell(paired)),
            )
            for method, other, share, better, paired in rows
            if share is not None
        ],
        "Method against method",
    )


def _improvement(results: ExperimentResults, method: str, other: str) -> Interval | None:
    games = results.experiment.games
    both = [(results.scores(method, game), results.scores(other, game)) for game in games]
    both = [(ours, theirs) for ours, theirs in both if ours and theirs]
    if not both:
        return None
    return statistics.probability_of_improvement(
        [ours for ours, _ in both], [theirs for _, theirs in both]
    )


def costs_table(results: ExperimentResults) -> Table:
    """What each method took, nodes and time, and how far it saw."""
    rows: list[list[Value | Cell]] = []
    for method in results.experiment.methods:
        found = [
            run for game in results.experiment.games for run in results.runs(method.name, game)
        ]
        found = [run for run in found if run.host.get("seconds")]  # those whose host file is there
        seconds = sum(float(run.host["seconds"]) for run in found)
        decisions = sum(run.record["actions"] for run in found)
        nodes = sum(run.record["actions"] * _statistic(run, "mean_new_nodes") for run in found)
        if not nodes:
            continue
        depth = sum(run.record["actions"] * _statistic(run, "mean_depth") for run in found)
        solved = sum(run.record["decisions"].get("ended", {}).get(SOLVED, 0) for run in found)
        rows.append(
            [
                *(method.title, len(found), decisions, nodes / 1e6, seconds / 3600),
                *(nodes / seconds, depth / decisions, 100 * solved / decisions),
            ]
        )
    columns = [Column("method", text=True), Column("runs"), Column("decisions")]
    columns += [Column("million nodes", format=",.1f"), Column("hours of planning", format=",.1f")]
    columns += [Column("nodes a second", format=",.0f"), Column("depth", format=".1f")]
    columns += [Column("solved before the budget was spent", "% of decisions", ".1f")]
    return Table(columns, rows, "What it took, and how far it saw")


def _statistic(run: Played, name: str) -> float:
    return float(run.record["decisions"].get(name, 0.0))


def _by_seed(results: ExperimentResults, method: str) -> dict[tuple[str, int], float]:
    games = results.experiment.games
    return {(g, run.seed): run.score for g in games for run in results.runs(method, g)}


def _percent(interval: Interval, factor: float = 1.0) -> Cell:
    value = f"{round(factor * interval.value):,}%"
    if interval.is_known:
        value += f" ({round(factor * interval.low):,} to {round(factor * interval.high):,})"
    return Cell(value, interval.value)


def _outcomes(counted: Share | Paired | None) -> Cell:
    if counted is None:
        return Cell("")
    return Cell(f"{counted.won} / {counted.tied} / {counted.lost}", counted.won)


def _p_cell(paired: Paired | None) -> Cell:
    if paired is None:
        return Cell("")
    value = None if math.isnan(paired.p_value) else paired.p_value
    return Cell(p_value(paired.p_value).removeprefix("= "), value)


def p_value(value: float) -> str:
    """A p-value, with the sign before it."""
    if math.isnan(value):
        return "too few games"
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def nodes_table(results: ExperimentResults) -> Table:
    """New nodes of a decision, the mean over decisions and runs, by game and method."""
    methods = results.experiment.methods
    rows = [
        [game, *(results.statistic(m.name, game, "mean_new_nodes") or None for m in methods)]
        for game in results.experiment.games
    ]
    columns = [Column("game", text=True), *(Column(m.title, format=",.1f") for m in methods)]
    return Table(columns, [row for row in rows if any(row[1:])], "New nodes a decision")
