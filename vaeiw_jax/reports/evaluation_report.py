"""Records become a report: `report.html`, which holds all it shows, `report.md`, CSV files, charts as PNG and SVG."""

import collections
import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaeiw_jax import durable
from vaeiw_jax.experiments import catalogue, paper
from vaeiw_jax.experiments.catalogue import Experiment
from vaeiw_jax.experiments.evaluation_results import (
    PAPER_STEPS,
    EvaluationResults,
    ExperimentResults,
    Played,
)
from vaeiw_jax.reports import (
    charts,
    evaluation_charts,
    evaluation_summary,
    online_report,
    score_tables,
    training_progress,
)
from vaeiw_jax.reports.charts import Chart
from vaeiw_jax.reports.pages import Films, ended_by, plural, render
from vaeiw_jax.reports.score_tables import ScoreTable
from vaeiw_jax.reports.tables import Column, Table


@dataclass(frozen=True)
class Section:
    """An experiment: its tables, the scores first, and its charts."""

    experiment: Experiment
    scores: ScoreTable
    tables: list[Table]
    charts: list[Chart]


def write(
    results: EvaluationResults,
    output: Path,
    compare: bool = False,
    command: str = "",
    on_progress: Callable[[str], None] = lambda message: None,
) -> Path:
    """Writes the report and returns the page to open.

    Args:
      results: what was recorded.
      output: the folder for it.
      compare: set our numbers beside the paper's.
      command: how the report was made, for the page to say.
      on_progress: called with a line on what is being done.
    """
    sections = []
    for experiment in results.experiments:
        on_progress(f"{experiment.name}: tables and charts")
        sections.append(_section(results.of(experiment), compare))
    for section in sections:
        table = score_tables.raw(section.scores).to_csv()
        durable.write_bytes(output / "tables" / f"{section.experiment.name}.csv", table.encode())
        for chart in section.charts:
            durable.write_bytes(output / "figures" / f"{chart.name}.svg", chart.svg())
            durable.write_bytes(output / "figures" / f"{chart.name}.png", chart.png())
    durable.write_bytes(output / "runs.csv", _runs_table(results).to_csv().encode())
    values = {
        "title": f"Evaluation: {', '.join(section.experiment.name for section in sections)}",
        "summary": summary(results),
        "warnings": warnings(results),
        "commands": _commands(results, command),
        "sections": sections,
        "status": results.status,
    }
    durable.write_bytes(output / "report.md", render("evaluation.md", **values).encode())
    on_progress("the page")
    films = Films(output)
    games = [_game_page(results, game, films) for game in results.games]
    values |= {"games": games, "failures": _failures_table(results), "paper_steps": PAPER_STEPS}
    values |= {"configs": _configs(results), "machines": _machines_table(results)}
    page = output / "report.html"
    durable.write_bytes(page, render("evaluation.html", **values).encode())
    return page


def _section(results: ExperimentResults, compare: bool) -> Section:
    results = results.begun()
    scores = score_tables.of_experiment(results, compare)
    others = (
        evaluation_summary.nodes_table(results),
        evaluation_summary.aggregates_table(results),
        evaluation_summary.comparisons_table(results, compare),
        evaluation_summary.costs_table(results),
    )
    tables = [score_tables.shown(scores), *(table for table in others if table.rows)]
    drawn = [*evaluation_charts.draw(results, compare), *_curves(results)]
    return Section(results.experiment, scores, tables, drawn)


def _curves(results: ExperimentResults) -> list[Chart]:
    """Of the VAEs that learned while they played, one for each game."""
    drawn = []
    for method in results.experiment.methods:
        for game in results.experiment.games:
            runs = results.runs(method.name, game)
            curve = results.evaluation.curve_of(runs[0]) if runs else None
            if curve is not None:
                axes = online_report.draw(curve, [run.record for run in runs])
                caption = f"{game}, {method.title}. {online_report.CAPTION}"
                drawn.append(Chart(f"{method.name}-{game}", caption, axes))
    return drawn


def warnings(results: EvaluationResults) -> list[str]:
    """What must be known before any number is believed: what is missing, failed, or not as in the paper."""
    found = []
    flags = results.config.flags(leave_out=("experiment", "games", "methods", "runs", "seed"))
    if flags:
        changed = ", ".join(flag.removeprefix("--") for flag in flags)
        found.append(
            f"These are not the paper's settings: {changed}. Scores can be compared with one another, and "
            "with the paper's only with that in mind."
        )
    known = [catalogue.named(each.name) for each in results.experiments if each.paper_columns]
    found += [text for experiment in known if (text := _other_limits(experiment))]
    used = {id(vae): vae for run in results.played if (vae := results.vae_of(run)) is not None}
    steps = sorted(vae.record["steps"] for vae in used.values() if vae.short)
    if steps:
        least_to_most = " to ".join(f"{number:,}" for number in sorted({steps[0], steps[-1]}))
        found.append(
            f"† {len(steps)} {'VAE was' if len(steps) == 1 else 'VAEs were'} trained for {least_to_most} steps, where "
            f"the paper's schedule has {PAPER_STEPS:,}: scores marked † say how the program works, not how good VAE-IW "
            "is."
        )
    now = results.status
    if now.left or now.running or now.failed:
        found.append(
            f"Of {len(now.jobs):,} jobs {len(now.done):,} are done, {len(now.running):,} running, "
            f"{len(now.failed):,} failed and {now.left:,} not begun: what is missing is left blank."
        )
    return found


