"""A game's page: its runs, how their scores are spread, its VAEs' learning curves and reconstructions, its videos."""

import io
import os
from pathlib import Path

from PIL import Image

from vaeiw_jax.experiments import paper
from vaeiw_jax.experiments.evaluation_results import PAPER_STEPS, Played, Results, Trained
from vaeiw_jax.reports import html
from vaeiw_jax.reports.html import Data
from vaeiw_jax.reports.pages import embedded
from vaeiw_jax.training import metrics

PICTURE_WIDTH = 1200

LEAST_NATS = 0.01
"""Less than this is drawn as this, for a logarithm."""


class Videos:
    """Films go into the page while there is room, and are linked to from then on.

    Args:
      output: the folder of the page.
      room: bytes of film that the page may hold.
    """

    def __init__(self, output: Path, room: int = 24_000_000):
        self._output = output
        self._room = room

    def show(self, path: Path, caption: str) -> str:
        size = path.stat().st_size
        if size <= self._room:
            self._room -= size
            source = embedded(path.read_bytes(), "video/mp4")
        else:
            source = Path(os.path.relpath(path, self._output)).as_posix()
        return (
            f'<figure><video controls preload="metadata" src="{html.escape(source)}"></video>'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        )


def page(results: Results, game: str, videos: Videos) -> str:
    """One section of the report, shown alone when the address names it."""
    name = html.escape(game)
    runs = {
        title: found
        for key, title in ((key, method.title) for key, method in results.methods.items())
        if (found := results.runs(key, game))
    }
    parts = [
        f'<section class="game" id="game-{name}">',
        '<p><a href="#overview">← all games</a></p>',
        f"<h1>{name}</h1>",
    ]
    if not runs:
        parts.append("<p>No run of this game is finished.</p>")
    else:
        scores = {title: [run.score for run in found] for title, found in runs.items()}
        parts += ["<h3>Scores of the runs</h3>", html.distribution(scores, _marks(game))]
        parts.append(_runs_table(results, runs))
    films = [
        videos.show(run.job.run.video, f"{title}, seed {run.seed}: {run.score:,.0f} points")
        for title, found in runs.items()
        for run in found
        if run.job.run.video.exists()
    ]
    if films:
        parts.append(f'<h3>Videos</h3><div class="videos">{"".join(films)}</div>')
    parts += [_vae(vae) for vae in results.trained.values() if vae.game == game]
    return "\n".join([*parts, "</section>"])


def _marks(game: str) -> dict[str, float]:
    human, random = paper.human_scores().get(game), paper.random_scores().get(game)
    return {title: at for title, at in (("human", human), ("random", random)) if at is not None}


def _runs_table(results: Results, runs: dict[str, list[Played]]) -> str:
    headings = [
        ("method", ""),
        ("seed", ""),
        ("score", ""),
        ("actions", ""),
        ("ended by", ""),
        ("nodes", "a decision"),
        ("expanded", "a decision"),
        ("longest rollout", "a decision"),
        ("features", "model"),
        ("machine", ""),
        ("played", ""),
    ]
    rows: list[list[Data]] = []
    for title, found in runs.items():
        for run in found:
            record, decisions = run.record, run.record["decisions"]
            row = [html.plain(title)]
            row += [
                html.figure(value, f"{value:,}")
                for value in (run.seed, record["score"], record["actions"])
            ]
            row.append(html.plain(record["stop"].replace("_", " ")))
            row += [
                html.figure(decisions[name], None if decisions[name] else "")  # IW has no rollouts
                for name in ("mean_new_nodes", "mean_expanded_nodes", "mean_max_rollout_length")
            ]
            features = record["config"]["features"]
            row.append(html.plain(features[:12] + "…" if len(features) > 16 else features))
            day = run.host.get("ended", "").partition("T")[0]
            row += [html.plain(run.host.get("machine", "")), html.plain(day)]
            rows.append(row)
    return html.table(headings, rows)


def _vae(vae: Trained) -> str:
    record = vae.record
    config = record["config"]
    steps = f"{record['steps']:,} steps"
    short = f", where the paper's schedule has {PAPER_STEPS:,} †" if vae.short else ""
    parts = [
        f"<h3>VAE {config['latent']}, {config['latent_kind']}, β = {config['beta']:g}</h3>",
        f"<p>Trained for {steps}{short}. Model <code>{record['model'][:16]}</code>.</p>",
    ]
    parts.append(learning_curve(vae.directory))
    pictures = sorted((vae.directory / "pictures").glob("epoch-*.png"))
    if pictures:
        caption = "Frames of the validation set, their reconstructions, the differences, and samples from the prior"
        parts.append(html.picture(smaller(pictures[-1]), "image/jpeg", caption, wide=True))
    return "\n".join(parts)


def learning_curve(directory: Path) -> str:
    """Of a training run, as its metrics tell."""
    path = directory / metrics.FILE
    if not path.exists():
        return ""
    lines = metrics.read(path)

    def points(kind: str) -> list[tuple[float, float]]:
        of_kind = [line for line in lines if line["kind"] == kind]
        return [(line["step"], max(line["excess_bce"], LEAST_NATS)) for line in of_kind]

    training = points("train")
    every = max(1, len(training) // 300)
    drawn = {"training": training[::every], "validation": points("validation")}
    drawn = {title: line for title, line in drawn.items() if line}
    caption = "<p class=faint>Nats a frame above the entropy of the frame itself, which no reconstruction can pass.</p>"
    return html.curve(drawn, "steps") + caption if drawn else ""


def smaller(path: Path) -> bytes:
    """The picture as a JPEG for the page; the original stays where it is."""
    with Image.open(path) as image:
        size = (PICTURE_WIDTH, round(image.height * PICTURE_WIDTH / image.width))
        reduced = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    reduced.save(buffer, "JPEG", quality=82)
    return buffer.getvalue()
