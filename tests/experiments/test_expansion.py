import dataclasses
from pathlib import Path

import pytest

from tests.paper_games import GAMES
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import catalogue, pipeline
from vaeiw_jax.experiments.evaluation import EvaluationConfig, claim, of_workdir
from vaeiw_jax.experiments.expansion import expand
from vaeiw_jax.experiments.jobs import COLLECT, ONLINE, PLAY, TRAIN, Job, count
from vaeiw_jax.vae.config import TrainConfig

HERE = Path("/nowhere")


def numbers(experiment, **settings):
    counts = count(expand(EvaluationConfig(experiment, **settings), HERE))
    return counts["collect"], counts["train"], counts["play"]


@pytest.mark.parametrize(
    ("experiment", "expected"),
    [
        ("main", (55, 55, 55 * 10 * 3)),
        ("features", (55, 55, 55 * 10 * 3)),
        ("latent_size", (47, 2 * 47, 47 * (10 + 5))),  # the method of Table 1 has its ten runs
        ("continuous", (47, 2 * 47, 47 * (10 + 5 + 5))),  # 4 and 6 bit share a Gaussian VAE
        ("beta", (47, 2 * 47, 47 * (10 + 5))),
        ("risk_aversion", (47, 47, 47 * (10 + 5))),
        ("no_risk_aversion", (47, 47, 47 * 5 * 2)),
        ("budget", (47, 47, 47 * 5 * 2)),
        ("budget_bprost", (47, 47, 47 * 5 * 2)),
        ("learning_methods", (51, 51, 51 * 10)),
        ("expanded_nodes", (55, 55, 55 * 2)),
        ("rollout_lengths", (55, 55, 55 * 2)),
        ("equal_nodes", (55, 55, 55 * 10 * 4)),
        ("budget_curve", (55, 55, 55 * 5 * 2 * 8)),
        ("random", (0, 0, 55 * 10)),
        ("table", (0, 0, 55 * 3 * 5)),
        ("symbols", (0, 0, 14 * (5 * 5 + 6 * 3 + 4 * 1))),
        ("searches", (0, 0, 14 * (3 * 12 + 2 * 2))),  # two of its methods have five runs
        ("olive", (2, 2, 2 * 5 * 3)),
        ("left_out", (0, 0, 8 * 3 * 3)),
        ("own_vaes", (8, 3 * 8, 8 * 5 * 3)),  # fine-tuned and from scratch on the same screens
    ],
)
def test_each_experiment_has_as_many_jobs_as_the_paper_had_runs(experiment, expected):
    assert numbers(experiment) == expected


def test_olive_gives_online_and_offline_learning_as_many_simulator_calls():
    jobs = {job.kind: job for job in expand(EvaluationConfig("olive", "Pong", seed=3), HERE)}
    collect, train, online = (jobs[kind].config for kind in (COLLECT, TRAIN, ONLINE))
    planner = collect.episode.planner
    decisions = collect.num_screens / (collect.root_screens + collect.drawn_screens)
    assert decisions * planner.budget_nodes == online.simulator_calls == 100_000
    assert (planner.budget_seconds, online.play.episode.planner.budget_nodes) == (None, 100)
    assert train.epochs * collect.num_screens == 7_500
    assert train.start_from == online.train.start_from == "universal"
    assert online.seed == 3
    assert online.play.episode.planner.action_choice == "top_two"
    again = Job.from_json(jobs[ONLINE].to_json())
    assert again.config == online
    assert again.record == HERE / again.name / "online.json"
    assert not again.timed
    players = [j for j in expand(EvaluationConfig("olive", "Pong"), HERE) if j.kind == PLAY]
    needed = {j.name.split("/")[1]: [need.split("/")[0] for need in j.needs] for j in players}
    assert needed == {"olive_universal": [], "olive_offline": ["vaes"], "olive_online": ["online"]}
    assert {j.config.episode.planner.action_choice for j in players} == {"top_two"}


def test_own_vaes_are_fine_tuned_as_on_a_laptop_or_trained_from_scratch():
    jobs = expand(EvaluationConfig("own_vaes", "Pong", runs=1), HERE)
    (collect,) = (job.config for job in jobs if job.kind == COLLECT)
    fine_tuned, longer, from_scratch = (job.config for job in jobs if job.kind == TRAIN)
    laptop = pipeline.configure("Pong", "laptop")
    assert (collect.num_screens, collect.episode.planner) == (
        laptop.collect.num_screens,
        laptop.collect.episode.planner,
    )
    of_the_place = {"screens": "", "picture_every": 1}
    assert dataclasses.replace(fine_tuned, **of_the_place) == laptop.train
    assert longer == dataclasses.replace(fine_tuned, epochs=3 * fine_tuned.epochs)
    assert from_scratch.start_from == ""
    assert from_scratch.epochs == 4 * fine_tuned.epochs
    features = {
        job.name.split("/")[1]: job.config.episode.features for job in jobs if job.kind == PLAY
    }
    assert features["vaes_bprost"].features == "bprost"
    assert features["vaes_universal"].features == "vae:universal"
    assert len({each.features for each in features.values()}) == 5


