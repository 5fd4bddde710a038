"""The page of a pipeline: scores by iteration beside the paper's, films, learning curves, reconstructions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vaeiw_jax import configs, durable
from vaeiw_jax.experiments import paper, pipeline
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import Run
from vaeiw_jax.reports import charts, score_statistics, training_progress
from vaeiw_jax.reports.charts import Chart
from vaeiw_jax.reports.pages import Films, ended_by, render
from vaeiw_jax.reports.tables import Column, Table

Records = Mapping[int, list[dict[str, Any]]]
"""The finished games of each iteration."""

PAGE = "report.html"
_MARKS = {"VAE-IW in the paper": "vae_iw_ra", "human": "human"}


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
    limit = max(_most_actions(record) for found in records.values() for record in found)
    films = Films(workdir)
    page = render(
        "pipeline.html",
        title=f"{game}: from screens to learned play",
        summaries={title: summary(found) for title, found in scores.items()},
        scores=Chart("scores", f"Scores of {game} by iteration", charts.dots(scores, marks)),
        limit=limit if limit < EpisodeConfig.max_actions else None,
        paper_limit=EpisodeConfig.max_actions,
        runs=_runs_table(records),
        iterations=[_iteration(game, n, records[n], workdir, films) for n in records],
    )
    durable.write_bytes(workdir / PAGE, page.encode())


def summary(scores: list[int]) -> str:
    """The scores of an iteration, for the page and for the command."""
    return score_statistics.in_words(scores)


def _most_actions(record: dict[str, Any]) -> int:
    """Where the game would have ended in any case, by its limit on actions or on emulator frames."""
    return configs.from_settings(EpisodeConfig, record["config"], partial=True).most_actions


def _runs_table(records: Records) -> Table:
    return Table(
        [
            *(Column("iteration"), Column("seed"), Column("score"), Column("actions")),
            Column("ended by", text=True),
            Column("nodes", "a decision", ",.1f"),
            Column("atoms", "true in a state", ",.1f"),
        ],
        [
            [number, record["seed"], record["score"], record["actions"]]
            + [ended_by(record)]
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
