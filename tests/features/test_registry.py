"""A feature set and a search that are known by name are known everywhere: these are added here, and nowhere else."""

from pathlib import Path

import numpy as np
import pytest

from vaeiw_jax import features, planning
from vaeiw_jax.benchmarks import features_suite as benchmark
from vaeiw_jax.benchmarks.config import BenchmarkConfig
from vaeiw_jax.benchmarks.measurements import Measurements
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import estimates, evaluation, worker
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.experiments.evaluation_results import EvaluationResults
from vaeiw_jax.experiments.expansion import expand
from vaeiw_jax.features import FEATURE_SETS, FeaturesConfig, FeatureSetEntry, Setting
from vaeiw_jax.object_names import load_object
from vaeiw_jax.planning import SEARCHES, PlannerConfig, SearchEntry
from vaeiw_jax.planning.search import SOLVED
from vaeiw_jax.planning.tree import ROOT
from vaeiw_jax.playing import video
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.reports import benchmark_report, evaluation_report


class Rows:
    """Feature 256 * r + c is true: the leftmost pixel of row r has colour c."""

    num_features = 210 * 256

    def __init__(self, config, setting):
        self.background = setting.background

    def atoms(self, seen, previous):
        return np.arange(210, dtype=np.int32) * 256 + seen.screen[:, 0]


def children_of_the_root(search):
    """Tries every action once."""
    for action in search.free_actions(ROOT):
        search.ask(ROOT, action)
        search.receive()
    return SOLVED


def refuse_thresholds(config):
    if config.threshold != 0.9:
        raise UserError("rows have no threshold")


def own(config):
    return EpisodeConfig.of(
        "Pong", features="rows", planner="children", max_actions=3, **{"budget_nodes": 9} | config
    )


@pytest.fixture
def registered():
    features.register(
        FeatureSetEntry(
            "rows", "Rows", Rows, node_seconds=0.5, maskable=True, check=refuse_thresholds
        )
    )
    planning.register_search(SearchEntry("children", "Children", children_of_the_root))
    yield
    del FEATURE_SETS["rows"], SEARCHES["children"]


@pytest.mark.usefixtures("registered")
def test_it_is_played_and_recorded_by_name():
    episode = Episode(own({}), seed=0)
    for _ in range(3):
        statistics = episode.advance().statistics
        assert (statistics.new_nodes + statistics.kept_nodes, statistics.ended) == (6, "solved")
        assert statistics.atoms_per_node == 210
    recorded = episode.record()["config"]
    assert (recorded["features"], recorded["planner"]) == ("rows", "children")


@pytest.mark.usefixtures("registered")
def test_its_own_check_is_asked_and_its_background_is_given():
    with pytest.raises(UserError, match="rows have no threshold"):
        own({"threshold": 0.5})
    assert Episode(own({"background_mask": True}), seed=0).background is not None


@pytest.mark.usefixtures("registered")
def test_a_video_shows_its_titles():
    config = own({})
    episode = Episode(config, seed=0)
    episode.advance()
    assert video.Panel(config, 0, episode.decisions()).subtitle == "Children(1), Rows, seed 0"


def custom() -> EvaluationConfig:
    return EvaluationConfig(
        "custom",
        games="Pong",
        features="rows",
        planner="children",
        runs=2,
        budget_nodes="9",
        max_actions=3,
    )


@pytest.mark.usefixtures("registered")
def test_a_dry_run_estimates_its_cost():
    jobs = expand(custom(), Path("/nowhere"))
    seconds = list(estimates.at_most(jobs).values())
    assert seconds == pytest.approx(2 * [estimates.START_SECONDS + 3 * 9 * 0.5], rel=0.01)


@pytest.mark.usefixtures("registered")
def test_an_evaluation_of_it_is_reported(tmp_path):
    evaluation.claim(custom(), tmp_path)
    for job in expand(custom(), tmp_path):
        assert worker.perform(job, lambda: False, lambda *progress: None)
    page = evaluation_report.write(EvaluationResults.of_workdir(tmp_path), tmp_path / "report")
    assert "Children Rows, 9 nodes" in page.read_text()


@pytest.mark.usefixtures("registered")
def test_it_is_benchmarked_unless_it_says_no(tmp_path):
    for name in ("bpros", "bprost", "vae"):
        assert FEATURE_SETS[name].benchmarked
    features.register(FeatureSetEntry("unmeasured", "Unmeasured", Rows, benchmarked=False))
    try:
        results = Measurements(tmp_path)
        benchmark.measure(BenchmarkConfig(games="Pong", decisions=1), results)
    finally:
        del FEATURE_SETS["unmeasured"]
    table = benchmark_report.to_markdown(benchmark.SUITE, results)
    assert "| rows |" in table
    assert "unmeasured" not in table


def test_what_the_entries_of_the_package_name_is_there():
    for entry in FEATURE_SETS.values():
        assert callable(load_object(entry.create))
        assert entry.identified is None or callable(load_object(entry.identified))
    for entry in SEARCHES.values():
        assert callable(entry.load())


def test_names_of_the_package_cannot_be_taken():
    with pytest.raises(UserError, match="there is a feature set 'ram' already"):
        features.register(FeatureSetEntry("ram", "Mine", Rows))
    with pytest.raises(UserError, match="there is a planner 'iw' already"):
        planning.register_search(SearchEntry("iw", "Mine", children_of_the_root))
    with pytest.raises(UserError, match="like a variable's, not 'my:rows'"):
        features.register(FeatureSetEntry("my:rows", "Mine", Rows))


def test_a_set_that_is_not_registered_is_found_by_where_it_is():
    name = f"{__name__}:Rows"
    made = features.create(FeaturesConfig(name), Setting("Pong", (210, 160)))
    assert isinstance(made, Rows)
    assert features.lookup(name).title == "Rows"
    config = PlannerConfig(f"{__name__}:children_of_the_root")
    assert config.search.load() is children_of_the_root


@pytest.mark.parametrize("name", ["vea", "vea:/some/directory", "ram:/some/directory", "ram:rows"])
def test_an_unknown_set_is_refused_in_a_sentence(name):
    with pytest.raises(UserError, match=f"unknown feature set '{name}'"):
        features.check(FeaturesConfig(name))


@pytest.mark.parametrize("name", ["ram", "bprost", f"{__name__}:Rows"])
@pytest.mark.parametrize(
    "setting",
    [{"literals": "either"}, {"changes": True}, {"noise": True}, {"sample_features": True}],
)
def test_settings_of_learned_features_are_refused_where_there_are_none(name, setting):
    with pytest.raises(UserError, match=f"{next(iter(setting))}.* for learned features, not"):
        features.check(FeaturesConfig(name, **setting))


def test_an_encoder_is_refused_where_there_is_none():
    with pytest.raises(UserError, match="an encoder changes nothing for --features=ram"):
        features.check(FeaturesConfig("ram", encoder="patches"))


def test_an_object_that_cannot_be_imported_is_refused_in_a_sentence():
    with pytest.raises(UserError, match="there is no nowhere:Rows to import"):
        features.create(FeaturesConfig("nowhere:Rows"), Setting("Pong", (210, 160)))
    with pytest.raises(UserError, match="there is no tests:Rows to import"):
        PlannerConfig("tests:Rows").search.load()
