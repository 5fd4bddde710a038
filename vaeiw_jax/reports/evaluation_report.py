"""Records become a report: `report.html`, which holds all it shows, `report.md`, CSV files, figures as PNG and SVG."""

import csv
import io
import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaeiw_jax import durable
from vaeiw_jax.experiments.catalogue import Experiment
from vaeiw_jax.experiments.evaluation_results import PAPER_STEPS, Results
from vaeiw_jax.reports import figures, game_pages, html, pages, score_tables, summaries
from vaeiw_jax.reports.html import Data
from vaeiw_jax.reports.score_statistics import Interval
from vaeiw_jax.reports.score_tables import COUNTS, OURS, ScoreTable
from vaeiw_jax.reports.summaries import Aggregate, Drawing, Duel, say_p

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    """What is told of one experiment."""

    experiment: Experiment
    table: ScoreTable
    nodes: dict[str, dict[str, float]]
    aggregates: list[Aggregate]
    duels: list[Duel]
    drawings: list[tuple[Drawing, dict[str, bytes]]]


def write(
    results: Results,
    output: Path,
    compare: bool = False,
    command: str = "",
    tell: Callable[[str], None] = lambda what: None,
) -> Path:
    """Writes the report and returns the page to open.

    Args:
      results: what was recorded.
      output: the folder for it.
      compare: set our numbers beside the paper's.
      command: how the report was made, for the page to say.
      tell: told what is being done.
    """
    sections = []
    for experiment in results.experiments:
        tell(f"{experiment.name}: tables and figures")
        sections.append(_section(results, experiment, compare))
    for section in sections:
        name = section.experiment.name
        table = score_tables.to_csv(section.table)
        durable.write_bytes(output / "tables" / f"{name}.csv", table.encode())
        for drawing, files in section.drawings:
            for suffix, content in files.items():
                durable.write_bytes(output / "figures" / f"{drawing.name}.{suffix}", content)
    durable.write_bytes(output / "runs.csv", _runs_csv(results).encode())
    durable.write_bytes(output / "report.md", _markdown(results, sections, command).encode())
    tell("the page")
    page = output / "report.html"
    durable.write_bytes(page, _page(results, sections, command, output).encode())
    return page


def _section(results: Results, experiment: Experiment, compare: bool) -> Section:
    totals = summaries.aggregates(results, experiment)
    return Section(
        experiment,
        score_tables.of_experiment(results, experiment, compare),
        summaries.nodes_a_decision(results, experiment),
        totals,
        summaries.duels(results, experiment, compare),
        [
            (drawing, figures.rendered(drawing.figure))
            for drawing in summaries.drawings(results, experiment, totals, compare)
        ],
    )


# What must be known before any number is believed.


def warnings(results: Results) -> list[str]:
    """Plain sentences on what is missing, failed, or not as in the paper."""
    said = []
    flags = results.config.flags(leave_out=("experiment", "games", "runs", "seed"))
    changed = [flag.removeprefix("--") for flag in flags]
    if changed:
        said.append(
            f"These are not the paper's settings: {', '.join(changed)}. Scores can be compared with one another, and "
            "with the paper's only with that in mind."
        )
    used = {id(vae): vae for run in results.played if (vae := results.vae_of(run)) is not None}
    short = [vae for vae in used.values() if vae.short]
    if short:
        steps = sorted(vae.record["steps"] for vae in short)
        said.append(
            f"† {len(short)} VAEs were trained for {_range(steps)} steps, where the paper's schedule has "
            f"{PAPER_STEPS:,}: scores marked † say how the program works, not how good VAE-IW is."
        )
    now = results.status
    if now.left or now.running or now.failed:
        said.append(
            f"Of {len(now.jobs):,} jobs {len(now.done):,} are done, {len(now.running):,} running, "
            f"{len(now.failed):,} failed and {now.left:,} not begun: what is missing is left blank."
        )
    return said


def _range(values: list[int]) -> str:
    return f"{values[0]:,}" if values[0] == values[-1] else f"{values[0]:,} to {values[-1]:,}"


