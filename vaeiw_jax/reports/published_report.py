"""The results that come with the project, told: a page beside them, and the section of the README about them."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import paper
from vaeiw_jax.experiments.catalogue import Experiment
from vaeiw_jax.experiments.evaluation_results import EvaluationResults, ExperimentResults
from vaeiw_jax.reports import evaluation_charts, evaluation_summary, score_statistics, score_tables
from vaeiw_jax.reports.pages import plural, render
from vaeiw_jax.reports.score_statistics import Share
from vaeiw_jax.reports.tables import Column, Table

PAGE, PLOT, OVERVIEW = "README.md", "scores.png", "overview.png"
BEGIN, END = "<!-- results: made by launch.report --results -->", "<!-- end of results -->"
LEARNED, HAND_MADE = "vae_iw_universal", "rollout_iw_bprost"


def write(results: EvaluationResults, directory: Path) -> Path:
    """Writes the page and its plots into the folder of the results; returns the page."""
    table = _table(results)
    plots = {
        PLOT: evaluation_charts.normalised_scores(table, compare=False),
        OVERVIEW: evaluation_charts.overview(table),
    }
    for name, chart in plots.items():
        if chart:
            durable.write_bytes(directory / name, chart.png())
    scores = score_tables.shown(score_tables.of_experiment(table, compare=True))
    page = directory / PAGE
    values = _values(table) | {"scores": scores}
    durable.write_bytes(page, render("published.md", **values).encode())
    return page


def section(results: EvaluationResults) -> str:
    """What the README says of the results, between its two marks."""
    return render("published_section.md", begin=BEGIN, end=END, **_values(_table(results)))


def require_place(readme: Path) -> None:
    """Refuses a README without the two marks that a section stands between."""
    _, found, rest = readme.read_text().partition(BEGIN)
    if not found or END not in rest:
        raise UserError(f"{readme} has no place for results: {BEGIN} and, below it, {END}")


def insert(readme: Path, text: str) -> None:
    """Puts the section in place of the one that a README has."""
    require_place(readme)
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    durable.write_bytes(readme, (before + text.strip() + after).encode())


def _table(results: EvaluationResults) -> ExperimentResults:
    """The methods that have runs, so that a table that is being filled can be read."""
    (experiment,) = results.experiments
    return results.of(experiment).begun()


def _summarised(results: ExperimentResults) -> ExperimentResults:
    """Without the methods that have few games as yet: they would leave few to compare all in."""
    games = {each.name: len(results.means(each.name)) for each in results.experiment.methods}
    enough = max(games.values(), default=0) / 2
    methods = tuple(each for each in results.experiment.methods if games[each.name] > enough)
    experiment = dataclasses.replace(results.experiment, methods=methods)
    return dataclasses.replace(results, experiment=experiment)


def _values(results: ExperimentResults) -> dict[str, Any]:
    """For both templates."""
    experiment, status = results.experiment, results.evaluation.status
    played, wanted = len(status.done), len(status.jobs)
    means = {method.name: results.means(method.name) for method in experiment.methods}
    share = score_statistics.share_won(means.get(LEARNED, {}), means.get(HAND_MADE, {}))
    beside_paper = {name: _against_paper(results, name) for name in (LEARNED, HAND_MADE)}
    summarised = _summarised(results)
    charted = evaluation_charts.overview(results) is not None
    methods = results.evaluation.methods.values()
    with_human = score_tables.with_human(experiment.games)
    return {
        "experiment": experiment,
        "charted": charted,
        "complete": played == wanted,
        "so_far": _so_far(results),
        "all_games_played": all(len(scores) == len(experiment.games) for scores in means.values()),
        "too_few": [
            f"*{method.title}*"
            for method in experiment.methods
            if method not in summarised.experiment.methods
        ],
        "missing": [method.title for method in methods if method.name not in means],
        "played": played,
        "wanted": wanted,
        "without_human": [game for game in experiment.games if game not in with_human],
        "games": len({run.game for run in results.evaluation.played}),
        "summary": _summary(summarised) if charted else None,
        "comparisons": evaluation_summary.comparisons_table(results, compare=True),
        "costs": evaluation_summary.costs_table(results),
        "share": share,
        "share_text": _share_text(share) if share else "",
        "in_the_paper": _in_the_paper(experiment),
        "learned_beside_paper": beside_paper[LEARNED],
        "hand_made_beside_paper": beside_paper[HAND_MADE],
    }


def _so_far(results: ExperimentResults) -> str:
    """What each method has runs of, in a sentence without its full stop; methods that have the same, together."""
    experiment = results.experiment
    methods: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for method in experiment.methods:
        runs = {game: len(results.runs(method.name, game)) for game in experiment.games}
        games = tuple(game for game in experiment.games if runs[game])
        numbers = sorted({runs[game] for game in games})
        least_to_most = f"{numbers[0]} to " if len(numbers) > 1 else ""
        each = f"{least_to_most}{plural(numbers[-1], 'run')}"
        methods.setdefault((games, each), []).append(f"*{method.title}*")
    return "; ".join(
        f"{_listed(titles)} {'has' if len(titles) == 1 else 'have'} {each} of each of "
        f"{_games_in_words(games, experiment.games)}"
        for (games, each), titles in methods.items()
    )


def _games_in_words(games: tuple[str, ...], all_games: tuple[str, ...]) -> str:
    """How many they are and, if it is some in a row, from where to where."""
    number = plural(len(games), "game")
    start = all_games.index(games[0])
    if len(games) == len(all_games) or games != all_games[start : start + len(games)]:
        return number
    return f"{number} ({games[0]}{f' to {games[-1]}' if len(games) > 1 else ''})"


def _listed(words: Sequence[str]) -> str:
    """As in a sentence: "a", "a and b", "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _in_the_paper(experiment: Experiment) -> dict[str, int]:
    """By the scores that the paper prints: where VAE-IW is ahead of B-PROST, and where of all other methods."""
    printed = paper.table(experiment.paper_table or "").scores
    learned, hand_made = (printed[experiment.paper_columns[name]] for name in (LEARNED, HAND_MADE))
    share = score_statistics.share_won(learned, hand_made)
    assert share is not None
    methods = [scores for column, scores in printed.items() if column != "human"]
    best = [game for game in learned if learned[game] == max(each[game] for each in methods)]
    return {"won": share.won, "games": share.games, "best": len(best), "methods": len(methods)}


