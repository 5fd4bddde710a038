"""The page of a pipeline: scores by iteration beside the paper's, films, learning curves, reconstructions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.experiments import paper, pipeline
from vaeiw_jax.playing.runs import Run
from vaeiw_jax.reports import game_pages, html, pages
from vaeiw_jax.reports.game_pages import Videos

Records = Mapping[int, list[dict[str, Any]]]
"""The finished games of each iteration."""

PAGE = "report.html"
_STYLE = Path(game_pages.__file__).parent / "evaluation_report.css"
_MARKS = {"VAE-IW in the paper": "vae_iw_ra", "human": "human"}
_PICTURE = "Frames of the validation set, reconstructions, differences, and samples from the prior"


def write(game: str, iterations: int, workdir: Path) -> None:
    """Writes the page on what has been done so far."""
    numbers = range(1, iterations + 1)
    records = {n: pipeline.records(game, n, workdir) for n in numbers}
    parts = [f"<h1>{html.escape(game)}: from screens to learned play</h1>"]
    parts += [_overview(game, records), _runs_table(records)]
    videos = Videos(workdir)
    parts += [_iteration(game, n, records[n], workdir, videos) for n in numbers]
    page = pages.page(game, "\n".join(parts), _STYLE, _STYLE.with_suffix(".js"))
    durable.write_bytes(workdir / PAGE, page.encode())


def summary(scores: list[int]) -> str:
    """Mean, standard error and number of runs."""
    if len(scores) == 1:
        return f"score {scores[0]:,} in one game"
    error = np.std(scores, ddof=1) / len(scores) ** 0.5
    return f"mean score {np.mean(scores):,.1f} ± {error:,.1f} (standard error, {len(scores)} games)"


def _overview(game: str, records: Records) -> str:
    scores = {f"iteration {n}": [r["score"] for r in of_it] for n, of_it in records.items()}
    table = paper.table("main_0.5s")
    marks = {
        title: table.scores[column][game]
        for title, column in _MARKS.items()
        if game in table.scores[column]
    }
    lines = "".join(f"<li>{title}: {summary(found)}</li>" for title, found in scores.items())
    limits = {record["config"]["max_actions"] for of_it in records.values() for record in of_it}
    note = (
        f"<p class=faint>Games here end after {max(limits):,} actions; the paper's after 15,000.</p>"
        if max(limits) < 15_000
        else ""
    )
    return f"<ul>{lines}</ul>{html.distribution(scores, marks)}{note}"


def _runs_table(records: Records) -> str:
    headings = [("iteration", ""), ("seed", ""), ("score", ""), ("actions", "")]
    headings += [("ended by", ""), ("nodes", "a decision"), ("features true", "in a state")]
    rows = []
    for number, of_it in records.items():
        for record in of_it:
            counts = (number, record["seed"], record["score"], record["actions"])
            row = [html.figure(value, f"{value:,}") for value in counts]
            row.append(html.plain(record["stop"].replace("_", " ")))
            means = record["decisions"]
            row += [html.figure(means[name]) for name in ("mean_new_nodes", "mean_atoms_per_node")]
            rows.append(row)
    return html.table(headings, rows)


def _iteration(
    game: str, number: int, records: list[dict[str, Any]], workdir: Path, videos: Videos
) -> str:
    vae = workdir / "vaes" / str(number)
    trained = durable.read_json(vae / "trained.json")
    inside = workdir / "inside" / str(number) / "index.html"
    best = max(records, key=lambda record: record["score"])
    film = Run(workdir / "runs" / str(number), game, best["seed"]).video
    caption = f"the best game, seed {best['seed']}: {best['score']:,} points"
    parts = [
        f"<h2>Iteration {number}</h2>",
        f'<div class="videos">{videos.show(film, caption)}</div>' if film.exists() else "",
        f"<p>The VAE was trained for {trained['steps']:,} steps.",
        f'<a href="{inside.relative_to(workdir)}">Look inside it.</a></p>'
        if inside.exists()
        else "</p>",
        game_pages.learning_curve(vae),
    ]
    drawn = sorted((vae / "pictures").glob("epoch-*.png"))
    if drawn:
        small = game_pages.smaller(drawn[-1])
        parts.append(html.picture(small, "image/jpeg", _PICTURE, wide=True))
    return "\n".join(parts)
