"""Makes a report of an evaluation, finished or not, or of the results that come with the project.

    python -m launch.report --workdir=runs/main --compare=paper
    python -m launch.report --results=docs/results --readme=README.md
    python -m launch.report --results=docs/results --games=Pong --films --output=runs/pong

The first leaves tables, figures and a page, WORKDIR/report/report.html, that holds all it shows. The second writes the
page beside the results and the README's section about them. The third plays the best run of each method in a game
again, films it and shows it on such a page.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from absl import flags
from tqdm import tqdm

from launch import command
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.experiments import results_table
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.evaluation_results import EvaluationResults, Played
from vaeiw_jax.playing import video
from vaeiw_jax.playing.runs import PlayConfig
from vaeiw_jax.reports import evaluation_report, published_report

_WORKDIR = flags.DEFINE_string("workdir", None, "of the evaluation")
_OUTPUT = flags.DEFINE_string(
    "output",
    None,
    "where a full report goes (default: WORKDIR/report, of published results runs/report)",
)
_COMPARE = flags.DEFINE_string("compare", None, "paper: set our numbers beside the paper's")
_VIDEOS = flags.DEFINE_integer(
    "videos", 0, "film this many runs of each method and game that are not filmed yet"
)
_RESULTS = flags.DEFINE_string("results", None, "folder of published results, instead of --workdir")
_EXPERIMENT = flags.DEFINE_string("experiment", "table", "--results: the experiment they are of")
_README = flags.DEFINE_string("readme", None, "--results: a README whose section is written anew")
_GAMES = flags.DEFINE_string("games", None, "--results: a full report of these, with commas")
_FILMS = flags.DEFINE_boolean(
    "films", False, "--results, in a full report: play the best runs again and film them"
)

_OF_FULL_REPORTS = ("films", "output", "compare")
_OF_RESULTS = ("experiment", "readme", "games", "films")


def check_flags() -> None:
    """Refuses flags that would change nothing."""
    if _COMPARE.value not in (None, "paper"):
        raise unknown("comparison", _COMPARE.value, ("paper",))
    if _VIDEOS.value < 0:
        raise UserError(f"--videos must be 0 or more, not {_VIDEOS.value}")
    if bool(_WORKDIR.value) == bool(_RESULTS.value):
        both = ", not both" if _WORKDIR.value else ""
        raise UserError(f"give --workdir of an evaluation or --results, such as docs/results{both}")
    if _WORKDIR.value:
        _refuse(_OF_RESULTS, "in the report of a --workdir", "is for --results")
        return
    _refuse(("videos",), "about --results", "is for --workdir; --films films the best runs")
    if is_full():
        _refuse(("readme",), "in a full report", "is for the page about all --results")
    else:
        why = "is for a full report; give --games or --experiment as well"
        _refuse(_OF_FULL_REPORTS, "on the page about all results", why)


def _refuse(names: Sequence[str], where: str, why: str) -> None:
    for name in names:
        if command.given(name):
            raise UserError(f"--{name} changes nothing {where}: it {why}")


def is_full() -> bool:
    """Whether published results get a full report, rather than the page about all of them."""
    return bool(_GAMES.value) or _EXPERIMENT.value != "table"


def film(results: EvaluationResults, number: int) -> None:
    runs = [run for run in results.played if run.seed < results.config.seed + number]
    for run in tqdm(runs, "videos", unit=" runs", disable=not runs):
        assert isinstance(run.job.config, PlayConfig)
        video.film(run.job.run, run.job.config.episode)


def film_the_best(results: EvaluationResults) -> None:
    best: dict[tuple[str, str], Played] = {}
    for run in results.played:
        key = run.method, run.game
        if key not in best or run.score > best[key].score:
            best[key] = run
    for run in tqdm(best.values(), "playing and filming", unit=" runs"):
        run.job.do()
        assert isinstance(run.job.config, PlayConfig)
        video.film(run.job.run, run.job.config.episode)


def report(results: EvaluationResults, output: Path) -> None:
    made_with = shlex.join(["python", "-m", "launch.report", *sys.argv[1:]])
    page = evaluation_report.write(results, output, _COMPARE.value == "paper", made_with, print)
    print(f"{len(results.played):,} runs: {page}")


def report_published(directory: Path) -> None:
    config = EvaluationConfig(_EXPERIMENT.value, games=_GAMES.value)
    output = Path(_OUTPUT.value or "runs/report")
    results = EvaluationResults.published(directory, config, output)
    if not (directory / results_table.FILE).exists():
        raise UserError(f"{directory} holds no results: it has no {results_table.FILE}")
    if not results.played:
        of = f" of {_GAMES.value}" if _GAMES.value else ""
        raise UserError(f"{directory} holds no results of --experiment={_EXPERIMENT.value}{of} yet")
    if _README.value:
        published_report.require_place(Path(_README.value))
    if is_full():
        if _FILMS.value:
            film_the_best(results)
        report(results, output)
        return
    page = published_report.write(results, directory)
    print(f"{len(results.played):,} runs: {page}")
    if _README.value:
        published_report.insert(Path(_README.value), published_report.section(results))


def main() -> None:
    check_flags()
    if _RESULTS.value:
        report_published(Path(_RESULTS.value))
        return
    workdir = Path(_WORKDIR.value or "")
    results = EvaluationResults.of_workdir(workdir)
    if not results.played:
        raise UserError(f"{workdir} holds no finished run yet; see --status of launch.evaluate")
    film(results, _VIDEOS.value)
    report(results, Path(_OUTPUT.value) if _OUTPUT.value else workdir / "report")


if __name__ == "__main__":
    command.run(main)
