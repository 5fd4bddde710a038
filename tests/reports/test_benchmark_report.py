"""Tables and picture of measurements written by hand."""

import io

import numpy as np
import pytest
from PIL import Image

from vaeiw_jax.benchmarks import features_suite, planner_suite, scaling_suite, training_suite
from vaeiw_jax.benchmarks.measurements import Measurements
from vaeiw_jax.reports import benchmark_report

GAMES = ("Pong", "Alien")
METHODS = (
    planner_suite.ONE_EMULATOR,
    planner_suite.PARALLEL,
    planner_suite.BPROST,
    planner_suite.ONE_CORE,
)


@pytest.fixture
def measurements(tmp_path):
    made = Measurements(tmp_path)
    for game in GAMES:
        rates = {name: 50.0 * (i + 1) for i, name in enumerate(METHODS)} | {
            planner_suite.BOUND: 200.0
        }
        parts = {
            "rates": {
                "rates": rates,
                "late": dict.fromkeys(METHODS, 1),
                "decisions": dict.fromkeys(METHODS, 25),
            },
            "symbols": {
                "rates": {"B-PROST": 300.0, "recommended": 360.0, planner_suite.PAIRS: 250.0},
                "nodes_a_decision": {"B-PROST": 150.0, planner_suite.PAIRS: 125.0},
                "seconds_a_decision": 0.5,
            },
            "searches": {"rates": {"uniform": 500.0, "UCB1": 450.0}},
            "bprost": {"milliseconds": 0.5},
            "growth": {"seconds": (0.5, 32.0)}
            | {
                name: {"short": 100, "long": 90, "long_nodes": 3200}
                for name in planner_suite.GROWING
            },
            "memory": {
                "decisions": [0, 50, 500],
                "player": [100, 300, 310],
                "emulators": [10, 20, 30],
            },
            "start": {"first": 9.0, "second": 3.5},
        }
        for part, measured in parts.items():
            busy = 0.5 if (part, game) == ("start", "Pong") else 0.0
            made.put(planner_suite.SUITE, part, game, measured | {"others": busy})
        each = {name: {"new": 2.0, "again": 0.5} for name in ("bprost", "vae")}
        encoders = {"patches": {"1": 2.5}, "xla": {"1": 20.0, "16": 8.0}, "device": "cpu"}
        made.put(features_suite.SUITE, features_suite.ENCODERS, game, encoders)
        made.put(features_suite.SUITE, features_suite.PART, game, each)
        emulators = {"rates": {"0x1": 10.0, "1x1": 20.0, "1x2": 30.0}, "alone": {"1": 40.0}}
        made.put(scaling_suite.SUITE, "emulators", game, emulators)
        made.put(
            scaling_suite.SUITE, "budgets", game, {"seconds": [0.1, 0.5], "rates": [60.0, 70.0]}
        )
    seconds = {
        training_suite.JAX: [2.0],
        training_suite.TORCH: [3.0],
        training_suite.CHANNELS_LAST: [4.0],
    }
    made.put(training_suite.SUITE, training_suite.PART, "15x15x20, batch 4", {"seconds": seconds})
    return made


@pytest.mark.parametrize(
    ("suite", "line"),
    [
        ("planner", "| VAE-IW, one emulator, of the emulator bound | 0.60 | 0.95 | 0.25 |"),
        ("planner", "| B-PROST atoms of a new screen | 1.5 ms | 0.5 ms | 0.50 ms |"),
        ("planner", "| start: to the end of the first decision | 10 s | 4 s | 3.5 s |"),
        ("planner", "| decisions that end more than 20 ms late | 1% |  | 4.0% of 200 |"),
        ("planner", "| Pong | 200 | 0.25 | 0.50 | 0.75 | 1.00 |"),
        ("planner", "| Pong | 300 | 360 | 250 |"),
        ("planner", "| geometric mean, of B-PROST | 1 | 1.20 | 0.83 |"),
        (
            "planner",
            "| the recommended protocol on one core, nodes/s, of those with B-PROST | 0.95 | 1.1 | 1.20 |",
        ),
        ("planner", "| geometric mean, of uniform | 1 | 0.90 |"),
        (
            "planner",
            "| pairs of unusual bits on one core, nodes in 0.5 s, the median game | 150 |  | 125 |",
        ),
        ("features", "| bprost | 2.000 | 0.500 |"),
        ("features", "| patches | 2.50 |  |"),
        ("features", "| xla | 20.00 | 8.00 |"),
        ("scaling", "| Pong: nodes/s | 1 in flight | 2 in flight | no planner, emulators alone |"),
        ("scaling", "| 1 emulator processes | 20 | 30 | 40 |"),
        ("scaling", "| 0 emulator processes | 10 |  |  |"),
        ("scaling", "| Alien | 60 | 70 |"),
        ("train", "| PyTorch | 3.000 | 0.67 |"),
    ],
)
def test_the_tables_have_what_was_measured(measurements, suite, line):
    assert line in benchmark_report.to_markdown(suite, measurements).splitlines()


def test_what_was_measured_on_a_busy_machine_is_named(measurements):
    text = benchmark_report.to_markdown("planner", measurements)
    assert "The machine was not idle, others using a share of it, in start of Pong (50%)." in text


def test_the_picture_has_a_panel_for_all_that_was_measured(measurements, tmp_path):
    path = benchmark_report.draw(measurements, tmp_path)
    picture = np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("L"))
    rows = 5  # the first panel takes a row, the other eight share four
    assert picture.shape[0] == pytest.approx(200 * (0.7 + 3.5 * rows), abs=2)


def test_nothing_measured_is_an_empty_picture_and_no_table(tmp_path):
    empty = Measurements(tmp_path)
    assert benchmark_report.draw(empty, tmp_path).exists()
    assert benchmark_report.to_markdown("features", empty) == ""
