"""The page of a pipeline: scores by iteration beside the paper's, films, learning curves, reconstructions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.experiments import paper, pipeline
from vaeiw_jax.playing.runs import Run
from vaeiw_jax.reports import charts, training_progress
from vaeiw_jax.reports.charts import Chart
from vaeiw_jax.reports.pages import Films, render
from vaeiw_jax.reports.tables import Column, Table

Records = Mapping[int, list[dict[str, Any]]]
"""The finished games of each iteration."""

PAGE = "report.html"
_MARKS = {"VAE-IW in the paper": "vae_iw_ra", "human": "human"}
_PAPER_ACTIONS = 15_000


def write(game: str, iterations: int, workdir: Path) -> None:
    """Writes the page on what has been done so far."""
    records = {n: pipeline.records(game, n, workdir) for n in range(1, iterations + 1)}
    scores = {f"iteration {n}": [r["score"] for r in found] for n, found in records.items()}
    table = paper.table("main_0.5s")
    marks = {
        title: table.scores[column][game]
        for title, column in _MARKS.items()
        if game in table.scores[column]
    }
    limit = max(record["config"]["max_actions"] for found in records.values() for record in found)
    films = Films(workdir)
    page = render(
        "pipeline.html",
        title=f"{game}: from screens to learned play",
        summaries={title: summary(found) for title, found in scores.items()},
        scores=Chart("scores", f"Scores of {game} by iteration", charts.dots(scores, marks)),
        limit=limit if limit < _PAPER_ACTIONS else None,
        paper_limit=_PAPER_ACTIONS,
        runs=_runs_table(records),
        iterations=[_iteration(game, n, records[n], workdir, films) for n in records],
    )
    durable.write_bytes(workdir / PAGE, page.encode())


def summary(scores: list[int]) -> str:
    """Mean, standard error and number of runs."""
    if len(scores) == 1:
        return f"score {scores[0]:,} in one game"
    error = np.std(scores, ddof=1) / len(scores) ** 0.5
    return f"mean score {np.mean(scores):,.1f} ± {error:,.1f} (standard error, {len(scores)} games)"


def _runs_table(records: Records) -> Table:
    return Table(
        [
            *(Column("iteration"), Column("seed"), Column("score"), Column("actions")),
            Column("ended by", text=True),
            Column("nodes", "a decision", ",.1f"),
            Column("features true", "in a state", ",.1f"),
        ],
        [
            [number, record["seed"], record["score"], record["actions"]]
            + [record["stop"].replace("_", " ")]
            + [record["decisions"][name] for name in ("mean_new_nodes", "mean_atoms_per_node")]
            for number, found in records.items()
            for record in found
        ],
    )


def _iteration(
    game: str, number: int, records: list[dict[str, Any]], workdir: Path, films: Films
) -> dict[str, Any]:
    """For the template: the best game's film, and how the training of its VAE went."""
    vae = workdir / "vaes" / str(number)
    inside = workdir / "inside" / str(number) / "index.html"
    best = max(records, key=lambda record: record["score"])
    film = Run(workdir / "runs" / str(number), game, best["seed"]).video
    caption = f"the best game, seed {best['seed']}: {best['score']:,} points"
    return {
        "number": number,
        "films": [films.show(film, caption)] if film.exists() else [],
        "steps": durable.read_json(vae / "trained.json")["steps"],
        "inspection": inside.relative_to(workdir).as_posix() if inside.exists() else None,
        "progress": training_progress.of_run(vae),
    }