def summary(results: Results) -> str:
    names = ", ".join(experiment.name for experiment in results.experiments)
    runs = len(results.played)
    games = len({run.game for run in results.played})
    actions = sum(run.record["actions"] for run in results.played)
    return f"Experiments: {names}. {runs:,} runs of {games:,} games, {actions:,} decisions."


def _commands(results: Results, command: str) -> list[str]:
    """How the runs and the report were made."""
    flags = [*results.config.flags(), f"--workdir={results.workdir}"]
    flags += [f"--store={os.path.relpath(results.store)}"] if results.store else []
    return [shlex.join(["python", "-m", "launch.evaluate", *flags]), *filter(None, [command])]


# The page.


def _page(results: Results, sections: list[Section], command: str, output: Path) -> str:
    title = f"Evaluation: {', '.join(section.experiment.name for section in sections)}"
    overview = [f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(summary(results))}</p>"]
    overview += [f'<p class="note">{html.escape(text)}</p>' for text in warnings(results)]
    shown = "\n".join(map(html.command, _commands(results, command)))
    overview.append(f"<p class=faint>Made with</p><pre>{shown}</pre>")
    links = [
        f'<a href="#experiment-{s.experiment.name}">{html.escape(s.experiment.title)}</a>'
        for s in sections
    ]
    links += [
        '<a href="#failed">What is missing</a>',
        '<a href="#made-by">Configs and machines</a>',
    ]
    overview.append(f"<nav>{''.join(links)}</nav>")
    overview += [_section_html(section) for section in sections]
    overview += [_missing_html(results), _provenance_html(results)]
    videos = game_pages.Videos(output)
    games = [game_pages.page(results, game, videos) for game in results.games]
    body = "\n".join(['<div id="overview">', *overview, "</div>", *games])
    return pages.page(title, body, _HERE / "evaluation_report.css", _HERE / "evaluation_report.js")


def _section_html(section: Section) -> str:
    experiment, table = section.experiment, section.table
    parts = [f'<h2 id="experiment-{experiment.name}">{html.escape(experiment.title)}</h2>']
    parts.append(_table_html(table))
    parts.append(
        "<p class=faint>Mean ± standard error over runs. Bold: best of our methods, or of the paper's; ties are bold "
        "for both and count for both. *: the limit on actions was reached at least once."
        f"{_of_games(table)} Click a heading to sort, a game for its page.</p>"
    )
    parts += [f"<p class=faint>Note: {html.escape(note)}.</p>" for note in table.notes]
    if _games_with_nodes(section):
        parts.append(f"<h3>{NODES_TITLE}</h3>" + _nodes_html(section))
    if section.aggregates:
        parts.append("<h3>Over all games</h3>" + _aggregates_html(section.aggregates))
    if section.duels:
        parts.append("<h3>Method against method</h3>" + _duels_html(section.duels))
    for drawing, files in section.drawings:
        parts.append(html.picture(files["svg"], "image/svg+xml", drawing.caption, drawing.name))
    return "\n".join(parts)


def _of_games(table: ScoreTable) -> str:
    ours = table.compared_games.get(OURS, 0)
    return f" Counts are of the {ours} games that all methods have runs of." if ours else ""


def _table_html(table: ScoreTable) -> str:
    headings = [("game", ""), *((column.title, column.source) for column in table.columns)]
    rows = []
    for game in table.games:
        link = f'<a href="#game-{html.escape(game)}">{html.escape(game)}</a>'
        row = [Data(link, game, "text")]
        for column in table.columns:
            cell = column.cells.get(game)
            kind = "ours" if column.kind == OURS else ""
            text = html.escape(column.text(game))
            shown = f"<strong>{text}</strong>" if cell and cell.best else text
            row.append(Data(shown, cell.mean if cell else None, kind))
        rows.append(row)
    footer = [
        [
            title,
            *(
                "" if (value := getattr(column, name)) is None else str(value)
                for column in table.columns
            ),
        ]
        for title, name in COUNTS
    ]
    return html.table(headings, rows, footer)