def test_games_left_out_and_own_vaes_share_games_and_what_both_compare_with():
    assert numbers("left_out,own_vaes") == (8, 3 * 8, 8 * 5 * 3 + 4 * 3 * 2 + 8 * 3)


def test_main_plays_the_papers_games():
    assert list(catalogue.named("main").games) == GAMES


def test_experiments_share_vaes_and_games_they_have_in_common():
    """Risk-averse VAE-IW of `beta` is that of `main`; what is new are 47 VAEs and their games."""
    assert numbers("main,beta") == (55, 55 + 47, 55 * 10 * 3 + 47 * 5)
    main = {job.name: job for job in expand(EvaluationConfig("main"), HERE)}
    beta = {job.name: job for job in expand(EvaluationConfig("beta"), HERE)}
    shared = main.keys() & beta.keys()
    assert len(shared) == 47 * (1 + 1 + 10)
    assert all(main[name] == beta[name] for name in shared)


def test_what_must_be_done_first_comes_first_and_is_named():
    seen = set()
    for job in expand(EvaluationConfig("continuous", games="Pong", runs=1), HERE):
        assert set(job.needs) <= seen
        assert bool(job.needs) == (job.kind == TRAIN or (job.kind == PLAY))
        seen.add(job.name)


def test_the_papers_settings():
    jobs = {
        job.name: job for job in expand(EvaluationConfig("main,budget", games="Pong", runs=1), HERE)
    }

    def episode(method):
        return jobs[f"runs/{method}/Pong/seed-0"].config.episode

    def planner(method):
        return episode(method).planner

    assert planner("iw").planner == "iw"
    assert not planner("iw").risk_averse
    assert planner("rollout_iw_ra").risk_averse
    assert planner("vae_iw_ra").risk_averse
    assert planner("vae_iw_ra").budget_seconds == 0.5
    assert planner("vae_iw_32s").budget_seconds == 32
    assert not planner("vae_iw_32s").risk_averse
    assert episode("vae_iw_ra").max_actions == 15_000
    (train,) = (job for job in jobs.values() if job.kind == TRAIN)
    assert train.config.model.beta == 1e-4
    assert episode("vae_iw_ra").features.features == f"vae:{train.directory}"


def test_runs_given_are_everybodys():
    assert numbers("beta", runs=3) == (47, 2 * 47, 47 * 3 * 2)


def test_how_vaes_are_trained_can_be_set():
    settings = {
        "epochs": 3,
        "learning_rate": 1e-3,
        "learning_rate_end": 1e-5,
        "clip_norm": 1.0,
        "tau_start": 2.0,
    }
    config = EvaluationConfig("main", games="Pong", runs=1, variant="published", **settings)
    (train,) = (job.config for job in expand(config, HERE) if job.kind == TRAIN)
    assert {name: getattr(train, name) for name in settings} == settings
    assert train.model.variant == "published"
    (usual,) = (job for job in expand(EvaluationConfig("main", "Pong"), HERE) if job.kind == TRAIN)
    assert usual.config == TrainConfig(screens=usual.config.screens)
    assert usual.name not in {job.name for job in expand(config, HERE)}


def test_a_budget_in_nodes_leaves_nothing_to_the_clock():
    jobs = expand(EvaluationConfig("main", games="Pong", budget_nodes="60"), HERE)
    assert not any(job.timed for job in jobs)
    assert any(job.timed for job in expand(EvaluationConfig("main", games="Pong"), HERE))


def test_a_protocol_is_everybodys_and_masks_only_what_can_be_masked():
    jobs = expand(EvaluationConfig("main", games="Pong", runs=1, protocol="rollout_iw"), HERE)
    plays = {job.name: job.config.episode for job in jobs if job.kind == PLAY}
    assert {config.max_emulator_frames for config in plays.values()} == {18_000}
    assert plays["runs/rollout_iw_ra/Pong/seed-0"].features.background_subtract
    assert not plays["runs/vae_iw_ra/Pong/seed-0"].features.background_subtract
    assert plays["runs/vae_iw_ra/Pong/seed-0"].planner.rules.follow_repeats == 2
    assert plays["runs/iw/Pong/seed-0"].planner.rules.follow_repeats is None