def _against_paper(results: ExperimentResults, method: str) -> str:
    """In how many games our mean is above the paper's, as "2 of 4"; empty where there are no runs."""
    experiment = results.experiment
    printed = paper.table(experiment.paper_table or "").scores[experiment.paper_columns[method]]
    share = score_statistics.share_won(results.means(method), printed)
    return f"{share.won} of {share.games}" if share else ""


def _share_text(share: Share) -> str:
    low, high = (round(100 * end) for end in (share.interval.low, share.interval.high))
    return (
        f"{share.won} of {share.games} games won, {share.tied} tied, {share.lost} lost: "
        f"{round(100 * share.interval.value)}%, with 95% confidence {low}% to {high}%"
    )


def _summary(results: ExperimentResults) -> Table | None:
    """A row for each method: the games it is best in, and the mean of the middle half; if any game has them all."""
    scores = score_tables.of_experiment(results, compare=False)
    compared = scores.compared_games[score_tables.OURS]
    if not compared:
        return None
    human = plural(len(score_tables.with_human(compared)), "game")
    best = {each.key: each.counts.get(score_tables.BEST) for each in scores.methods}
    above = {each.key: each.counts.get(score_tables.ABOVE_HUMAN) for each in scores.methods}
    aggregates = {row[0]: row[3] for row in evaluation_summary.aggregates_table(results).rows}
    columns = [
        Column("method", text=True),
        Column("best in", f"of {plural(len(compared), 'game')}"),
        Column("above human", f"of {human} with a human score"),
        Column("interquartile mean", f"human-normalised, of {human}, 95% interval"),
    ]
    rows = [
        [each.title, best.get(each.name), above.get(each.name), aggregates.get(each.title)]
        for each in results.experiment.methods
    ]
    return Table(columns, rows)
