"""Score tables: our means and standard errors beside the paper's numbers, with the counts below."""

import csv
import dataclasses
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vaeiw_jax.experiments import paper
from vaeiw_jax.experiments.catalogue import Experiment
from vaeiw_jax.experiments.evaluation_results import Results
from vaeiw_jax.reports import score_statistics

PRINTED_TITLES = {"human": "human", "rainbow": "Rainbow", "pi_iw": "π-IW"}
OURS, PAPER, PRINTED = "ours", "paper", "printed"


@dataclass(frozen=True)
class Cell:
    """A mean score."""

    mean: float
    error: float | None = None
    runs: int | None = None
    """None where the paper does not tell it for each game."""
    capped: bool = False
    """The action limit was reached at least once."""
    short: bool = False
    """Its VAE was trained for much less than the paper's."""
    best: bool = False


@dataclass
class Column:
    """The scores of one method, ours or printed in the paper."""

    key: str
    title: str
    kind: str
    cells: dict[str, Cell] = field(default_factory=dict)
    best: int | None = None
    above_human: int | None = None
    above_75_percent: int | None = None

    @property
    def scores(self) -> dict[str, float]:
        return {game: cell.mean for game, cell in self.cells.items()}

    @property
    def usual_runs(self) -> int | None:
        """Of each game, but for those that have fewer; None where the paper does not tell."""
        return max((cell.runs for cell in self.cells.values() if cell.runs), default=None)

    @property
    def source(self) -> str:
        """Whose scores these are."""
        if self.kind != OURS or self.usual_runs is None:
            return {PAPER: "in the paper"}.get(self.kind, self.kind)
        return f"ours, {_runs(self.usual_runs)}"

    def text(self, game: str) -> str:
        """A cell without its bold: mean, star, dagger, standard error, and the runs if they are fewer than usual."""
        cell = self.cells.get(game)
        if cell is None:
            return ""
        error = ""
        if cell.error is not None:
            error = f" ± {number(round(cell.error, 0 if cell.error >= 100 else 1))}"
        few = f" ({_runs(cell.runs)})" if cell.runs and cell.runs != self.usual_runs else ""
        return f"{number(cell.mean)}{'*' * cell.capped}{'†' * cell.short}{error}{few}"


@dataclass
class ScoreTable:
    name: str
    title: str
    games: tuple[str, ...]
    columns: list[Column]
    compared_games: dict[str, int]
    """Of how many games the counts of our columns, and of the paper's, are."""
    notes: list[str]


def of_experiment(results: Results, experiment: Experiment, compare: bool) -> ScoreTable:
    """Our scores of an experiment; with `compare`, next to those the paper prints for the same."""
    columns: list[Column] = []
    for method in experiment.methods:
        cells = {
            game: cell
            for game in experiment.games
            if (cell := _cell(results, experiment, method.name, game))
        }
        columns.append(Column(method.name, method.title, OURS, cells))
        if compare and method.name in experiment.paper_columns:
            columns.append(
                _paper_column(experiment, experiment.paper_columns[method.name], method.title)
            )
    if experiment.paper_table:
        columns = [_printed_column(experiment, key) for key in experiment.printed] + columns
    notes = []
    if compare and experiment.paper_table in paper.MISPRINTS:
        notes.append(paper.MISPRINTS[experiment.paper_table])
    table = ScoreTable(experiment.name, experiment.title, experiment.games, columns, {}, notes)
    _judge(table)
    return table


def of_paper(name: str) -> ScoreTable:
    """One of the paper's own tables, put through the same counting."""
    printed = paper.table(name)
    columns = [
        Column(key, key, PAPER, {game: Cell(score) for game, score in scores.items()})
        for key, scores in printed.scores.items()
        if key not in ("human", "random")
    ]
    table = ScoreTable(name, name, printed.games, columns, {}, [])
    _judge(table)
    return table


