"""Reports of records written by hand; the page is read in a real browser."""

import csv
import json
import shutil

import pytest

from tests.experiments import fabricated
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.evaluation_results import EvaluationResults
from vaeiw_jax.experiments.jobs import PLAY
from vaeiw_jax.reports import evaluation_report, evaluation_summary, score_tables

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
    return EvaluationResults.of_workdir(workdir)


@pytest.fixture(scope="module")
def page(results):
    return evaluation_report.write(results, results.workdir / "report", compare=True)


@pytest.fixture
def table(results):
    return score_tables.of_experiment(results.of(results.experiments[0]), compare=True)


def column(table, kind, key):
    return next(m for m in table.methods if (m.kind, m.key) == (kind, key))


def test_means_errors_stars_and_daggers(table):
    ours = column(table, "ours", "vae_iw_ra")
    assert ours.text("Pong") == "11*† ± 1"
    assert ours.text("Alien") == "6,500† ± 500"
    assert column(table, "ours", "rollout_iw_ra").text("Pong") == "6 ± 2"
    assert ours.text("Qbert") == ""
    assert ours.source == "ours, 2 runs"


def test_counts_are_of_games_that_all_methods_have_runs_of(table):
    """Of Pong, Breakout and Alien: VAE-IW wins Pong, ties in Breakout; Alien's human has 6,875."""
    assert table.compared_games["ours"] == ("Pong", "Breakout", "Alien")
    counts = [column(table, "ours", key).counts for key in SCORES]
    assert [count["best in game"] for count in counts] == [0, 2, 2]
    assert [count["> human"] for count in counts] == [0, 2, 2]
    assert [count["> 75% human"] for count in counts] == [0, 2, 3]


def test_the_papers_numbers_stand_beside_ours(table):
    assert column(table, "paper", "vae_iw_ra").by_game["Pong"].mean == 4.2
    assert column(table, "printed", "human").by_game["Pong"].mean == 9.3
    assert [method.key for method in table.methods][-2:] == ["vae_iw_ra", "vae_iw_ra"]


def test_a_misprint_is_told_of_beside_what_is_misprinted(results, table):
    (misprint,) = table.notes
    assert "for IW" in misprint
    ours = score_tables.of_experiment(results.of(results.experiments[0]), compare=False)
    assert ours.notes == []


def test_a_game_with_more_runs_than_others_counts_as_much_as_they_do(tmp_path):
    """Of the way from random play to a human: 100% in Pong, in one run, and 0% in Freeway, in both."""
    scores = {("Pong", 0): 9.3, ("Freeway", 0): 0, ("Freeway", 1): 0}
    custom = EvaluationConfig("custom", features="basic", games="Pong,Freeway", runs=2)
    fabricated.write(tmp_path, custom, lambda method, game, seed: scores.get((game, seed)))
    results = EvaluationResults.of_workdir(tmp_path)
    table = evaluation_summary.aggregates_table(results.of(results.experiments[0]))
    ((_, games, runs, middle, mean),) = table.rows
    assert (games, runs, middle.text, mean.text) == (2, 2, "50%", "50%")
    assert "as many runs" in table.notes[0]


def test_what_is_not_as_in_the_paper_is_said(results):
    differing, short, missing = evaluation_report.warnings(results)
    assert "budget_nodes=60" in differing
    assert "3 VAEs were trained for 71 steps, where the paper's schedule has 22,200" in short
    assert "2 not begun" in missing


def test_limits_of_an_experiments_own_are_said_and_a_choice_of_methods_is_not(tmp_path):
    config = EvaluationConfig("table", games="Pong", methods="random_play,vae_iw_universal")
    fabricated.write(tmp_path, config, lambda method, game, seed: 5)
    (told,) = evaluation_report.warnings(EvaluationResults.of_workdir(tmp_path))
    assert "table has limits of its own (budget_nodes=100, " in told
    assert "the paper's numbers are of half a second" in told


def test_a_method_without_runs_takes_nothing_from_the_others(tmp_path):
    config = EvaluationConfig("main", games="Pong,Freeway", runs=1)
    fabricated.write(
        tmp_path, config, lambda method, game, seed: None if method == "vae_iw_ra" else 5
    )
    evaluation_report.write(EvaluationResults.of_workdir(tmp_path), tmp_path / "report", True)
    told = (tmp_path / "report/report.md").read_text()
    assert "Our counts are of the 2 games that all our methods have runs of" in told
    assert "VAE-IW (ours" not in told


def test_methods_of_one_title_are_told_apart_on_the_page_of_a_game(tmp_path):
    config = EvaluationConfig("table,random", games="Pong", runs=1)
    fabricated.write(tmp_path, config, lambda method, game, seed: 5)
    results = EvaluationResults.of_workdir(tmp_path)
    assert len(set(results.titles.values())) == len(results.methods)
    page = evaluation_report.write(results, tmp_path / "report").read_text()
    assert "random play (random_play)" in page


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


def test_nodes_a_decision_are_told_for_each_method_and_game(page):
    text = (page.parent / "report.md").read_text()
    assert (
        "### New nodes a decision\n\n| game | IW B-PROST | RA RolloutIW B-PROST | RA VAE-IW |"
        in text
    )
    assert "| Pong | 30.0 | 30.0 | 30.0 |" in text
    assert "| Qbert | 5.0 | 5.0 |  |" in text
    assert "<h3>New nodes a decision</h3>" in page.read_text()


