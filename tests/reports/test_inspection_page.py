"""The page in a real browser, opened from disk."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.frames import RGB
from vaeiw_jax.inspection.config import InspectConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing import runs
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.reports.charts import DARK, LIGHT
from vaeiw_jax.reports.inspection_report import inspect

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844, "phone": True}


@pytest.fixture(scope="module")
def looked(model_of, tmp_path_factory):
    """The findings about a model and a decision made with it, and the page that shows them."""
    workdir = tmp_path_factory.mktemp("inspection")
    run = runs.Run(workdir / "run", "Pong", 0)
    config = EpisodeConfig(
        AtariConfig("Pong"),
        PlannerConfig(budget_seconds=None, budget_nodes=40),
        FeaturesConfig("basic"),
        max_actions=3,
    )
    runs.play(runs.PlayConfig(config), run.workdir)
    asked = InspectConfig(
        str(model_of()), num_screens=16, shown_screens=2, run=str(run.workdir), decision=2
    )
    return inspect(asked, workdir / "page"), workdir / "page" / "index.html"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("window", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_page_opens_from_disk_whole_and_without_a_complaint(looked, tab, window, dark):
    _, page = looked
    tab.show(**window, dark=dark)
    tab.open(page)
    assert tab.complaints() == []
    assert tab.requested() == [page.as_uri()]
    images = tab.evaluate("[...document.images].map(i => i.complete && i.naturalWidth)")
    assert len(images) > 20
    assert all(images)


@pytest.mark.parametrize("window", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_sticks_out_of_the_window(looked, tab, window):
    tab.show(**window)
    tab.open(looked[1])
    assert tab.evaluate("document.documentElement.scrollWidth") <= window["width"]
    cut_off = tab.evaluate(
        "[...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll')"
        " && e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML.slice(0, 80))"
    )
    assert cut_off == []


def test_letters_are_large_enough_to_read_on_a_phone(looked, tab):
    tab.show(**PHONE)
    tab.open(looked[1])
    assert tab.evaluate("innerWidth") == PHONE["width"]
    sizes = tab.evaluate(
        "[...document.querySelectorAll('p, td, th, figcaption, small, a, dd, dt, code')]"
        ".map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_and_its_charts_follow_the_theme(looked, tab, dark):
    tab.show(**DESKTOP, dark=dark)
    tab.open(looked[1])
    red, green, blue = map(
        int,
        re.findall(r"\d+", tab.evaluate("getComputedStyle(document.body).backgroundColor"))[:3],
    )
    assert (max(red, green, blue) < 60) == dark
    chart = tab.evaluate("document.querySelector('picture img').currentSrc")
    svg = base64.b64decode(chart.partition(",")[2]).decode()
    used, other = (DARK, LIGHT) if dark else (LIGHT, DARK)
    assert used.card in svg
    assert not set(other) & set(re.findall("#[0-9a-f]{6}", svg))


def test_a_node_that_is_clicked_shows_its_screen_and_what_is_known_of_it(looked, tab):
    findings, page = looked
    tree = findings.replanned.tree
    tab.show(**DESKTOP)
    tab.open(page)
    assert tab.evaluate("document.querySelectorAll('#tree circle').length") == tree.size
    for node in (tree.size - 1, 1):
        x, y = tab.evaluate(
            f"(() => {{ const c = document.querySelector('[data-node=\"{node}\"]');"
            " c.scrollIntoView({block: 'center', inline: 'center'});"
            " const b = c.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        tab.click(x, y)
        assert shown_facts(tab)["depth"] == str(tree.depth[node])
        assert np.array_equal(shown_screen(tab), RGB[tree.snapshots[node].screen])


def test_on_a_phone_the_root_is_in_sight_and_nothing_covers_the_tree(looked, tab):
    tab.show(**PHONE)
    tab.open(looked[1])
    inside = tab.evaluate(
        "(() => { const [root, box, panel] = ['circle.root', '.tree .scroll', '#node']"
        ".map(name => document.querySelector(name).getBoundingClientRect());"
        " return [root.left - box.left, box.right - root.right, box.top - panel.bottom]; })()"
    )
    assert min(inside) >= 0


def test_arrow_keys_walk_the_tree(looked, tab):
    tree = looked[0].replanned.tree
    tab.show(**DESKTOP)
    tab.open(looked[1])
    tab.evaluate("document.getElementById('tree').focus()")
    picked = "Number(document.querySelector('circle.picked').dataset.node)"
    first = int(tree.children[0][tree.children[0] >= 0][0])
    for key, expected in (("ArrowDown", first), ("ArrowLeft", first), ("ArrowUp", 0)):
        tab.ask("Input.dispatchKeyEvent", type="keyDown", key=key)
        assert tab.evaluate(picked) == expected


def test_the_page_says_whose_tree_it_shows(looked, tab):
    tab.open(looked[1])
    assert looked[0].replanned.same_tree
    assert "the tree of the recorded run" in tab.evaluate("document.body.innerText")


def test_the_numbers_on_the_page_are_those_in_the_file(looked, tab):
    page = looked[1]
    numbers = json.loads((page.parent / "findings.json").read_text())
    tab.open(page)
    tiles = tab.evaluate("[...document.querySelectorAll('header .tile')].map(e => e.innerText)")
    for tile, name in zip(tiles, ("features", "true_per_frame", "varying"), strict=False):
        assert tile.startswith(f"{numbers['quality'][name]:,.0f}")


def test_the_atoms_on_the_page_are_those_in_the_file(looked, tab):
    numbers = json.loads((looked[1].parent / "findings.json").read_text())["atoms"]
    tab.open(looked[1])
    names = ("atoms", "true_per_screen", "always_true", "varying", "switched_on", "switched_off")
    shown = [numbers[name] for name in names]
    shown[1] = shown[1]["mean"]
    for tile, value in zip(tiles(tab, "#atoms"), shown, strict=True):
        assert tile.split("\n")[0] == f"{value:,.0f}"
    assert "that a bit is true" in tab.evaluate("document.querySelector('#atoms').innerText")


def test_the_page_shows_how_the_searches_of_the_run_ended(looked, tab):
    findings, page = looked
    solved = (findings.recorded.decisions["ended"] == "solved").mean()
    tab.open(page)
    assert tiles(tab, "#searches")[0].startswith(f"{solved:.1%}")
    text = tab.evaluate("document.querySelector('#searches').innerText")
    assert "3 decisions of Pong, seed 0" in text
    assert "widened" not in text


def tiles(tab, section):
    return tab.evaluate(f"[...document.querySelectorAll('{section} .tile')].map(e => e.innerText)")


def shown_facts(tab):
    names, values = (
        tab.evaluate(f"[...document.querySelectorAll('#node {tag}')].map(e => e.textContent)")
        for tag in ("dt", "dd")
    )
    return dict(zip(names, values, strict=True))


def shown_screen(tab):
    source = tab.evaluate("document.querySelector('#node img').src")
    image = Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2])))
    return np.asarray(image.convert("RGB"))
