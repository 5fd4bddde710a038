"""The page of a pipeline, made of records written by hand, in a real browser."""

import pytest
from PIL import Image

from vaeiw_jax import durable
from vaeiw_jax.reports import pipeline_report


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("pipeline")
    for iteration, scores in {1: [-20, -18], 2: [3]}.items():
        for seed, score in enumerate(scores):
            record = {
                "seed": seed,
                "score": score,
                "actions": 100,
                "stop": "action_limit",
                "decisions": {"mean_new_nodes": 12.34, "mean_atoms_per_node": 99.0},
                "config": {"game": "Pong", "max_actions": 200, "max_emulator_frames": 1500},
            }
            path = workdir / f"runs/{iteration}/episodes/Pong/seed-{seed}.json"
            durable.write_json(path, record)
        vae = workdir / "vaes" / str(iteration)
        durable.write_json(vae / "trained.json", {"steps": 1234})
        line = '{"kind": "train", "step": %d, "excess_bce": %d}\n'
        (vae / "metrics.jsonl").write_text("".join(line % (n, 100 - n) for n in range(1, 50)))
        (vae / "pictures").mkdir()
        Image.new("RGB", (2000, 1000)).save(vae / "pictures" / "epoch-001.png")
    durable.write_bytes(workdir / "runs/2/videos/Pong/seed-0.mp4", b"a film")
    durable.write_bytes(workdir / "inside/1/index.html", b"")
    pipeline_report.write("Pong", 2, workdir)
    return workdir / pipeline_report.PAGE


def test_scores_films_and_steps_of_each_iteration_are_there(page):
    text = page.read_text()
    assert "iteration 1: mean score -19.0 ± 1.0 (standard error, 2 games)" in text
    assert "iteration 2: score 3 in one game" in text
    assert "Games here end after 100 actions; the paper's after 15,000." in text
    assert text.count("trained for 1,234 steps") == 2
    assert text.count("data:video/mp4;base64,") == 1
    assert text.count("data:image/jpeg;base64,") == 2
    assert 'href="inside/1/index.html"' in text
    assert 'href="inside/2/index.html"' not in text


@pytest.mark.parametrize("window", [{"width": 1280}, {"width": 390, "phone": True}])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_the_window_and_shows_its_charts(page, tab, window, dark):
    tab.show(**window, height=844, dark=dark)
    tab.open(page)
    assert tab.evaluate("innerWidth") == window["width"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= window["width"]
    assert min(tab.evaluate("[...document.images].map(i => i.complete && i.naturalWidth)")) > 100
    assert tab.requested() == [page.as_uri()]