def test_markdown_has_the_table(page):
    text = (page.parent / "report.md").read_text()
    assert "| *best in game* |" in text
    assert "**11*† ± 1**" in text.replace("\\", "")


def test_failures_are_listed_with_their_reason(results, tmp_path):
    shutil.copytree(results.workdir, tmp_path, dirs_exist_ok=True)
    again = EvaluationResults.of_workdir(tmp_path)
    job = next(j for j in again.status.jobs if j.kind == PLAY and j.name not in again.status.done)
    failure = job.beside("failed", ".json")
    failure.parent.mkdir(parents=True)
    failure.write_text(json.dumps({"job": job.name, "why": "the emulator <burst>", "log": None}))
    page = evaluation_report.write(EvaluationResults.of_workdir(tmp_path), tmp_path / "report")
    assert "the emulator &lt;burst&gt;" in page.read_text()
    assert "0 jobs are running, 1 was not begun, 1 failed" in page.read_text()
    assert f"{job.name} failed: the emulator <burst>" in (page.parent / "report.md").read_text()


def first_column(tab):
    return tab.evaluate(
        "[...document.querySelector('#overview tbody').rows].map(row => row.cells[0].textContent)"
    )


def shown(tab, *identities):
    """Which of the sections can be seen."""
    return tab.evaluate(
        f"{list(identities)}.filter(id => document.getElementById(id).getBoundingClientRect().height > 0)"
    )


def test_a_click_on_a_heading_sorts_the_table(page, tab):
    tab.show(1200, 900)
    tab.open(page)
    assert first_column(tab) == ["Pong", "Breakout", "Alien", "Qbert"]
    heading = "document.querySelectorAll('#overview th button')[{}]"
    ours = tab.evaluate(
        "[...document.querySelectorAll('#overview thead')[0].rows[0].cells]"
        ".findIndex(cell => cell.textContent == 'RA VAE-IWours, 2 runs')"
    )
    tab.evaluate(heading.format(ours) + ".click()")
    assert first_column(tab) == ["Alien", "Breakout", "Pong", "Qbert"]  # 6,500, 85, 11 and none
    tab.evaluate(heading.format(ours) + ".click()")
    assert first_column(tab) == ["Pong", "Breakout", "Alien", "Qbert"]
    tab.evaluate(heading.format(0) + ".click()")
    assert first_column(tab) == ["Alien", "Breakout", "Pong", "Qbert"]
    assert tab.complaints() == []


def test_every_link_leads_somewhere_and_a_games_page_replaces_the_overview(page, tab):
    tab.show(1200, 900)
    tab.open(page)
    dangling = tab.evaluate(
        "[...document.links].map(a => a.getAttribute('href'))"
        ".filter(to => !to.startsWith('#') || !document.getElementById(to.slice(1)))"
    )
    assert dangling == []
    sections = ("overview", "game-Pong", "game-Alien")
    assert shown(tab, *sections) == ["overview"]
    tab.evaluate("document.querySelector('a[href=\"#game-Pong\"]').click()")
    assert shown(tab, *sections) == ["game-Pong"]
    tab.evaluate("document.querySelector('#game-Pong a[href=\"#overview\"]').click()")
    assert shown(tab, *sections) == ["overview"]
    assert tab.complaints() == []


@pytest.mark.parametrize("window", [{"width": 1200}, {"width": 390, "phone": True}])
def test_the_page_fits_the_window_and_holds_its_pictures(page, tab, window):
    tab.show(**window, height=844)
    tab.open(page)
    assert tab.evaluate("innerWidth") == window["width"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= window["width"]
    widths = tab.evaluate("[...document.images].map(i => i.complete && i.naturalWidth)")
    assert len(widths) > 3
    assert min(widths) > 100
    assert tab.requested() == [page.as_uri()]
    assert tab.complaints() == []


def test_learning_while_playing_is_told_by_its_curve_game_by_game(tmp_path):
    fabricated.write(tmp_path, EvaluationConfig("olive", runs=2), lambda method, game, seed: 10)
    evaluation_report.write(EvaluationResults.of_workdir(tmp_path), tmp_path / "report")
    figures = tmp_path / "report/figures"
    told = (tmp_path / "report/report.md").read_text()
    for game in ("Breakout", "MsPacman"):
        assert (figures / f"olive_online-{game}.png").read_bytes().startswith(b"\x89PNG")
        assert f"![{game}, trained while it plays (Ayton and Asai, 2022). Against simulator" in told
    assert not list(figures.glob("olive_offline*"))


def test_scores_are_drawn_against_budgets_where_there_are_several(tmp_path):
    for budgets, expected in (("60", False), ("60,120", True)):
        workdir = tmp_path / budgets
        custom = {"features": "ram,basic", "games": "Pong", "runs": 2, "budget_nodes": budgets}
        fabricated.write(workdir, EvaluationConfig("custom", **custom), lambda *run: run[2])
        evaluation_report.write(EvaluationResults.of_workdir(workdir), workdir / "report")
        assert (workdir / "report/figures/custom-curve.png").exists() == expected
