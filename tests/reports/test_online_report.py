"""The page of online learning, made of a curve written by hand, in a real browser."""

import pytest

from vaeiw_jax.experiments.online import COLUMNS
from vaeiw_jax.reports import online_report


def line(number, calls, features, model, **others):
    known = {
        "round": number,
        "simulator_calls": calls,
        "features": features,
        "model": model,
        "score": 10 * number,
        "actions": 100,
        "stop": "game_over",
        "screens": 500 * number,
    }
    return dict.fromkeys(COLUMNS) | known | others


LINES = [
    line(1, 9000, "bprost", None),
    line(2, 19000, "bprost", "a1", excess_bce=250.5, steps=1234),
    line(3, 26000, "vae:a1", "b2", excess_bce=150.5, mean_misfit=9000.25, chosen_misfit=9500.0),
    line(4, 30000, "vae:b2", None, mean_misfit=8900.0, chosen_misfit=9100.0),
]
EVALUATION = [{"seed": s, "score": 70, "actions": 9, "stop": "action_limit"} for s in (0, 1)]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("online")
    online_report.write("Pong", LINES, EVALUATION, workdir)
    return workdir / online_report.PAGE


def test_every_game_says_what_it_was_played_with_and_what_was_learned_from_it(page):
    text = page.read_text()
    assert text.count(">B-PROST<") == 2
    assert "the VAE after game 2" in text
    assert "the VAE after game 3" in text
    assert ">1,234<" in text
    assert ">9,000.2<" in text
    assert "The last training, after game 3" in text
    assert "mean score 70.0 ± 0.0 (standard error, 2 games)" in text


def test_a_given_vae_is_called_so_and_a_page_before_the_end_has_no_evaluation(tmp_path):
    online_report.write("Pong", [line(1, 100, "vae:c3", None)], [], tmp_path)
    text = (tmp_path / online_report.PAGE).read_text()
    assert "the given VAE" in text
    assert "Games with the last VAE" not in text
    assert "The last training" not in text


@pytest.mark.parametrize("window", [{"width": 1280}, {"width": 390, "phone": True}])
def test_the_page_fits_the_window_and_shows_its_charts(page, tab, window):
    tab.show(**window, height=844, dark=False)
    tab.open(page)
    assert tab.evaluate("document.documentElement.scrollWidth") <= window["width"]
    assert min(tab.evaluate("[...document.images].map(i => i.complete && i.naturalWidth)")) > 100
    assert tab.requested() == [page.as_uri()]
