"""Against numbers worked out by hand, and against the paper's own counts."""

import math

import numpy as np
import pytest

from vaeiw_jax.experiments import paper
from vaeiw_jax.reports import score_statistics, score_tables
from vaeiw_jax.reports.score_tables import (
    OURS,
    PAPER,
    PRINTED,
    MeanScore,
    MethodScores,
    ScoreTable,
)


def counts(name, what):
    """Of each column of one of the paper's own tables, put through the counting of ours."""
    printed = paper.table(name)
    columns = [key for key in printed.scores if key not in ("human", "random")]
    table = score_table(printed.games, {key: printed.scores[key] for key in columns})
    return tuple(method.counts[what] for method in table.methods)


def score_table(games, columns, kinds=None):
    methods = [
        MethodScores(
            key,
            key,
            (kinds or {}).get(key, PAPER),
            {game: MeanScore(score) for game, score in scores.items()},
        )
        for key, scores in columns.items()
    ]
    table = ScoreTable(games, methods)
    score_tables.count(table)
    return table


@pytest.mark.parametrize(
    ("table", "best"),
    [
        ("main_0.5s", (2, 14, 39)),
        ("latent_size", (29, 20)),
        ("continuous_vs_discrete", (11, 18, 22)),  # the paper prints 10, 18, 23
        ("beta", (19, 29)),
        ("risk_aversion", (16, 32)),
        ("no_risk_aversion", (15, 32)),
        ("budget_0.5s_vs_32s", (11, 37)),
        ("budget_32s", (19, 29)),
        ("learning_methods", (20, 12, 19)),
    ],
)
def test_the_papers_scores_give_the_papers_counts_of_the_best(table, best):
    assert counts(table, "best in game") == best


def test_the_papers_scores_give_the_papers_counts_above_human():
    """For IW the paper prints 4 and 4."""
    assert counts("main_0.5s", "> human") == (7, 22, 25)
    assert counts("main_0.5s", "> 75% human") == (7, 26, 28)


def test_the_papers_tables_are_all_there():
    assert len(paper.table("main_0.5s").games) == 55
    assert len(paper.table("learning_methods").games) == 51
    assert len(paper.human_scores()) == len(paper.random_scores()) == 48
    assert paper.table("main_0.5s").scores["vae_iw_ra"]["Asterix"] == 999_500
    assert "Asterix" in paper.table("main_0.5s").capped["vae_iw_ra"]
    assert "Alien" not in paper.table("main_0.5s").capped["vae_iw_ra"]


def test_the_standard_error_of_two_runs_is_half_their_distance():
    assert score_statistics.standard_error([10, 20]) == pytest.approx(5.0)
    assert score_statistics.standard_error([10]) is None


def test_ties_count_for_both():
    table = score_table(("x", "y"), {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 1.0, "y": 3.0}})
    assert {method.key: method.counts["best in game"] for method in table.methods} == {
        "a": 1,
        "b": 2,
    }


def test_rivals_are_judged_with_both_groups_and_marked_in_the_papers():
    """Rainbow is best of the paper's in x and y, and of ours in y; what is bold is said of the paper's."""
    table = score_table(
        ("x", "y"),
        {
            "vae_iw_ra": {"x": 1.0, "y": 1.0},
            "ours": {"x": 9.0, "y": 3.0},
            "rainbow": {"x": 5.0, "y": 5.0},
        },
        {"ours": OURS, "rainbow": PRINTED},
    )
    theirs, ours, rainbow = table.methods
    assert rainbow.counts["best in game"] == 2
    assert [rainbow.by_game[game].best for game in "xy"] == [True, True]
    assert [ours.by_game[game].best for game in "xy"] == [True, False]
    assert (theirs.counts["best in game"], ours.counts["best in game"]) == (0, 1)
    note = score_tables.shown(table).notes[0]
    assert "rainbow are compared with both; their own bold scores" in note


def test_rivals_beside_our_methods_alone_are_marked_among_them():
    columns = {"ours": {"x": 9.0, "y": 3.0}, "rainbow": {"x": 5.0, "y": 5.0}}
    table = score_table(("x", "y"), columns, {"ours": OURS, "rainbow": PRINTED})
    assert [each.counts["best in game"] for each in table.methods] == [1, 1]
    assert "compared with both" not in score_tables.shown(table).notes[0]


def test_normalised_scores_go_from_random_to_human():
    assert score_statistics.normalised(-20.7, -20.7, 9.3) == 0
    assert score_statistics.normalised(9.3, -20.7, 9.3) == pytest.approx(100)
    assert score_statistics.normalised(4.2, -20.7, 9.3) == pytest.approx(83)  # VAE-IW in Pong


def test_the_interquartile_mean_is_that_of_the_middle_half():
    assert score_statistics.interquartile_mean(
        np.array([100.0, 1, 2, 3, 4, 5, 6, -50])
    ) == pytest.approx(3.5)


def test_the_bootstrap_draws_within_games():
    """Two games whose runs are all alike: drawing them again changes nothing, though the games differ."""
    same = score_statistics.bootstrap([[1.0, 1.0], [9.0, 9.0]], score_statistics.overall_mean)
    assert (same.low, same.value, same.high) == (5, 5, 5)
    spread = score_statistics.bootstrap([[0.0, 2.0], [9.0, 9.0]], score_statistics.overall_mean)
    assert (spread.low, spread.value, spread.high) == (4.5, 5, 5.5)


def test_a_single_run_of_a_game_tells_no_interval():
    groups = [[1.0, 2.0], [9.0]]
    alone = score_statistics.bootstrap(groups, score_statistics.overall_mean)
    assert alone.value == 4
    assert not alone.is_known
    improved = score_statistics.probability_of_improvement(groups, [[1.5, 1.5], [8.0, 8.0]])
    assert improved.value == 0.75
    assert not improved.is_known


def test_the_wilson_interval_of_eight_of_ten():
    """By hand: (0.8 + 0.19207) / 1.38415 = 0.71674, give or take 1.41598 * sqrt(0.016 + 0.0096036) = 0.22657."""
    interval = score_statistics.wilson(8, 10)
    assert interval.value == 0.8
    assert interval.low == pytest.approx(0.4902, abs=2e-4)
    assert interval.high == pytest.approx(0.9433, abs=2e-4)


def test_the_share_of_games_won_counts_a_tie_as_half():
    share = score_statistics.share_won(
        {"a": 2, "b": 1, "c": 1, "d": 9}, {"a": 1, "b": 1, "c": 3, "e": 1}
    )
    assert (share.won, share.tied, share.lost) == (1, 1, 1)
    assert share.interval.value == 0.5


def test_runs_are_paired_by_game_and_seed():
    ours = {(game, seed): 10.0 + seed for game in "abcdefgh" for seed in (0, 1)}
    theirs = {key: value - 1 for key, value in ours.items()} | {("z", 0): 5.0}
    paired = score_statistics.paired(ours, theirs)
    assert (paired.won, paired.tied, paired.lost) == (16, 0, 0)
    assert paired.p_value == pytest.approx(2 / 2**8)  # all eight games of one sign, two-sided
    few = score_statistics.paired({("a", 0): 1.0}, {("a", 0): 2.0})
    assert math.isnan(few.p_value)


def test_rank_correlation_of_opposite_orders():
    rho, p = score_statistics.rank_correlation([1, 2, 3, 4, 5], [50, 40, 30, 20, 10])
    assert rho == pytest.approx(-1)
    assert p < 0.01
    assert score_statistics.rank_correlation([1, 2], [2, 1]) is None
