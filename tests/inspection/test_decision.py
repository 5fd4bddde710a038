import numpy as np
import pytest

from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import bprost
from vaeiw_jax.inspection import decision
from vaeiw_jax.planning.tree import ROOT
from vaeiw_jax.playing import runs
from vaeiw_jax.vae.config import ModelConfig

NO_MODEL = None


def test_with_a_node_budget_the_recorded_tree_comes_back(record):
    run = record()
    recorded = durable.read_arrays(run.decisions)
    seen = []
    replanned = decision.replan(run, NO_MODEL, 4, on_decision=lambda done, _: seen.append(done))
    assert replanned.same_tree
    assert seen == [0, 1, 2, 3]
    assert replanned.decision.action == recorded["actions"][4] == replanned.recorded_action
    assert replanned.kept.sum() == recorded["kept_nodes"][4] + 1 > 1
    assert replanned.tree.size == replanned.kept.sum() + recorded["new_nodes"][4]
    assert replanned.score == recorded["rewards"][:4].sum()


def test_a_fresh_tree_starts_from_the_recorded_state_with_nothing_kept(record):
    run = record()
    same, fresh = (decision.replan(run, NO_MODEL, 4, fresh) for fresh in (False, True))
    assert not fresh.same_tree
    assert fresh.why_fresh == "as asked for"
    assert fresh.decision.statistics.kept_nodes == 0
    root, other = same.tree.snapshots[ROOT], fresh.tree.snapshots[ROOT]
    assert np.array_equal(root.screen, other.screen)
    assert np.array_equal(root.ram, other.ram)
    assert root.frame == other.frame


def test_with_a_budget_in_seconds_the_tree_is_said_to_be_fresh(record):
    run = record(budget_seconds=0.05, budget_nodes=None)
    replanned = decision.replan(run, NO_MODEL, 3)
    assert not replanned.same_tree
    assert "seconds" in replanned.why_fresh


def test_a_run_that_takes_another_course_here_is_noticed(record):
    run = record()
    recorded = durable.read_arrays(run.decisions)
    recorded["new_nodes"][2] += 1
    durable.write_arrays(run.decisions, recorded)
    assert decision.replan(run, NO_MODEL, 1).same_tree
    assert "another course" in decision.replan(run, NO_MODEL, 2).why_fresh
    assert "another course" in decision.replan(run, NO_MODEL, 4).why_fresh


def test_a_run_older_than_widening_comes_back_too(record):
    run = record()
    recorded = durable.read_arrays(run.decisions)
    del recorded["widened"]
    durable.write_arrays(run.decisions, recorded)
    assert decision.replan(run, NO_MODEL, 4).same_tree


@pytest.mark.parametrize("planner", ["rollout_iw", "iw"])
def test_nodes_without_a_new_atom_are_pruned(record, planner):
    replanned = decision.replan(record("basic", 1, planner=planner, budget_nodes=60), NO_MODEL, 0)
    tree, pruned = replanned.tree, replanned.pruned
    least: dict[int, int] = {}
    novel = np.ones(tree.size, bool)
    for node in range(tree.size):  # in the order in which they were generated
        if node == ROOT and planner == "rollout_iw":
            continue  # whose root writes nothing down
        depth = int(tree.depth[node]) if planner == "rollout_iw" else 0
        atoms = bprost.atoms(tree.snapshots[node].screen, features="basic").tolist()
        novel[node] = any(depth < least.get(atom, 99) for atom in atoms)
        least |= {atom: min(depth, least.get(atom, 99)) for atom in atoms}
    assert 0 < (~novel).sum() < tree.size
    assert pruned[~novel].all()
    assert not pruned[ROOT]
    if planner == "iw":  # which meets no node again
        assert np.array_equal(pruned, ~novel)


def test_the_way_chosen_leads_to_the_value_of_the_action(record):
    replanned = decision.replan(record(), NO_MODEL, 2)
    path = replanned.best_path()
    tree, discount = replanned.tree, replanned.config.planner.discount
    assert tree.parent[path].tolist() == [ROOT, *path[:-1]]
    value = sum(discount**i * tree.utility[node] for i, node in enumerate(path))
    assert value == pytest.approx(np.nanmax(replanned.decision.values))


def test_random_play_has_a_root_and_nothing_below(record):
    replanned = decision.replan(record(planner="random"), NO_MODEL, 2)
    assert replanned.tree.size == 1
    assert replanned.best_path() == []


def test_unless_told_the_decision_is_the_one_that_earned_most(record):
    run = record(max_actions=3)
    recorded = durable.read_arrays(run.decisions)
    recorded["rewards"] = np.array([0.0, 5.0, 1.0])
    durable.write_arrays(run.decisions, recorded)
    assert decision.replan(run, NO_MODEL, fresh=True).number == 1


def test_a_decision_beyond_the_end_is_refused(record):
    with pytest.raises(UserError, match="6 decisions, so --decision is from 0 to 5, not 6"):
        decision.replan(record(), NO_MODEL, 6)


def test_another_model_than_the_runs_is_refused_by_its_digest(record, model_of):
    run = record(features=f"vae:{model_of()}", max_actions=1, budget_nodes=2)
    assert decision.replan(run, model_of(), 0).same_tree
    with pytest.raises(UserError, match="give the one it was played with"):
        decision.replan(run, model_of("Breakout", ModelConfig("15x15x4")), 0)


def test_a_work_directory_without_the_run_is_refused(record, tmp_path):
    with pytest.raises(UserError, match="holds no recorded episodes"):
        runs.find(tmp_path / "empty", None, 0)
    run = record(max_actions=1)
    with pytest.raises(UserError, match="there is seed-0"):
        runs.find(run.workdir, None, 7)
    assert runs.find(run.workdir, "pong", 0) == run


@pytest.mark.parametrize(("setting", "name"), [("planner", "os:abort"), ("features", "os:abort")])
def test_code_that_a_record_names_is_not_imported(record, setting, name):
    run = record()
    written = durable.read_json(run.record)
    written["config"][setting] = name
    durable.write_json(run.record, written)
    with pytest.raises(UserError, match="which is not registered here"):
        decision.replan(run, NO_MODEL, 2)
