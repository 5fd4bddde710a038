"""The page and the README's section about published results, from lines written by hand."""

import csv
import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pytest

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import results_table
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.evaluation_results import EvaluationResults
from vaeiw_jax.experiments.methods import TABLE_METHODS
from vaeiw_jax.experiments.results_table import Line
from vaeiw_jax.reports import evaluation_charts, evaluation_report, published_report

ROOT = Path(__file__).parent.parent.parent
SCORES = {  # game, then method: three runs
    "Pong": {"random_play": [-20, -21, -21], "rollout_iw_bprost": [8, 8, 8]}
    | {"rollout_iw_ram": [0, 0, 0], "vae_iw_universal": [8, 9, 10]},
    "Breakout": {"random_play": [1, 1, 1], "rollout_iw_bprost": [40, 50, 60]}
    | {"rollout_iw_ram": [70, 70, 70], "vae_iw_universal": [30, 50, 40]},
    "Freeway": {"random_play": [0, 0, 0], "rollout_iw_bprost": [4, 4, 4]}
    | {"rollout_iw_ram": [0, 0, 0], "vae_iw_universal": [4, 4, 4]},
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("results")
    write(directory, SCORES)
    return directory


def write(directory: Path, all_scores: dict[str, dict[str, list[int]]], seconds=360.0) -> None:
    """Results with these scores, by game and method."""
    config = EvaluationConfig("table")
    for method in TABLE_METHODS:
        settings = results_table._without_game(config.episode(method, "Pong"))
        durable.write_json(directory / "configs" / f"{method.name}.json", settings)
    zeros = {f.name: 0.0 for f in dataclasses.fields(Line) if f.name.startswith("mean_")}
    lines = [
        Line(
            *(method, game, seed, score, 1000, 15_000, "game_over", 250),
            **zeros | {"mean_new_nodes": 100.0, "mean_depth": 12.0},
            **{"config": method, "model": "", "version": "0.2.0"},
            **{"processor": "Abacus", "seconds": seconds if seed == 0 else 360.0},
        )
        for game, methods in all_scores.items()
        for method, scores in methods.items()
        for seed, score in enumerate(scores)
    ]
    with (directory / "runs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(f.name for f in dataclasses.fields(Line))
        writer.writerows(map(dataclasses.astuple, lines))


@pytest.fixture(scope="module")
def results(directory: Path) -> EvaluationResults:
    return read(directory, SCORES)


def read(directory: Path, games: Iterable[str]) -> EvaluationResults:
    config = EvaluationConfig("table", games=",".join(games))
    return EvaluationResults.published(directory, config, directory / "work")


def test_the_page_has_hand_worked_numbers(results, directory):
    page = published_report.write(results, directory).read_text()
    assert "36 of 45 runs" in page
    for plot in ("scores.png", "overview.png"):
        assert (directory / plot).stat().st_size > 10_000
    # VAE-IW wins Pong, loses Breakout and ties in Freeway against B-PROST.
    row = next(
        line for line in page.splitlines() if line.startswith("| VAE-IW | RolloutIW B-PROST |")
    )
    cells = [cell.strip() for cell in row.split("|")]
    assert cells[3].startswith("50% (")
    assert cells[4] == "1 / 1 / 1"
    # Of nine pairs of runs each, it wins 7.5 in Pong, 2 in Breakout and 4.5 in Freeway.
    assert cells[5].startswith(f"{round(100 * (7.5 + 2 + 4.5) / 27)}% (")
    # 12 runs of 1,000 decisions, 100 nodes and six minutes each are three of each method.
    assert "| VAE-IW | 9 | 9,000 | 0.9 | 0.9 | 278 | 12.0 | 25.0 |" in page
    assert "| Breakout | 31.8 | 1 ± 0 | 50 ± 5.8 |" in page
    assert "| 45.7 |" in next(line for line in page.splitlines() if line.startswith("| Breakout"))


def test_the_overview_has_a_dot_for_each_game_and_method_in_the_order_of_the_last(results):
    axes = evaluation_charts.overview(published_report._table(results)).axes
    # Of random play and human: Pong -20.7 and 9.3, Breakout 1.7 and 31.8, Freeway 0 and 29.6.
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Breakout", "Pong", "Freeway"]
    dots = {
        each.get_label(): each.get_offsets()
        for each in axes.collections
        if len(each.get_offsets()) > 1
    }
    assert len(dots) == 3
    assert [round(y) for _, y in dots["VAE-IW"]] == [127, 99, 14]
    assert [x for x, _ in dots["RolloutIW RAM"]] == [0, 1, 2]


def test_the_section_says_who_is_best_and_by_how_much(results):
    section = published_report.section(results)
    assert "| VAE-IW | 2 |" in section  # Pong, and Freeway with B-PROST
    assert "| RolloutIW B-PROST | 1 |" in section
    assert "| RolloutIW RAM | 1 |" in section
    assert "1 of 3 games won, 1 tied, 1 lost: 50%, with 95% confidence" in section


def test_both_compare_with_the_papers_numbers(results, directory):
    # Above the printed 4.2 and -4.2 in Pong, below 45.7 and 86.2 in Breakout, below 5.3 and above 2 in Freeway.
    section = " ".join(published_report.section(results).split())
    assert "in 1 of 3 games with VAE-IW and in 2 of 3 with RolloutIW and B-PROST" in section
    page = published_report.write(results, directory).read_text()
    for title, games in (("VAE-IW", "1 / 0 / 2"), ("RolloutIW B-PROST", "2 / 0 / 1")):
        (row,) = (
            line for line in page.splitlines() if f"| {title} | {title} in the paper |" in line
        )
        assert games in row


def test_a_method_without_runs_is_named_and_left_out(results, directory):
    for text in (
        published_report.write(results, directory).read_text(),
        published_report.section(results),
    ):
        assert "Without runs so far: VAE-IW, recommended." in text
        assert "| VAE-IW, recommended |" not in text


PARTLY = {  # of Berzerk no human score is printed
    "Alien": {"random_play": [200, 210], "rollout_iw_bprost": [7000], "vae_iw_universal": [9000]},
    "Berzerk": {"random_play": [80, 90], "rollout_iw_bprost": [660], "vae_iw_universal": [880]},
    "Pong": {"random_play": [-21, -21]},
}


@pytest.fixture
def partly(tmp_path):
    """The section of the README, and the page, while the table is being filled."""
    write(tmp_path, PARTLY)
    results = read(tmp_path, PARTLY)
    section = " ".join(published_report.section(results).split())
    return section, published_report.write(results, tmp_path).read_text()


def test_a_method_with_few_games_leaves_the_others_theirs_to_be_compared_in(tmp_path):
    games = ("Alien", "Amidar", "Pong")
    scores = {game: {"random_play": [1], "rollout_iw_bprost": [3]} for game in games}
    scores["Alien"]["vae_iw_universal"] = [5]
    write(tmp_path, scores)
    section = " ".join(published_report.section(read(tmp_path, games)).split())
    assert "| best in (of 3 games) |" in section
    assert "| RolloutIW B-PROST | 3 |" in section
    assert "| VAE-IW |" not in section
    assert "all its methods have played, without *VAE-IW*, which has too few;" in section
    assert "1 of 1 games won" in section  # of the games that both have


def test_games_without_a_human_score_are_not_among_those_above_human(partly):
    for text in partly:
        assert "| best in (of 2 games) | above human (of 1 game with a human score) |" in text
        assert "interquartile mean (human-normalised, of 1 game, 95% interval)" in text
        assert "| VAE-IW | 2 | 1 | 132% |" in text  # of the way from 227.8 to 6,875 in Alien
    _, page = partly
    assert (
        "Our counts are of the 2 games that all our methods have runs of; those above human of the 1 that have a human "
        "score."
    ) in page


def test_while_the_table_is_being_filled_it_says_what_each_method_has(partly):
    for text in partly:
        assert (
            "being filled: 10 of 45 runs. So far *random play* has 2 runs of each of 3 games;"
            in text
        )
        assert (
            "*RolloutIW B-PROST* and *VAE-IW* have 1 run of each of 2 games (Alien to Berzerk)."
            in text
        )
        assert "not yet a sample of the 3" in text
        assert "every method in every game" not in text


def test_a_table_with_all_games_is_a_sample_and_a_full_one_has_nothing_to_add(results, tmp_path):
    assert "not yet a sample" not in published_report.section(results)
    full = {game: {method.name: [1, 2, 3] for method in TABLE_METHODS} for game in SCORES}
    write(tmp_path, full)
    whole = read(tmp_path, full)
    for text in (
        published_report.section(whole),
        published_report.write(whole, tmp_path).read_text(),
    ):
        assert "45 runs, in 3 games." in text
        assert "so far" not in text.lower()


def test_the_papers_own_count_and_its_scores_head_to_head_are_told_apart(results):
    """It prints 39, of the games that VAE-IW is best of three methods in."""
    section = " ".join(published_report.section(results).split())
    assert "In the paper's tables it wins 40 of 55, and is the best of 3 methods in 39" in section


def test_a_misprint_is_told_of_where_it_is_shown(results, directory):
    """That of Table 1 is about IW, which the results have not."""
    assert "Note: the paper prints" not in published_report.write(results, directory).read_text()


def test_a_run_without_seconds_has_no_part_in_what_it_took(tmp_path):
    write(tmp_path, SCORES, seconds=0.0)  # of the first seed
    page = published_report.write(read(tmp_path, SCORES), tmp_path).read_text()
    assert "| hours of planning |" in page
    assert "| VAE-IW | 6 | 6,000 | 0.6 | 0.6 | 278 | 12.0 | 25.0 |" in page


def test_a_readme_has_its_section_replaced_and_the_rest_left_alone(results, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n\n{published_report.BEGIN}\nold\n{published_report.END}\n\nafter\n")
    for _ in range(2):
        published_report.insert(readme, published_report.section(results))
        text = readme.read_text()
        assert text.startswith("before\n\n<!--")
        assert text.endswith("-->\n\nafter\n")
        assert "old" not in text
        assert text.count("1 of 3 games won") == 1
    readme.write_text("no place")
    with pytest.raises(UserError, match="has no place for results"):
        published_report.insert(readme, published_report.section(results))


def test_what_the_repository_says_is_what_its_results_say(tmp_path):
    directory = ROOT / "docs" / "results"
    results = EvaluationResults.published(directory, EvaluationConfig("table"), tmp_path)
    assert published_report.section(results).strip() in (ROOT / "README.md").read_text()
    shown = (directory / "README.md").read_text()
    (tmp_path / "runs.csv").write_bytes((directory / "runs.csv").read_bytes())
    assert published_report.write(results, tmp_path).read_text() == shown


def test_the_universal_vae_is_not_measured_by_the_papers_schedule(results):
    assert any(results.vae_of(run) is not None for run in results.played)
    assert not [warning for warning in evaluation_report.warnings(results) if "†" in warning]
