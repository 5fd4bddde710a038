"""Makes a report of an evaluation, finished or not: tables, figures, a page to read.

    python -m launch.report --workdir=runs/main --compare=paper

Open WORKDIR/report/report.html: it holds all it shows.
"""

import shlex
import sys
from pathlib import Path

from absl import flags
from tqdm import tqdm

from launch import command
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.experiments.evaluation_results import EvaluationResults
from vaeiw_jax.playing import video
from vaeiw_jax.reports import evaluation_report

_WORKDIR = flags.DEFINE_string("workdir", None, "of the evaluation", required=True)
_OUTPUT = flags.DEFINE_string("output", None, "where the report goes (default: WORKDIR/report)")
_COMPARE = flags.DEFINE_string("compare", None, "paper: set our numbers beside the paper's")
_VIDEOS = flags.DEFINE_integer(
    "videos", 0, "film this many runs of each method and game that are not filmed yet"
)


def film(results: EvaluationResults, number: int) -> None:
    runs = [run for run in results.played if run.seed < results.config.seed + number]
    for run in tqdm(runs, "videos", unit=" runs", disable=not runs):
        video.film(run.job.run, run.config)


def main() -> None:
    if _COMPARE.value not in (None, "paper"):
        raise unknown("comparison", _COMPARE.value, ("paper",))
    if _VIDEOS.value < 0:
        raise UserError(f"--videos must be 0 or more, not {_VIDEOS.value}")
    workdir = Path(_WORKDIR.value)
    results = EvaluationResults.of_workdir(workdir)
    if not results.played:
        raise UserError(f"{workdir} holds no finished run yet; see --status of launch.evaluate")
    film(results, _VIDEOS.value)
    output = Path(_OUTPUT.value) if _OUTPUT.value else workdir / "report"
    made_with = shlex.join(["python", "-m", "launch.report", *sys.argv[1:]])
    page = evaluation_report.write(results, output, _COMPARE.value == "paper", made_with, print)
    print(f"{len(results.played):,} runs: {page}")


if __name__ == "__main__":
    command.run(main)
