"""Score tables: our means and standard errors beside the paper's numbers, with the counts below."""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field

from vaeiw_jax.experiments import paper
from vaeiw_jax.experiments.catalogue import Experiment
from vaeiw_jax.experiments.evaluation_results import ExperimentResults
from vaeiw_jax.reports import score_statistics
from vaeiw_jax.reports.pages import plural
from vaeiw_jax.reports.tables import Cell, Column, Table

PRINTED_TITLES = {"human": "human", "rainbow": "Rainbow", "pi_iw": "π-IW"}
OURS, PAPER, PRINTED = "ours", "paper", "printed"
BEST, ABOVE_HUMAN, ABOVE_75_PERCENT = "best in game", "> human", "> 75% human"


@dataclass(frozen=True)
class MeanScore:
    """A method's mean score in a game."""

    mean: float
    error: float | None = None
    runs: int | None = None
    """None where the paper does not give it for each game."""
    capped: bool = False
    """The action limit was reached at least once."""
    short: bool = False
    """Its VAE was trained for much less than the paper's."""
    best: bool = False


@dataclass
class MethodScores:
    """The scores of one method by game, ours or printed in the paper."""

    key: str
    title: str
    kind: str
    by_game: dict[str, MeanScore] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def usual_runs(self) -> int | None:
        """Of each game, but for those that have fewer; None where the paper does not say."""
        return max((score.runs for score in self.by_game.values() if score.runs), default=None)

    @property
    def source(self) -> str:
        if self.kind != OURS or self.usual_runs is None:
            return {PAPER: "in the paper"}.get(self.kind, self.kind)
        return f"ours, {plural(self.usual_runs, 'run')}"

    def text(self, game: str) -> str:
        """Mean, star, dagger, standard error, and the runs if they are fewer than usual."""
        score = self.by_game.get(game)
        if score is None:
            return ""
        error = few = ""
        if score.error is not None:
            error = f" ± {_points(round(score.error, 0 if score.error >= 100 else 1))}"
        if score.runs and score.runs != self.usual_runs:
            few = f" ({plural(score.runs, 'run')})"
        return f"{_points(score.mean)}{'*' * score.capped}{'†' * score.short}{error}{few}"

    def cell(self, game: str) -> Cell:
        score = self.by_game.get(game)
        return Cell(self.text(game), score.mean, score.best) if score else Cell("")


@dataclass
class ScoreTable:
    """The methods of an experiment; `count` has marked the best and counted."""

    games: tuple[str, ...]
    methods: list[MethodScores]
    notes: list[str] = field(default_factory=list)
    compared_games: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The games that the counts of our methods, and of the paper's, are of."""


def of_experiment(results: ExperimentResults, compare: bool) -> ScoreTable:
    """Our scores of an experiment; with `compare`, next to those the paper prints for the same."""
    experiment = results.experiment
    printed = experiment.printed if experiment.paper_table else ()
    methods = [_printed(experiment, key, PRINTED_TITLES[key], PRINTED) for key in printed]
    for method in experiment.methods:
        scores = {game: _ours(results, method.name, game) for game in experiment.games}
        known = {game: score for game, score in scores.items() if score is not None}
        methods.append(MethodScores(method.name, method.title, OURS, known))
        if compare and method.name in experiment.paper_columns:
            key = experiment.paper_columns[method.name]
            methods.append(_printed(experiment, key, method.title, PAPER))
    table = ScoreTable(experiment.games, methods, _misprints(experiment, methods))
    count(table)
    return table


def _misprints(experiment: Experiment, methods: list[MethodScores]) -> list[str]:
    """Where the paper's table disagrees with itself, if all its columns are shown: it may be about any of them."""
    name = experiment.paper_table or ""
    shown = {each.key for each in methods if each.kind != OURS}
    if name not in paper.MISPRINTS or not shown.issuperset(paper.table(name).scores):
        return []
    return [paper.MISPRINTS[name]]


def _ours(results: ExperimentResults, method: str, game: str) -> MeanScore | None:
    runs = results.runs(method, game)
    if not runs:
        return None
    scores = [run.score for run in runs]
    vaes = [vae for run in runs if (vae := results.evaluation.vae_of(run)) is not None]
    return MeanScore(
        score_statistics.mean(scores),
        score_statistics.standard_error(scores),
        len(runs),
        capped=any(run.capped for run in runs),
        short=any(vae.short for vae in vaes),
    )