NODES_TITLE = "New nodes a decision"


def _nodes_html(section: Section) -> str:
    rows = [
        [html.plain(game)]
        + [html.figure(of[game]) if game in of else Data("", None) for of in section.nodes.values()]
        for game in _games_with_nodes(section)
    ]
    return html.table([("game", ""), *((title, "") for title in section.nodes)], rows)


def _nodes_markdown(section: Section) -> list[str]:
    columns = section.nodes.values()
    lines = [
        f"| {NODES_TITLE.lower()} | {' | '.join(section.nodes)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for game in _games_with_nodes(section):
        cells = [f"{nodes[game]:,.1f}" if game in nodes else "" for nodes in columns]
        lines.append(f"| {game} | {' | '.join(cells)} |")
    return [*lines, ""]


def _games_with_nodes(section: Section) -> list[str]:
    return [g for g in section.experiment.games if any(g in of for of in section.nodes.values())]


def _interval(interval: Interval, unit: str = "%", factor: float = 1.0) -> str:
    low, value, high = (round(factor * x) for x in (interval.low, interval.value, interval.high))
    return f"{value:,}{unit} ({low:,} to {high:,})"


def _aggregates_html(aggregates: list[Aggregate]) -> str:
    headings = [
        ("method", ""),
        ("games", ""),
        ("runs", ""),
        ("interquartile mean", "human-normalised, 95% interval"),
        ("mean", "human-normalised, 95% interval"),
    ]
    rows = [
        [
            html.plain(entry.title),
            html.figure(entry.games, str(entry.games)),
            html.figure(entry.runs, str(entry.runs)),
            html.figure(entry.interquartile_mean.value, _interval(entry.interquartile_mean)),
            html.figure(entry.mean.value, _interval(entry.mean)),
        ]
        for entry in aggregates
    ]
    return html.table(headings, rows)


DUEL_HEADINGS = [
    ("method", ""),
    ("against", ""),
    ("games won", "share, ties half; 95% interval"),
    ("won / tied / lost", "games"),
    ("won / tied / lost", "runs of equal seed"),
    ("p", "Wilcoxon, over games"),
]


def _duel_texts(duel: Duel) -> list[str]:
    share, paired = duel.share, duel.paired
    return [
        duel.title,
        duel.against,
        _interval(share.interval, factor=100),
        f"{share.won} / {share.tied} / {share.lost}",
        f"{paired.won} / {paired.tied} / {paired.lost}" if paired else "",
        say_p(paired.p_value).removeprefix("= ") if paired else "",
    ]


def _duels_html(duels: list[Duel]) -> str:
    rows = []
    for duel in duels:
        texts = _duel_texts(duel)
        values: list[Any] = [duel.share.interval.value, duel.share.won]
        values += [duel.paired.won, duel.paired.p_value] if duel.paired else [None, None]
        numbers = [
            Data(html.escape(text), value) for text, value in zip(texts[2:], values, strict=True)
        ]
        rows.append([html.plain(texts[0]), html.plain(texts[1]), *numbers])
    return html.table(DUEL_HEADINGS, rows)


def _missing_html(results: Results) -> str:
    now = results.status
    parts = ['<h2 id="failed">What is missing</h2>']
    if not (now.failed or now.left or now.running):
        return "\n".join([*parts, "<p>Nothing: every job is done.</p>"])
    parts.append(
        f"<p>{len(now.running):,} jobs are running, {now.left:,} were not begun, {len(now.failed):,} failed.</p>"
    )
    if now.failed:
        rows = [
            [
                html.plain(name),
                html.plain(about["why"], long=True),
                html.plain(about["log"] or "", long=True),
            ]
            for name, about in sorted(now.failed.items())
        ]
        parts.append(html.table([("job", ""), ("why it failed", ""), ("log", "")], rows))
    return "\n".join(parts)


def _provenance_html(results: Results) -> str:
    """The config, versions and machine of every number; those of each run are on its game's page."""
    parts = ['<h2 id="made-by">Configs and machines</h2>']
    for name, method in results.methods.items():
        run = next((run for run in results.played if run.method == name), None)
        if run is not None:
            settings = html.escape(json.dumps(run.record["config"], indent=2))
            parts.append(
                f"<details><summary>{html.escape(method.title)}, as in {html.escape(run.game)}</summary>"
                f"<pre>{settings}</pre></details>"
            )
    machines: dict[str, int] = {}
    for run in results.played:
        said = _machine(run.host)
        machines[said] = machines.get(said, 0) + 1
    rows = [
        [html.plain(said, long=True), html.figure(number, str(number))]
        for said, number in machines.items()
    ]
    if rows:
        parts.append(html.table([("machine and versions", ""), ("runs", "")], rows))
    parts.append("<p class=faint>runs.csv, beside this page, has all of it for every run.</p>")
    return "\n".join(parts)


def _machine(host: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in host.get("versions", {}).items())
    return f"{host.get('machine', '?')}, {host.get('processor', '?')}, {host.get('threads', '?')} threads; {versions}"


# The other files.


def _markdown(results: Results, sections: list[Section], command: str) -> str:
    lines = [
        f"# Evaluation: {', '.join(s.experiment.name for s in sections)}",
        "",
        summary(results),
        "",
    ]
    lines += [f"> {text}\n" for text in warnings(results)]
    lines += ["Made with", "", *(f"    {line}" for line in _commands(results, command)), ""]
    for section in sections:
        lines += [f"## {section.experiment.title}", "", score_tables.to_markdown(section.table), ""]
        lines += [f"Note: {note}.\n" for note in section.table.notes]
        lines += _nodes_markdown(section) if _games_with_nodes(section) else []
        if section.aggregates:
            lines += [
                "| method | games | runs | interquartile mean | mean |",
                "|---|---|---|---|---|",
            ]
            lines += [
                f"| {a.title} | {a.games} | {a.runs} | {_interval(a.interquartile_mean)} | {_interval(a.mean)} |"
                for a in section.aggregates
            ]
            lines.append("")
        if section.duels:
            titles = [f"{title}{f' ({below})' if below else ''}" for title, below in DUEL_HEADINGS]
            lines += [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
            lines += [f"| {' | '.join(_duel_texts(duel))} |" for duel in section.duels]
            lines.append("")
        lines += [
            f"![{drawing.caption}](figures/{drawing.name}.png)\n" for drawing, _ in section.drawings
        ]
    lines.append("## What is missing\n")
    failed = sorted(results.status.failed.items())
    lines += [f"- {name} failed: {about['why']} (log: {about['log']})" for name, about in failed]
    left = results.status.left + len(results.status.running)
    lines.append(
        f"{left:,} jobs are running or not begun."
        if left or failed
        else "Nothing: every job is done."
    )
    return "\n".join(lines) + "\n"


def _runs_csv(results: Results) -> str:
    out = io.StringIO()
    statistics = sorted(
        {
            name
            for run in results.played
            for name in run.record["decisions"]
            if name.startswith("mean_")
        }
    )
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            "method",
            "game",
            "seed",
            "score",
            "actions",
            "emulator_frames",
            "stop",
            *statistics,
            "features",
            "machine",
            "processor",
            "versions",
            "started",
            "ended",
        ]
    )
    for run in sorted(results.played, key=lambda run: (run.method, run.game, run.seed)):
        record, host = run.record, run.host
        versions = " ".join(
            f"{name}={version}" for name, version in host.get("versions", {}).items()
        )
        writer.writerow(
            [run.method, run.game, run.seed]
            + [record[name] for name in ("score", "actions", "emulator_frames", "stop")]
            + [record["decisions"].get(name, "") for name in statistics]
            + [record["config"]["features"]]
            + [
                host.get("machine", ""),
                host.get("processor", ""),
                versions,
                host.get("started", ""),
                host.get("ended", ""),
            ]
        )
    return out.getvalue()
