import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from vaeiw_jax import durable
from vaeiw_jax.reports import charts
from vaeiw_jax.reports.charts import DARK, LIGHT, Chart
from vaeiw_jax.reports.pages import TEMPLATES
from vaeiw_jax.reports.score_statistics import Interval
from vaeiw_jax.reports.training_progress import learning_curve, minutes


@pytest.fixture
def chart():
    return Chart("scores", "a < b", charts.dots({"A<B": [1, 2], "C": [3]}, {"human": 2.5}))


def colours(svg):
    return set(re.findall("#[0-9a-f]{6}", svg.decode()))


def test_all_colours_are_of_the_theme(chart):
    assert colours(chart.svg()) <= set(LIGHT)
    assert colours(chart.svg(DARK)) <= set(DARK)
    assert len(colours(chart.svg())) == len(colours(chart.svg(DARK)))


def test_the_themes_do_not_share_a_colour_and_have_none_twice():
    assert len({*LIGHT, *DARK}) == len(LIGHT) + len(DARK)


def test_what_is_written_in_a_chart_is_text_and_escaped(chart):
    texts = {e.text for e in ElementTree.fromstring(chart.svg()).iter() if e.tag.endswith("text")}
    assert {"A<B", "C", " human "} <= texts


def test_equal_charts_have_equal_bytes(chart):
    again = Chart("scores", "a < b", charts.dots({"A<B": [1, 2], "C": [3]}, {"human": 2.5}))
    assert chart.svg() == again.svg()
    assert chart.png() == again.png()


def test_the_png_is_light_and_wide_enough_for_a_slide(chart):
    image = np.asarray(Image.open(io.BytesIO(chart.png())).convert("RGB"))
    assert image.shape[1] == charts.WIDTH * 200
    assert (image[0, 0] == 255).all()


def test_a_page_has_a_chart_in_both_themes_with_its_caption_escaped(chart):
    page = TEMPLATES.get_template("macros.html").module.chart(chart)
    assert page.count("data:image/svg+xml;base64,") == 2
    assert "(prefers-color-scheme: dark)" in page
    assert 'alt="a &lt; b"' in page


def test_games_are_ordered_from_bottom_to_top_by_value_or_else_by_name():
    bars = {"one": {"b": 1.0, "a": 3.0}, "other": {"c": 2.0}}
    assert charts.by_game(bars)[1] == ["c", "b", "a"]
    assert charts.by_game(bars, {"a": 1.0, "b": 2.0})[1] == ["c", "a", "b"]


def test_an_interval_reaches_from_low_to_high():
    axes = charts.intervals({"one": Interval(2, 1, 4)}, "percent", 100)
    (bar,) = axes.patches
    assert (bar.get_x(), bar.get_width()) == (1, 3)


def test_an_estimate_without_an_interval_is_a_mark_alone():
    axes = charts.intervals({"one": Interval(2), "other": Interval(3, 2, 4)}, "percent", 3)
    (bar,) = axes.patches
    assert bar.get_x() == 2
    assert [line.get_xdata()[0] for line in axes.lines] == [2, 3, 3]


def test_a_reference_far_from_all_estimates_is_not_drawn():
    estimates = {"one": Interval(2, 1, 4)}
    marks, near = (len(charts.intervals(estimates, "percent", at).lines) for at in (100, 5))
    assert (marks, near) == (1, 2)


def test_a_learning_curve_needs_a_step():
    assert learning_curve([]) is None
    lines = [{"kind": "train", "step": step, "excess_bce": 100 / step} for step in range(1, 9)]
    drawn = learning_curve([*lines, {"kind": "validation", "step": 8, "excess_bce": 0.0}])
    assert b"validation" in drawn.svg()
    assert b"minutes" not in drawn.svg()


def test_a_learning_curve_of_several_games_has_a_line_for_each_and_names_worst_median_and_best():
    lines = [{"kind": "train", "step": step, "excess_bce": 100 / step} for step in range(1, 9)]
    nats = {"Alien": 5.0, "Krull": 9.0, "Pong": 1.0, "Qbert": 7.0, "Tennis": 2.0}
    for step in (4, 8):
        games = {game: {"excess_bce": value / step} for game, value in nats.items()}
        lines.append({"kind": "validation", "step": step, "excess_bce": 5 / step, "games": games})
    axes = learning_curve(lines).axes
    ends = {line.get_ydata()[-1] for line in axes.lines if len(line.get_ydata()) == 2}
    assert ends == {value / 8 for value in (*nats.values(), 5.0)}
    assert [text.get_text() for text in axes.texts] == ["Krull", "Alien", "Pong"]


def test_a_learning_curve_tells_minutes_of_all_processes_that_trained(tmp_path):
    assert minutes(tmp_path) == [(0, 0.0)]
    spent = [{"seconds": 60.0, "until_step": 2}, {"seconds": 30.0, "until_step": 2}]
    sessions = [*spent, {"seconds": 90.0, "until_step": 10}]  # the second came to no step
    durable.write_json(tmp_path / "trained.host.json", {"sessions": sessions})
    assert minutes(tmp_path) == [(0, 0.0), (2, 1.0), (10, 3.0)]
    lines = [{"kind": "train", "step": step, "excess_bce": 100 / step} for step in range(1, 11)]
    drawn = learning_curve(lines, minutes=minutes(tmp_path))
    drawn.svg()
    (above,) = drawn.axes.child_axes
    low, high = drawn.axes.get_xlim()
    assert above.get_xlim() == pytest.approx((0, 3.0 + (high - 10) * 0.3))
    assert low == 0
