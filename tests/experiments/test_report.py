"""Reports of records written by hand; the page is read in a real browser."""

import csv
import html
import json
import re
import shutil
import subprocess

import pytest

from tests.experiments import fabricated
from vaeiw_jax.experiments import report, score_tables
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.jobs import PLAY
from vaeiw_jax.experiments.results import Results

SCORES = {  # method: game: runs
    "iw": {"Pong": [-20, -20], "Breakout": [2, 2], "Alien": [1000, 1000], "Qbert": [500, 500]},
    "rollout_iw_ra": {
        "Pong": [4, 8],
        "Breakout": [80, 90],
        "Alien": [7000, 7200],
        "Qbert": [100, 100],
    },
    "vae_iw_ra": {
        "Pong": [10, 12],
        "Breakout": [80, 90],
        "Alien": [6000, 7000],
        "Qbert": [None, None],
    },
}
GAMES = "Pong,Breakout,Alien,Qbert"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("evaluation")
    fabricated.write(
        workdir,
        EvaluationConfig("main", games=GAMES, runs=2, budget_nodes="60"),
        lambda method, game, seed: SCORES[method][game][seed],
        capped=lambda method, game: (method, game) == ("vae_iw_ra", "Pong"),
        steps=71,
        nodes=lambda method, game: {"Pong": 30.0, "Breakout": 20.0, "Alien": 10.0, "Qbert": 5.0}[
            game
        ],
        atoms=lambda method, game: {"Pong": 100.0, "Breakout": 200.0, "Alien": 300.0, "Qbert": 9.0}[
            game
        ],
    )
    return Results(workdir)


@pytest.fixture(scope="module")
def page(results):
    return report.write(results, results.workdir / "report", compare=True)


@pytest.fixture
def table(results):
    return score_tables.of_experiment(results, results.experiments[0], compare=True)


def column(table, kind, key):
    return next(c for c in table.columns if (c.kind, c.key) == (kind, key))


def test_means_errors_stars_and_daggers(table):
    ours = column(table, "ours", "vae_iw_ra")
    assert score_tables.text(ours.cells["Pong"]) == "11*† ± 1"
    assert score_tables.text(ours.cells["Alien"]) == "6,500† ± 500"
    assert score_tables.text(column(table, "ours", "rollout_iw_ra").cells["Pong"]) == "6 ± 2"
    assert "Qbert" not in ours.cells


def test_counts_are_of_games_that_all_methods_have_runs_of(table):
    """Of Pong, Breakout and Alien: VAE-IW wins Pong, ties in Breakout; Alien's human has 6,875."""
    assert table.compared_games["ours"] == 3
    assert [column(table, "ours", key).best for key in SCORES] == [0, 2, 2]
    assert [column(table, "ours", key).above_human for key in SCORES] == [0, 2, 2]
    assert [column(table, "ours", key).above_75_percent for key in SCORES] == [0, 2, 3]


def test_the_papers_numbers_stand_beside_ours(table):
    assert column(table, "paper", "vae_iw_ra").cells["Pong"].mean == 4.2
    assert column(table, "printed", "human").cells["Pong"].mean == 9.3
    assert [c.key for c in table.columns][-2:] == ["vae_iw_ra", "vae_iw_ra"]


def test_what_is_not_as_in_the_paper_is_said(results):
    differing, short, missing = report.warnings(results)
    assert "budget_nodes=60" in differing
    assert "3 VAEs were trained for 71 steps, where the paper's schedule has 22,200" in short
    assert "2 not begun" in missing


def test_every_file_is_there(page):
    names = {path.name for path in page.parent.rglob("*")}
    assert {"report.html", "report.md", "runs.csv", "main.csv"} <= names
    assert {"main-normalised.png", "main-normalised.svg", "main-correlation.svg"} <= names


def test_the_rank_correlation_is_in_the_report(page):
    assert "Spearman's rank correlation -1.00" in (page.parent / "report.md").read_text()


