"""Beta is chosen at the elbow, and the choice is explained."""

import json
from pathlib import Path

import pytest

from tests import train_process
from tests.random_play import random_screens
from vaeiw_jax.playing import screen_store
from vaeiw_jax.training import beta_selection
from vaeiw_jax.training.beta_selection import Tradeoff, elbow

CURVE = [
    Tradeoff(1e-2, kl=10, excess_bce=1000),
    Tradeoff(1e-3, kl=100, excess_bce=700),
    Tradeoff(1e-4, kl=300, excess_bce=120),
    Tradeoff(1e-5, kl=1000, excess_bce=100),
]


def test_the_point_farthest_below_the_line_is_picked_and_explained() -> None:
    picked = elbow(CURVE[::-1])
    assert picked.picked.beta == 1e-4
    assert [point.beta for point in picked.tradeoffs] == [1e-2, 1e-3, 1e-4, 1e-5]
    assert picked.why == (
        "beta 0.0001 is the elbow. From 0.001 to it, 200 more nats of KL buy 580 nats of"
        " reconstruction (2.9 a nat); from it to 1e-05, 700 more nats of KL buy 20 nats of"
        " reconstruction (0.029 a nat)."
    )


@pytest.mark.parametrize("errors", [(10.0, 9.9, 7.0), (10.0, 9.0, 11.0)])
def test_without_an_elbow_the_best_reconstruction_is_picked(errors: tuple[float, ...]) -> None:
    points = [Tradeoff(10.0**-i, kl=2.0 * i, excess_bce=error) for i, error in enumerate(errors)]
    chosen = elbow(points)
    assert not chosen.is_elbow
    assert chosen.picked.excess_bce == min(errors)
    assert "there is no elbow between these betas" in chosen.why


def test_the_chart_is_a_png() -> None:
    assert beta_selection._draw(elbow(CURVE)).startswith(b"\x89PNG")


def test_each_beta_is_trained_and_the_choice_is_printed_and_drawn(tmp_path: Path) -> None:
    store, workdir = tmp_path / "frames", tmp_path / "run"
    screen_store.append(store, "breakout", random_screens("breakout", train_process.SCREENS))
    flags = (f"--batch_size={train_process.BATCH}", "--epochs=1", "--picture_every=0")
    process = train_process.start(
        store, workdir, "--betas=300,1,1e-4", *flags, module="launch.select_beta"
    )
    code, out, err = train_process.finish(process)
    assert code == 0, err
    for beta in ("300", "1", "0.0001"):
        assert (workdir / f"beta-{beta}" / "model" / "config.json").exists()
    chosen = json.loads((workdir / "selection.json").read_text())
    assert [point["beta"] for point in chosen["tradeoffs"]] == [300, 1, 1e-4]
    # The weight on the KL is felt even in so short a training.
    assert chosen["tradeoffs"][0]["kl"] < chosen["tradeoffs"][2]["kl"]
    assert chosen["why"] in out
    assert "<- picked" in out
    assert (workdir / "selection.png").exists()


def test_two_betas_are_too_few(tmp_path: Path) -> None:
    process = train_process.start(
        tmp_path, tmp_path / "run", "--betas=1,2", module="launch.select_beta"
    )
    code, _, err = train_process.finish(process)
    assert code == 1
    assert "an elbow needs three betas or more, not 2" in err