def test_shipped_vaes_need_neither_frames_nor_training():
    assert numbers("main", vae="shipped") == (0, 0, 1650)


def test_random_play_needs_no_vae():
    jobs = expand(EvaluationConfig("custom", "Pong", planner="random"), HERE)
    assert {job.kind for job in jobs} == {PLAY}


def test_learning_online_by_nodes_plays_one_rollout_after_another_on_any_number_of_cores():
    jobs = expand(EvaluationConfig("olive", "Pong", methods="olive_online", runs=1), HERE)
    (learning,) = (job.config for job in jobs if job.kind == ONLINE)
    planner = learning.play.episode.planner
    assert (planner.budget_nodes, planner.budget_seconds) == (100, None)
    assert planner.rollouts_in_flight == 1


def test_a_directory_is_found_from_any_other(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    for given, expected in [("vae:mine", f"vae:{tmp_path / 'mine'}"), ("vae:Pong", "vae:Pong")]:
        (job, *_) = expand(EvaluationConfig("custom", "Pong", features=given), HERE)
        assert job.config.episode.features.features == expected


def test_methods_with_equal_nodes_have_as_many_as_their_names_say():
    jobs = expand(EvaluationConfig("equal_nodes", games="Pong", runs=1, budget_nodes="60"), HERE)
    planners = {job.method: job.config.episode.planner for job in jobs if job.kind == PLAY}
    assert len(planners) == 4
    assert all(name.endswith("_60_nodes") for name in planners)
    assert {(p.budget_nodes, p.budget_seconds) for p in planners.values()} == {(60, None)}


def test_a_feature_set_in_a_directory_names_its_method_by_the_last_part(tmp_path):
    config = EvaluationConfig("custom", "Pong", features=f"vae:{tmp_path}/a,policy:{tmp_path}/b")
    assert {job.method for job in expand(config, HERE)} == {
        "rollout_iw_vae_a_0.5_seconds_ra",
        "rollout_iw_policy_b_0.5_seconds_ra",
    }


def test_flags_make_an_experiment_of_every_combination():
    config = EvaluationConfig(
        "custom",
        games="Pong",
        runs=3,
        features="ram,basic",
        planner="rollout_iw,iw",
        budget_nodes="5,10",
    )
    jobs = expand(config, HERE)
    assert len(jobs) == 2 * 2 * 2 * 3
    assert len({job.directory for job in jobs}) == 8
    assert {job.config.episode.planner.budget_nodes for job in jobs} == {5, 10}
    assert {job.config.episode.planner.budget_seconds for job in jobs} == {None}


def test_learned_features_are_played_with_all_literals_asked_for_and_others_once():
    config = EvaluationConfig(
        "custom", games="Pong", runs=1, features="ram,vae:universal", literals="true,either"
    )
    plays = {job.directory.parent.name: job.config.episode for job in expand(config, HERE)}
    assert {name: played.features.literals for name, played in plays.items()} == {
        "rollout_iw_ram_0.5_seconds_ra": "true",
        "rollout_iw_vae_universal_0.5_seconds_ra": "true",
        "rollout_iw_vae_universal_either_0.5_seconds_ra": "either",
    }
    widened = EvaluationConfig(
        "custom", games="Pong", runs=1, features="ram,vae:universal", changes=True, widen=True
    )
    ram, learned = (job.config.episode for job in expand(widened, HERE))
    assert not ram.features.changes
    assert not ram.planner.widen
    assert learned.features.changes
    assert learned.planner.widen
    settings = {"literals": "unusual", "usual": "random_play", "width": 2}
    pairs = EvaluationConfig(
        "custom", games="Pong", runs=1, features="bprost,vae:universal", **settings
    )
    bprost, learned = (job.config.episode for job in expand(pairs, HERE))
    assert bprost.planner.width == 1
    assert (learned.planner.width, learned.features.usual) == (2, "random_play")


def test_a_job_comes_back_from_json_as_it_was():
    for job in expand(EvaluationConfig("continuous", games="Pong", runs=1), HERE):
        again = Job.from_json(job.to_json())
        assert (again.name, again.config, again.record) == (job.name, job.config, job.record)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"experiment": "mian"}, "did you mean 'main'"),
        ({"experiment": "main", "games": "Pong,Pnog"}, "did you mean 'Pong'"),
        ({"experiment": "main", "runs": 0}, "runs must be at least 1"),
        ({"experiment": "main", "features": "ram"}, "are for --experiment=custom"),
        ({"experiment": "main", "literals": "either"}, "are for --experiment=custom"),
        ({"experiment": "main", "width": 2}, "are for --experiment=custom"),
        ({"experiment": "custom", "width": 2, "features": "ram"}, "are for learned features"),
        ({"experiment": "custom", "width": 3, "features": "vae:universal"}, "width must be 1 or 2"),
        ({"experiment": "custom", "usual": "modle"}, "did you mean 'model'"),
        ({"experiment": "custom", "literals": "ether"}, "did you mean 'either'"),
        ({"experiment": "custom", "features": "ram", "changes": True}, "are for learned features"),
        ({"experiment": "custom", "widen": True}, "a wider notion than true bits"),
        (
            {"experiment": "custom", "planner": "iw", "changes": True, "widen": True},
            "widen is for the planner rollout_iw",
        ),
        ({"experiment": "main", "budget_nodes": "5,6"}, "takes one budget"),
        ({"experiment": "main", "budget_nodes": "many"}, "must be numbers"),
        ({"experiment": "budget", "budget_nodes": "5"}, "is about its budgets"),
        ({"experiment": "equal_nodes", "budget_seconds": "1"}, "is about its budgets"),
        ({"experiment": "equal_nodes", "budget_nodes": "5,6"}, "takes one budget"),
        (
            {"experiment": "custom", "features": "vae:a/vaes/1,vae:b/vaes/1"},
            "vae:a/vaes/1 and vae:b/vaes/1 would both be recorded as rollout_iw_vae_1_0.5_seconds_ra",
        ),
        (
            {"experiment": "custom", "features": "ram,ram"},
            "--features has ram twice; name each once",
        ),
        (
            {"experiment": "custom", "budget_nodes": "5,5"},
            "--budget_nodes has 5 twice; name each once",
        ),
        ({"experiment": "budget_curve", "budget_nodes": "5,5"}, "--budget_nodes has 5 twice"),
        ({"experiment": "random,random"}, "--experiment has random twice"),
        ({"experiment": "table", "games": "Pong,ms_pacman,MsPacman"}, "--games has MsPacman twice"),
        ({"experiment": "continuous", "protocol": "published"}, "noise needs Bernoulli latents"),
        ({"experiment": "main", "num_screens": 60}, "57 frames .* fewer than a batch of 64"),
        (
            {"experiment": "custom", "width": 2, "literals": "either", "changes": True},
            "at most 10,000 features",
        ),
        ({"experiment": ""}, "--experiment= names nothing"),
        ({"experiment": "table", "games": ""}, "--games= names nothing"),
        ({"experiment": "custom", "games": ","}, "--games=, names nothing"),
        ({"experiment": "custom", "budget_nodes": " "}, "--budget_nodes=  names nothing"),
        ({"experiment": "main", "collect_nodes": 0}, "collect_nodes must be at least 1, not 0"),
        ({"experiment": "main", "budget_nodes": "5", "budget_seconds": "1"}, "not both"),
        ({"experiment": "main", "vae": "borrow"}, "choose 'shipped' or 'train'"),
        ({"experiment": "main", "protocol": "vae"}, "did you mean 'vae_iw'"),
        ({"experiment": "main", "learning_rate": -1.0}, "learning_rate must be positive"),
        ({"experiment": "main", "num_screens": 0}, "num_screens must be at least 1"),
        ({"experiment": "latent_size", "variant": "published"}, "have 15x15xC latents"),
        ({"experiment": "continuous", "tau_start": 2.0}, "are for bernoulli latents"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        EvaluationConfig(**settings)


def test_a_work_directory_knows_its_evaluation_and_refuses_another(tmp_path):
    config = EvaluationConfig("main", games="Pong", runs=2)
    claim(config, tmp_path)
    assert of_workdir(tmp_path) == (config, None)
    with pytest.raises(UserError, match="experiment=main, and this one has experiment=beta"):
        claim(EvaluationConfig("beta"), tmp_path)
    with pytest.raises(UserError, match="begun with --store=None"):
        claim(config, tmp_path, tmp_path / "store")
    more = EvaluationConfig("main", games="Pong,Breakout", runs=3)
    claim(more, tmp_path)
    assert of_workdir(tmp_path) == (more, None)


def test_some_methods_of_an_experiment_can_be_run_alone():
    config = EvaluationConfig("table", methods="random_play, rollout_iw_ram")
    (experiment,) = config.experiments()
    assert [method.name for method in experiment.methods] == ["random_play", "rollout_iw_ram"]
    with pytest.raises(UserError, match=r"unknown method of table 'ram'"):
        EvaluationConfig("table", methods="ram")