def _printed(experiment: Experiment, key: str, title: str, kind: str) -> MethodScores:
    table = paper.table(experiment.paper_table or "")
    capped = table.capped.get(key, frozenset()) if kind == PAPER else frozenset()
    scores = {
        game: MeanScore(score, capped=game in capped)
        for game, score in table.scores[key].items()
        if game in experiment.games
    }
    return MethodScores(key, title, kind, scores)


def count(table: ScoreTable) -> None:
    """Marks the best of each game and counts, among the paper's methods and among ours, each beside the printed ones.

    Ties are marked and counted for all who tie. The printed ones are judged with both, and have the marks and counts
    of the first that there are.
    """
    rivals = _rivals(table)
    human = paper.human_scores()
    for kind in (PAPER, OURS):
        methods = _of_kind(table, kind)
        group = [*methods, *rivals] if methods else []
        games = [g for g in table.games if group and all(g in each.by_game for each in group)]
        table.compared_games[kind] = tuple(games)
        top = {game: max(each.by_game[game].mean for each in group) for game in games}
        judged = methods if kind == OURS and _of_kind(table, PAPER) else group
        for each in judged if games else ():
            for game in games:
                score = each.by_game[game]
                each.by_game[game] = dataclasses.replace(score, best=score.mean == top[game])
            each.counts[BEST] = sum(each.by_game[game].best for game in games)
        for each in methods if games else ():
            means = {game: each.by_game[game].mean for game in games}
            each.counts[ABOVE_HUMAN] = score_statistics.count_above(means, human)
            each.counts[ABOVE_75_PERCENT] = score_statistics.count_above(means, human, 0.75)


def _of_kind(table: ScoreTable, kind: str) -> list[MethodScores]:
    return [each for each in table.methods if each.kind == kind]


def _rivals(table: ScoreTable) -> list[MethodScores]:
    """Other people's methods, whose scores the paper prints beside its own."""
    return [each for each in _of_kind(table, PRINTED) if each.key != "human"]


def with_human(games: Iterable[str]) -> list[str]:
    """Those that have a human score, without which nothing is above it."""
    return [game for game in games if game in paper.human_scores()]


def _points(value: float) -> str:
    """A score as the paper writes it."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def shown(scores: ScoreTable) -> Table:
    """The table to read: a row for each game."""
    methods = scores.methods
    columns = [Column(each.title, each.source, highlighted=each.kind == OURS) for each in methods]
    rows = [
        [Cell(game, game, link=f"#game-{game}"), *(each.cell(game) for each in methods)]
        for game in scores.games
    ]
    titles = (BEST, ABOVE_HUMAN, ABOVE_75_PERCENT)
    counts = [[title, *(each.counts.get(title) for each in methods)] for title in titles]
    notes = [_legend(scores), *(f"Note: {text}." for text in scores.notes)]
    return Table([Column("game", text=True), *columns], rows, footer=counts, notes=notes)


def _legend(scores: ScoreTable) -> str:
    """What the marks and the counts below the table mean."""
    parts = [
        "Mean ± standard error over runs. Bold: best of our methods, or of the paper's; ties are bold for both and "
        "count for both. *: the limit on actions was reached at least once."
    ]
    rivals = " and ".join(each.title for each in _rivals(scores))
    if rivals and all(_of_kind(scores, kind) for kind in (PAPER, OURS)):
        parts.append(
            f"{rivals} are compared with both; their own bold scores and counts are those among the paper's."
        )
    if ours := scores.compared_games[OURS]:
        known = len(with_human(ours))
        others = f"; those above human of the {known} that have a human score"
        parts.append(
            f"Our counts are of the {plural(len(ours), 'game')} that all our methods have runs of"
            f"{others if known < len(ours) else ''}."
        )
    return " ".join(parts)


def raw(scores: ScoreTable) -> Table:
    """The same for programs: a row for each game and method."""
    titles = (
        "game column source mean standard_error runs action_limit_reached vae_trained_briefly best"
    )
    return Table(
        [Column(title) for title in titles.split()],
        [
            [
                *(game, method.key, method.kind, score.mean, score.error, score.runs),
                *(int(mark) for mark in (score.capped, score.short, score.best)),
            ]
            for game in scores.games
            for method in scores.methods
            if (score := method.by_game.get(game)) is not None
        ],
    )
