"""The command `launch.report`, on games really played."""

import pytest


def test_a_report_of_a_real_evaluation_with_its_films(launch, tmp_path):
    flags = ("--experiment=random", "--games=Pong", "--runs=2", "--max_actions=10")
    assert launch("evaluate", *flags, f"--workdir={tmp_path}").returncode == 0
    done = launch("report", f"--workdir={tmp_path}", "--videos=1", "--compare=paper")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report/report.html").read_text()
    assert page.count("data:video/mp4;base64,") == 1
    assert "max_actions=10" in page
    assert "2 runs of 1 game, 20 decisions" in page


WORKDIR, RESULTS = "--workdir=none", "--results=docs/results"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((WORKDIR, "--games=Pong"), "--games changes nothing in the report of a --workdir"),
        ((WORKDIR, "--experiment=main"), "--experiment changes nothing in the report"),
        ((WORKDIR, "--readme=README.md"), "--readme changes nothing in the report"),
        ((WORKDIR, "--films"), "--films changes nothing in the report"),
        ((RESULTS, "--videos=1"), "--videos changes nothing about --results"),
        ((RESULTS, "--films"), "it is for a full report; give --games or --experiment"),
        ((RESULTS, "--output=none"), "--output changes nothing on the page"),
        ((RESULTS, "--games=Pong", "--readme=README.md"), "--readme changes nothing in a full"),
    ],
)
def test_flags_that_would_change_nothing_are_refused(launch, flags, sentence):
    done = launch("report", *flags)
    assert done.returncode == 1
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "holds no evaluation"),
        (("--compare=papers",), "did you mean 'paper'"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(launch, tmp_path, flags, sentence):
    done = launch("report", f"--workdir={tmp_path}", *flags)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
