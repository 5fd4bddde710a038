import numpy as np
import pytest

from vaeiw_jax import durable
from vaeiw_jax.features import FeaturesConfig, Setting, create
from vaeiw_jax.features.config import LITERALS
from vaeiw_jax.inspection.recorded_run import notion_titles, read_run


def changed(run, **columns):
    """The run, with other statistics of its decisions."""
    arrays = durable.read_arrays(run.decisions)
    durable.write_arrays(run.decisions, arrays | {n: np.array(c) for n, c in columns.items()})
    return read_run(run)


def test_decisions_are_told_apart_by_whether_they_were_solved(record):
    found = changed(
        record(max_actions=5),
        ended=["nodes", "solved", "nodes", "solved", "nodes"],
        depth=[10, 3, 12, 5, 11],
        mean_rollout_length=[4.0, 1.0, 5.0, 2.0, 6.0],
        new_nodes=[25, 9, 25, 11, 25],
    ).summary()
    assert (found["decisions"], found["solved"], found["solved_share"]) == (5, 2, 0.4)
    solved, spent = found["by_ending"]["solved"], found["by_ending"]["budget spent"]
    assert (solved["decisions"], spent["decisions"]) == (2, 3)
    assert (solved["depth"]["mean"], spent["depth"]["mean"]) == (4, 11)
    assert (spent["depth"]["least"], spent["depth"]["most"]) == (10, 12)
    assert (solved["mean_rollout_length"], spent["mean_rollout_length"]) == (1.5, 5)
    assert (solved["mean_new_nodes"], spent["mean_new_nodes"]) == (10, 25)
    assert found["widened"] is None


def test_a_real_run_is_solved_where_it_says_so(record):
    run = record("basic", max_actions=3, budget_nodes=200)
    ended = durable.read_json(run.record)["decisions"]["ended"]
    assert read_run(run).summary()["solved"] == ended["solved"] > 0


def test_what_was_widened_had_found_nothing_new_before(record):
    run = record(max_actions=4)
    written = durable.read_json(run.record)
    settings = {"features": "vae:digest", "literals": "either", "changes": True, "widen": True}
    durable.write_json(run.record, written | {"config": written["config"] | settings})
    found = changed(run, ended=["nodes", "nodes", "solved", "nodes"], widened=[0, 1, 2, 2])
    summary = found.summary()
    assert (summary["solved"], summary["solved_by_the_first_notion"]) == (1, 3)
    assert list(summary["widened"].values()) == [1, 1, 2]
    assert summary["by_ending"]["budget spent after widening"]["decisions"] == 2


@pytest.mark.parametrize("literals", LITERALS)
def test_every_notion_of_novelty_has_a_title(literals, real_screens):
    screens = real_screens("Pong", 30)[:2]
    setting = Setting("Pong", (210, 160), random_screens=lambda: screens)
    for changes in (False, True):
        config = FeaturesConfig("vae", literals=literals, changes=changes)
        titles = notion_titles(config)
        assert len(titles) == len(create(config, setting).notions)
        assert len(set(titles)) == len(titles)


def test_random_play_has_no_searches(record):
    assert read_run(record(planner="random", max_actions=1)) is None


def test_a_run_older_than_widening_did_not_widen(record):
    run = record(max_actions=2)
    arrays = durable.read_arrays(run.decisions)
    del arrays["widened"]
    durable.write_arrays(run.decisions, arrays)
    assert read_run(run).widened.tolist() == [0, 0]
