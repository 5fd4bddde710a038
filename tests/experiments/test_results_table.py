"""The published results: what is added, what is refused, what a check finds."""

import dataclasses
import json
import multiprocessing
import re
import shutil
from pathlib import Path

import pytest

from vaeiw_jax import durable, models, records
from vaeiw_jax.durable import DamagedFileError
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import evaluation_results, expansion, results_table
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.jobs import Job

CONFIG = EvaluationConfig(
    experiment="custom",
    features="ram,vae:universal",
    games="Pong,Boxing",
    runs=2,
    budget_nodes="3",
    max_actions=4,
)
RAM, VAE = "rollout_iw_ram_3_nodes_ra", "rollout_iw_vae_universal_3_nodes_ra"


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work directory of a small evaluation."""
    workdir = tmp_path_factory.mktemp("evaluated")
    for job in expansion.expand(CONFIG, workdir):
        job.do()
    return workdir


@pytest.fixture
def workdir(evaluated: Path, tmp_path: Path) -> Path:
    shutil.copytree(evaluated, tmp_path / "work")
    return tmp_path / "work"


def jobs_in(workdir: Path) -> list[Job]:
    return expansion.expand(CONFIG, workdir)


def altered(path: Path, **entries: object) -> None:
    """Changes a record, and what vouches for it."""
    record = durable.read_json(path)
    records.write(path, record | entries, durable.read_json(records.host_path(path)))


def test_finished_runs_become_lines_and_publishing_twice_adds_nothing(workdir, tmp_path):
    results = tmp_path / "results"
    assert results_table.publish(results, jobs_in(workdir)) == {}
    lines = results_table.read(results)
    assert [line.key for line in lines] == [
        (method, game, seed)
        for method in (RAM, VAE)
        for game in ("Boxing", "Pong")
        for seed in (0, 1)
    ]
    for line, job in zip(lines, sorted(jobs_in(workdir), key=lambda job: job.name), strict=True):
        record = json.loads(job.record.read_text())
        assert (line.score, line.actions, line.stop) == (record["score"], 4, "action_limit")
        assert line.mean_new_nodes == record["decisions"]["mean_new_nodes"]
        assert results_table.episode(results, line) == job.config.episode.identified() or line.model
    assert len({line.config for line in lines}) == len(list((results / "configs").iterdir())) == 2
    before = (results / "runs.csv").read_bytes()
    assert results_table.publish(results, jobs_in(workdir)) == {}
    assert (results / "runs.csv").read_bytes() == before


def test_what_is_published_is_not_played_again_and_the_rest_is(workdir, tmp_path):
    results, jobs = tmp_path / "results", jobs_in(workdir)
    results_table.publish(results, [job for job in jobs if job.seed == 0])
    assert {job.seed for job in results_table.missing(results, jobs)} == {1}
    told = results_table.filling(results, jobs)
    assert re.search(rf"{RAM} +2 +2 of 4 runs", told)


def test_a_torn_record_is_refused_by_name_and_the_others_are_kept(workdir, tmp_path):
    torn = jobs_in(workdir)[0]
    torn.record.write_bytes(torn.record.read_bytes()[:-40])
    refused = results_table.publish(tmp_path / "results", jobs_in(workdir))
    assert list(refused) == [torn.name]
    assert str(torn.record) in refused[torn.name]
    assert len(results_table.read(tmp_path / "results")) == 7


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"discount": 0.5}, "was played with discount=0.5, and rollout_iw_.* has 0.99"),
        ({"features": "vae:abc"}, "was played with features=vae:abc"),
    ],
)
def test_a_record_of_another_config_is_refused(workdir, tmp_path, change, sentence):
    job = jobs_in(workdir)[0]
    altered(job.record, config=durable.read_json(job.record)["config"] | change)
    refused = results_table.publish(tmp_path / "results", [job])
    assert results_table.read(tmp_path / "results") == []
    assert re.search(sentence, refused[job.name])


def test_a_record_that_is_older_than_some_settings_is_published(workdir, tmp_path):
    job = jobs_in(workdir)[0]
    config = durable.read_json(job.record)["config"]
    older = {n: v for n, v in config.items() if n not in ("zero_ties", "noop_actions", "losses")}
    altered(job.record, config=older)
    assert results_table.publish(tmp_path / "results", [job]) == {}
    assert len(results_table.read(tmp_path / "results")) == 1


def test_results_of_another_version_are_refused(workdir, tmp_path):
    job = jobs_in(workdir)[0]
    host = durable.read_json(job.host)
    for version in ("0.1.0", "99.0"):
        durable.write_json(job.host, host | {"versions": {"vaeiw_jax": version}})
        refused = results_table.publish(tmp_path / "results", [job])
        assert f"is of version {version}" in refused[job.name]


def test_a_model_nobody_ships_is_refused(workdir, tmp_path, monkeypatch):
    monkeypatch.setattr(results_table.models, "shipped_by_digest", dict)
    refused = results_table.publish(tmp_path / "results", jobs_in(workdir))
    added = results_table.read(tmp_path / "results")
    assert len(added) == len(refused) == 4
    assert all("which nobody ships" in why for why in refused.values())
    named = {line.config for line in added}
    assert {path.stem for path in (tmp_path / "results/configs").iterdir()} == named


def test_runs_against_the_clock_are_refused(tmp_path):
    config = EvaluationConfig(
        "custom", features="ram", games="Pong", runs=1, budget_seconds="0.01", max_actions=2
    )
    (job,) = expansion.expand(config, tmp_path)
    job.do()
    assert "against the clock" in results_table.publish(tmp_path / "r", [job])[job.name]


def test_another_result_for_a_line_is_refused(workdir, tmp_path):
    results, job = tmp_path / "results", jobs_in(workdir)[0]
    results_table.publish(results, [job])
    altered(job.record, score=12345)
    refused = results_table.publish(results, [job])
    assert "says score=12345, and the line of" in refused[job.name]
    assert results_table.read(results)[0].score != 12345


def test_another_config_under_the_name_of_a_method_is_refused(workdir, tmp_path):
    results = tmp_path / "results"
    results_table.publish(results, jobs_in(workdir))
    path = results / "runs.csv"
    path.write_text(path.read_text().replace(results_table.read(results)[0].config, "another"))
    altered_line = path.read_text().splitlines()[1]
    path.write_text(path.read_text().replace(altered_line + "\n", ""))
    refused = results_table.publish(results, jobs_in(workdir))
    assert any("give the method another name" in why for why in refused.values())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"budget_nodes": None}, "is played against the clock .* give --budget_nodes"),
        ({"features": "vae"}, "makes a VAE that nobody ships, .* give --vae=shipped"),
        ({"features": "vae:mine"}, "is played with the VAE .* which nobody ships"),
        ({"max_actions": 9}, f"is of config .*, and the other lines of {RAM} are of .*"),
        ({"features": "vae", "vae": "shipped"}, "and the other lines of rollout_iw_vae_3_nodes_ra"),
    ],
)
def test_what_would_be_refused_once_played_is_refused_before(
    workdir, tmp_path, monkeypatch, settings, sentence
):
    """Pong has a VAE of its own and Zaxxon has none: one line has one config in all games."""
    results = tmp_path / "results"
    results_table.publish(results, jobs_in(workdir))
    model, variables = models.load_model(models.SHIPPED / "universal")
    variables["params"]["encoder"]["conv_0"]["bias"] += 1.0
    models.save_model(tmp_path / "mine", model, variables)
    monkeypatch.chdir(tmp_path)
    other = dataclasses.replace(CONFIG, games="Pong,Zaxxon", **settings)
    with pytest.raises(UserError, match=sentence):
        results_table.require_publishable(results, expansion.expand(other, tmp_path))


@pytest.mark.parametrize(
    ("experiment", "folder"), [("table", "results"), ("left_out", "universal")]
)
def test_what_comes_with_the_project_may_be_added_to(tmp_path, experiment, folder):
    jobs = expansion.expand(EvaluationConfig(experiment, "Pong,Alien"), tmp_path)
    docs = Path(__file__).parent.parent.parent / "docs"
    results_table.require_publishable(docs / folder, jobs)


def _publish(results: Path, jobs: list[Job]) -> None:
    results_table.publish(results, jobs)


def test_processes_that_publish_at_once_lose_nothing(workdir, tmp_path):
    results, jobs = tmp_path / "results", jobs_in(workdir)
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_publish, args=(results, jobs[part::4])) for part in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(results_table.read(results)) == 8


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("method,game", "game,method", "its columns are not"),
        (",4,", ",four,", "line 2"),
    ],
)
def test_a_damaged_table_is_refused(workdir, tmp_path, old, new, sentence):
    results = tmp_path / "results"
    results_table.publish(results, jobs_in(workdir))
    path = results / "runs.csv"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DamagedFileError, match=sentence):
        results_table.read(results)


def test_published_results_can_be_reported_like_those_of_a_work_directory(workdir, tmp_path):
    results = tmp_path / "results"
    results_table.publish(results, jobs_in(workdir))
    found = evaluation_results.EvaluationResults.published(results, CONFIG, tmp_path)
    assert len(found.played) == 8
    (experiment,) = found.experiments
    assert set(found.of(experiment).means(RAM)) == {"Pong", "Boxing"}
    assert found.of(experiment).statistic(VAE, "Pong", "mean_new_nodes") > 0
    assert found.vae_of(found.runs(VAE, "Pong")[0]).directory.name == "universal"
    assert found.vae_of(found.runs(RAM, "Pong")[0]) is None


def test_lines_of_a_vae_that_is_not_here_do_not_keep_others_from_being_reported(workdir, tmp_path):
    results = tmp_path / "results"
    results_table.publish(results, jobs_in(workdir))
    path = results / "runs.csv"
    (digest,) = {line.model for line in results_table.read(results) if line.model}
    path.write_text(path.read_text().replace(digest, "ab" * 32))
    config = dataclasses.replace(CONFIG, features="ram")
    found = evaluation_results.EvaluationResults.published(results, config, tmp_path)
    assert {run.method for run in found.played} == {RAM}
    with pytest.raises(UserError, match=r"was played with the VAE ababab.*, which is not here"):
        evaluation_results.EvaluationResults.published(results, CONFIG, tmp_path)


def test_the_check_agrees_with_what_was_played_and_finds_a_line_that_was_altered(
    launch, workdir, tmp_path
):
    results = tmp_path / "results"
    results_table.publish(results, jobs_in(workdir))
    flags = (f"--results={results}", "--sample=8")
    done = launch("check_results", *flags)
    assert done.returncode == 0, done.stderr
    assert "8 of 8 agree" in done.stdout
    line = results_table.read(results)[0]
    path = results / "runs.csv"
    path.write_text(
        path.read_text().replace(f",{line.seed},{line.score},4,", f",{line.seed},777,4,", 1)
    )
    done = launch("check_results", *flags, "--seed=3")
    assert done.returncode == 1
    assert f"DIFFERS  {line}: score 777" in done.stdout
    assert f"score: 777, now {line.score}" in done.stdout
    assert "7 of 8 agree" in done.stdout


def test_an_evaluation_publishes_as_it_goes_and_goes_on_without_its_work_directory(
    launch, tmp_path
):
    flags = (*CONFIG.flags(), f"--publish_to={tmp_path / 'results'}")
    first = launch("evaluate", *flags, "--games=Pong", f"--workdir={tmp_path / 'one'}")
    assert first.returncode == 0, first.stderr
    assert "4 runs in" in first.stdout
    second = launch("evaluate", *flags, f"--workdir={tmp_path / 'two'}")
    assert second.returncode == 0, second.stderr
    assert "4 of 4 jobs are done" in second.stdout  # those of Boxing
    assert "8 runs in" in second.stdout
    status = launch("evaluate", *flags, "--status", f"--workdir={tmp_path / 'two'}")
    assert "4 of 4 runs" in status.stdout
    for more in (
        (),
        ("--status",),
    ):  # another config is no less another one where all lines are there
        other = launch("evaluate", *flags, *more, "--max_actions=9", f"--workdir={tmp_path / 'x'}")
        assert other.returncode == 1
        assert f"and the other lines of {RAM} are of" in other.stderr


def test_the_best_run_of_each_method_in_a_game_is_played_again_filmed_and_shown(
    launch, workdir, tmp_path
):
    results, page = tmp_path / "results", tmp_path / "page"
    results_table.publish(results, jobs_in(workdir))
    path = results / "runs.csv"  # as if they were methods of the table
    path.write_text(
        path.read_text().replace(RAM, "rollout_iw_ram").replace(VAE, "vae_iw_universal")
    )
    done = launch("report", f"--results={results}", "--games=Pong", "--films", f"--output={page}")
    assert done.returncode == 0, done.stderr
    assert (page / "report.html").read_text().count('src="data:video/mp4') == 2
    refused = launch("report", f"--results={results}", "--games=Alien", f"--output={page}")
    assert "of Alien yet" in refused.stderr
