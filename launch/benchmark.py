"""Measures this machine, into one JSON file and one picture.

    python -m launch.benchmark --suite=planner --workdir=runs/benchmark

Start it in the project's folder, on a machine that does nothing else. What the work directory holds already is not
measured again, so that a benchmark can be made in pieces, and one that was killed goes on. Suites:

    planner    nodes per second against the emulator's own pace; growth, memory, start
    features   each feature set, per new and per repeated screen
    scaling    nodes per second against emulators, rollouts in flight and seconds a decision
    train      a training step of the autoencoder here and in the PyTorch reference of tests/
"""

from pathlib import Path

from absl import flags

from launch import command
from vaeiw_jax.benchmarks import features_suite, planner_suite, scaling_suite, training_suite
from vaeiw_jax.benchmarks.config import BenchmarkConfig
from vaeiw_jax.benchmarks.measurements import Measurements
from vaeiw_jax.errors import unknown
from vaeiw_jax.reports import benchmark_report

SUITES = {
    "planner": planner_suite,
    "features": features_suite,
    "scaling": scaling_suite,
    "train": training_suite,
}

_SUITE = flags.DEFINE_string("suite", "planner", f"what to measure: some of {','.join(SUITES)}")
_WORKDIR = flags.DEFINE_string("workdir", "runs/benchmark", "where the measurements are")
_AGAIN = flags.DEFINE_boolean("again", False, "measure again what was measured before")
command.define_flags(BenchmarkConfig)


def main() -> None:
    names = _SUITE.value.split(",")
    for name in names:
        if name not in SUITES:
            raise unknown("suite", name, SUITES)
    config = command.read_flags(BenchmarkConfig)
    workdir = Path(_WORKDIR.value)
    measurements = Measurements(workdir, again=_AGAIN.value)
    for name in names:
        SUITES[name].measure(config, measurements)
        print(f"\n{benchmark_report.to_markdown(name, measurements)}\n", flush=True)
    picture = benchmark_report.draw(measurements, workdir)
    print(f"written: {measurements.path}\npicture: {picture}")


if __name__ == "__main__":
    command.run(main)