def _cell(results: Results, experiment: Experiment, method: str, game: str) -> Cell | None:
    runs = results.runs(method, game, experiment)
    if not runs:
        return None
    scores = [run.score for run in runs]
    vaes = [vae for run in runs if (vae := results.vae_of(run)) is not None]
    return Cell(
        score_statistics.mean(scores),
        score_statistics.standard_error(scores),
        len(runs),
        capped=any(run.capped for run in runs),
        short=any(vae.short for vae in vaes),
    )


def _paper_column(experiment: Experiment, key: str, title: str) -> Column:
    printed = paper.table(experiment.paper_table or "")
    capped = printed.capped.get(key, frozenset())
    cells = {
        game: Cell(score, capped=game in capped)
        for game, score in printed.scores[key].items()
        if game in experiment.games
    }
    return Column(key, title, PAPER, cells)


def _printed_column(experiment: Experiment, key: str) -> Column:
    scores = paper.table(experiment.paper_table or "").scores[key]
    cells = {game: Cell(score) for game, score in scores.items() if game in experiment.games}
    return Column(key, PRINTED_TITLES[key], PRINTED, cells)


def _judge(table: ScoreTable) -> None:
    """Marks the best of each game and counts, among our columns and among the paper's, each beside the printed ones."""
    rivals = [
        column for column in table.columns if column.kind == PRINTED and column.key != "human"
    ]
    for kind in (PAPER, OURS):
        columns = [column for column in table.columns if column.kind == kind]
        group = {column.key: column for column in [*columns, *rivals]}
        games = [
            game for game in table.games if all(game in column.cells for column in group.values())
        ]
        table.compared_games[kind] = len(games) if columns else 0
        if not columns or not games:
            continue
        scores = {key: column.scores for key, column in group.items()}
        _mark_best(group, scores, games)
        for key, number in score_statistics.best_counts(scores, games).items():
            group[key].best = number
        for column in columns:
            within = {game: score for game, score in column.scores.items() if game in games}
            column.above_human = score_statistics.count_above(within, paper.human_scores())
            column.above_75_percent = score_statistics.count_above(
                within, paper.human_scores(), 0.75
            )


def _mark_best(
    group: Mapping[str, Column], scores: Mapping[str, Mapping[str, float]], games: Sequence[str]
) -> None:
    for game in games:
        top = max(by_game[game] for by_game in scores.values())
        for column in group.values():
            cell = column.cells[game]
            column.cells[game] = dataclasses.replace(cell, best=cell.mean == top)


def number(value: float) -> str:
    """A score as the paper writes it."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _runs(count: int) -> str:
    return f"{count} run{'s' * (count != 1)}"


COUNTS = (
    ("best in game", "best"),
    ("> human", "above_human"),
    ("> 75% human", "above_75_percent"),
)


def to_markdown(table: ScoreTable) -> str:
    titles = [f"{column.title} ({column.source})" for column in table.columns]
    lines = [f"| game | {' | '.join(titles)} |", "|---" * (1 + len(titles)) + "|"]
    for game in table.games:
        if any(column.kind == OURS and game in column.cells for column in table.columns):
            shown = [_markdown_cell(column, game) for column in table.columns]
            lines.append(f"| {game} | {' | '.join(shown)} |")
    for title, name in COUNTS:
        counts = [getattr(column, name) for column in table.columns]
        lines.append(f"| *{title}* | {' | '.join('' if c is None else str(c) for c in counts)} |")
    return "\n".join(lines)


def _markdown_cell(column: Column, game: str) -> str:
    text = column.text(game).replace("*", "\\*")
    return f"**{text}**" if game in column.cells and column.cells[game].best else text


def to_csv(table: ScoreTable) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "game",
            "column",
            "source",
            "mean",
            "standard_error",
            "runs",
            "action_limit_reached",
            "vae_trained_briefly",
            "best",
        ]
    )
    for game in table.games:
        for column in table.columns:
            cell = column.cells.get(game)
            if cell is not None:
                row = [
                    cell.mean,
                    cell.error,
                    cell.runs,
                    int(cell.capped),
                    int(cell.short),
                    int(cell.best),
                ]
                writer.writerow(
                    [game, column.key, column.kind, *("" if v is None else v for v in row)]
                )
    return out.getvalue()