def summary(results: EvaluationResults) -> str:
    names = ", ".join(experiment.name for experiment in results.experiments)
    runs = plural(len(results.played), "run")
    games = plural(len({run.game for run in results.played}), "game")
    decisions = plural(sum(run.record["actions"] for run in results.played), "decision")
    return f"Experiments: {names}. {runs} of {games}, {decisions}."


def _commands(results: EvaluationResults, command: str) -> list[str]:
    """How the runs and the report were made."""
    flags = [*results.config.flags(), f"--workdir={results.workdir}"]
    flags += [f"--store={os.path.relpath(results.store)}"] if results.store else []
    return [shlex.join(["python", "-m", "launch.evaluate", *flags]), *filter(None, [command])]


def _other_limits(experiment: Experiment) -> str | None:
    """What limits of its own an experiment has that stands beside the paper's numbers."""
    names = ("budget_nodes", "max_actions", "max_emulator_frames")
    own = {
        name: value
        for method in experiment.methods
        if method.name in experiment.paper_columns
        for name, value in method.settings
        if name in names and value is not None
    }
    if not own:
        return None
    limits = ", ".join(f"{name}={value}" for name, value in own.items())
    return (
        f"{experiment.name} has limits of its own ({limits}): the paper's numbers are of half a second a decision and "
        "at most 15,000 actions."
    )


def _failures_table(results: EvaluationResults) -> Table:
    columns = [Column("job", text=True)]
    columns += [Column(title, text=True, long=True) for title in ("why it failed", "log")]
    failed = sorted(results.status.failed.items())
    return Table(columns, [[name, about["why"], about["log"]] for name, about in failed])


def _configs(results: EvaluationResults) -> dict[str, str]:
    """The full config of each method, by a title that names the game it is of."""
    configs = {}
    for name, title in results.titles.items():
        run = next((run for run in results.played if run.method == name), None)
        if run is not None:
            configs[f"{title}, as in {run.game}"] = json.dumps(run.record["config"], indent=2)
    return configs


def _machines_table(results: EvaluationResults) -> Table:
    counts = collections.Counter(_machine(run.host) for run in results.played)
    columns = [Column("machine and versions", text=True, long=True), Column("runs")]
    return Table(columns, list(counts.items()))


def _machine(host: dict[str, Any]) -> str:
    parts = [host.get(name, "?") for name in ("machine", "processor", "threads")]
    return "{}, {}, {} threads; {}".format(*parts, _versions(host, " ", ", "))


def _versions(host: dict[str, Any], equals: str, separator: str) -> str:
    versions = host.get("versions", {}).items()
    return separator.join(f"{name}{equals}{version}" for name, version in versions)


def _runs_table(results: EvaluationResults) -> Table:
    """Every run: what it came to, and where."""
    runs = sorted(results.played, key=lambda run: (run.method, run.game, run.seed))
    names = {name for run in runs for name in run.record["decisions"] if name.startswith("mean_")}
    statistics = sorted(names)
    counts = ("score", "actions", "emulator_frames", "stop")
    titles = ["method", "game", "seed", *counts, *statistics, "features"]
    titles += ["machine", "processor", "versions", "started", "ended"]
    return Table(
        [Column(title) for title in titles],
        [
            [
                *(run.method, run.game, run.seed),
                *(run.record[name] for name in counts),
                *(run.record["decisions"].get(name) for name in statistics),
                run.record["config"]["features"],
                *(run.host.get("machine"), run.host.get("processor")),
                _versions(run.host, "=", " "),
                *(run.host.get("started"), run.host.get("ended")),
            ]
            for run in runs
        ],
    )


def _game_page(results: EvaluationResults, game: str, films: Films) -> dict[str, Any]:
    """For the template: a game's runs, how their scores are spread, its films and its VAEs."""
    methods = {title: results.runs(name, game) for name, title in results.titles.items()}
    runs = {title: found for title, found in methods.items() if found}
    scores = {title: [run.score for run in found] for title, found in runs.items()}
    ends = {"human": paper.human_scores().get(game), "random": paper.random_scores().get(game)}
    marks = {title: score for title, score in ends.items() if score is not None}
    caption = f"Scores of the runs of {game}"
    return {
        "name": game,
        "scores": Chart("scores", caption, charts.dots(scores, marks)) if runs else None,
        "runs": _game_runs_table(runs),
        "films": [
            films.show(run.job.run.video, f"{title}, seed {run.seed}: {run.score:,.0f} points")
            for title, found in runs.items()
            for run in found
            if run.job.run.video.exists()
        ],
        "vaes": [
            (vae, training_progress.of_run(vae.directory))
            for vae in results.trained.values()
            if vae.game == game
        ],
    }


def _game_runs_table(runs: dict[str, list[Played]]) -> Table:
    means = {"nodes": "new_nodes", "expanded": "expanded_nodes"}
    means["longest rollout"] = "max_rollout_length"
    return Table(
        [
            *(Column("method", text=True), Column("seed"), Column("score"), Column("actions")),
            Column("ended by", text=True),
            *(Column(title, "a decision", ",.1f") for title in means),
            Column("features", "model", text=True),
            *(Column("machine", text=True), Column("played", text=True)),
        ],
        [
            [
                *(title, run.seed, run.score, run.record["actions"]),
                ended_by(run.record),
                *(run.record["decisions"][f"mean_{name}"] or None for name in means.values()),
                _shortened(run.record["config"]["features"]),
                *(run.host.get("machine", ""), run.host.get("ended", "").partition("T")[0]),
            ]
            for title, found in runs.items()
            for run in found
        ],
    )


def _shortened(features: str) -> str:
    return f"{features[:12]}…" if len(features) > 16 else features
