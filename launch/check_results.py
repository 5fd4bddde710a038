"""Plays some of the results that come with the project again, and says whether they come out the same.

    python -m launch.check_results --sample=5

A run of 1,200 actions and 100 nodes takes a few minutes on one core; as many are played at once as there are cores.
"""

import random
import tempfile
import time
from pathlib import Path

from absl import flags

from launch import command, scheduled
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.experiments import results_table
from vaeiw_jax.experiments.local_engine import LocalEngine

_RESULTS = flags.DEFINE_string("results", "docs/results", "folder of the results")
_SAMPLE = flags.DEFINE_integer("sample", 5, "how many runs to play again")
_METHOD = flags.DEFINE_string("method", None, "only runs of this method")
_SEED = flags.DEFINE_integer("seed", None, "of the choice of runs (default: another each time)")


def choose() -> list[results_table.Line]:
    lines = results_table.read(Path(_RESULTS.value))
    methods = sorted({line.method for line in lines})
    if _METHOD.value and _METHOD.value not in methods:
        raise unknown(f"method in {_RESULTS.value}", _METHOD.value, methods)
    lines = [line for line in lines if _METHOD.value in (None, line.method)]
    if not lines:
        raise UserError(f"{_RESULTS.value} holds no results")
    if _SAMPLE.value < 1:
        raise UserError(f"--sample must be at least 1, not {_SAMPLE.value}")
    seed = int(time.time()) if _SEED.value is None else _SEED.value
    print(f"{min(_SAMPLE.value, len(lines))} of {len(lines):,} runs, chosen with --seed={seed}")
    return random.Random(seed).sample(lines, min(_SAMPLE.value, len(lines)))


def main() -> int | None:
    results, lines = Path(_RESULTS.value), choose()
    agree = 0
    with tempfile.TemporaryDirectory() as home:
        jobs = results_table.jobs_again(results, lines, Path(home))
        tally = scheduled.run("playing again", jobs, LocalEngine(), retries=0)
        if tally.stopped:
            return command.stopped()
        for line, job in zip(lines, jobs, strict=True):
            if job.name in tally.failed:
                print(f"FAILED   {line}: {tally.failed[job.name]}")
                continue
            again = results_table.line_of(job, results)
            different = line.differences(again)
            told = f"{line}: score {line.score:,} in {line.actions:,} actions"
            agree += not different
            print(f"{'DIFFERS' if different else 'agrees':8} {told}")
            for name in different:
                print(f"         {name}: {getattr(line, name)}, now {getattr(again, name)}")
    print(f"{agree} of {len(lines)} agree")
    return None if agree == len(lines) else 1


if __name__ == "__main__":
    command.run(main)