def test_every_run_is_in_the_csv_with_its_machine_and_versions(page, results):
    with (page.parent / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(results.played) == 22
    assert {row["score"] for row in rows if row["game"] == "Pong"} == {"-20", "4", "8", "10", "12"}
    assert all(row["machine"] and "ale-py=" in row["versions"] for row in rows)


def test_markdown_has_the_table(page):
    text = (page.parent / "report.md").read_text()
    assert "| *best in game* |" in text
    assert "**11*† ± 1**" in text.replace("\\", "")


def test_failures_are_listed_with_their_reason(results, tmp_path):
    shutil.copytree(results.workdir, tmp_path, dirs_exist_ok=True)
    again = Results(tmp_path)
    job = next(j for j in again.jobs if j.kind == PLAY and j.name not in again.status.done)
    failure = job.beside("failed", ".json")
    failure.parent.mkdir(parents=True)
    failure.write_text(json.dumps({"job": job.name, "why": "the emulator <burst>", "log": None}))
    page = report.write(Results(tmp_path), tmp_path / "report")
    assert "the emulator &lt;burst&gt;" in page.read_text()
    assert f"{job.name} failed: the emulator <burst>" in (page.parent / "report.md").read_text()


PROBE = """
<script>
const said = [];
const table = document.querySelector("#overview table");
const firstColumn = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
const buttons = [...table.querySelectorAll("th button")];
const ours = buttons.findIndex((b) => b.textContent.startsWith("RA VAE-IW") && b.textContent.endsWith("ours"));
said.push(firstColumn());
buttons[ours].click(); said.push(firstColumn());
buttons[ours].click(); said.push(firstColumn());
buttons[0].click(); said.push(firstColumn());
const links = [...document.querySelectorAll('a[href^="#"]')];
said.push(links.filter((a) => !document.getElementById(a.getAttribute("href").slice(1))).length);
const visible = (id) => document.getElementById(id).getBoundingClientRect().height > 0;
said.push([visible("overview"), visible("game-Pong")]);
const pictures = [...document.images];
said.push(innerWidth, document.documentElement.scrollWidth <= innerWidth);
location.hash = "#game-Pong";
setTimeout(() => {
  said.push([visible("overview"), visible("game-Pong"), visible("game-Alien")]);
  said.push(pictures.length > 3 && pictures.every((p) => p.complete && p.naturalWidth > 100));
  const told = document.createElement("pre");
  told.id = "told"; told.textContent = JSON.stringify(said);
  document.body.append(told);
}, 300);
</script>
"""


FRAME = """<!doctype html>
<iframe src="probed.html" style="border:0;width:{width}px;height:800px"></iframe>
<script>
const wait = setInterval(() => {{
  const told = document.querySelector("iframe").contentDocument.getElementById("told");
  if (told) {{ clearInterval(wait); document.body.append(told.cloneNode(true)); }}
}}, 50);
</script>
"""
"""As wide as a phone, which a window of Chromium's cannot be."""


@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_works_in_a_browser(page, tmp_path, width):
    """It sorts, its links lead somewhere, a game's page replaces the overview, nothing is wider than a phone."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium is installed")
    probed = tmp_path / "probed.html"
    probed.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
    framed = tmp_path / "framed.html"
    framed.write_text(FRAME.format(width=width))
    quiet = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
    done = subprocess.run(
        [
            browser,
            *quiet.split(),
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'browser'}",
            "--allow-file-access-from-files",  # the frame is a file of its own
            "--window-size=1300,900",
            "--virtual-time-budget=5000",
            "--dump-dom",
            framed.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "CONSOLE" not in done.stderr, done.stderr
    told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout)
    assert told, done.stdout[-500:]
    said = json.loads(html.unescape(told[1]))
    assert said == [
        ["Pong", "Breakout", "Alien", "Qbert"],
        ["Alien", "Breakout", "Pong", "Qbert"],  # 6,500, 85, 11 and none
        ["Pong", "Breakout", "Alien", "Qbert"],
        ["Alien", "Breakout", "Pong", "Qbert"],
        0,
        [True, False],
        width,
        True,
        [False, True, False],
        True,
    ]
