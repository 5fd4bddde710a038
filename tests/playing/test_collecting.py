import json

import numpy as np
import pytest

from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing import collecting, screen_store
from vaeiw_jax.playing.collecting import CollectConfig, Collector, collect
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.workdirs import BusyError


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(collecting, "BATCH", 20)


def config(game="Pong", planner="rollout_iw", max_actions=15_000, **others):
    episode = EpisodeConfig(
        AtariConfig(game),
        PlannerConfig(planner, budget_seconds=None, budget_nodes=10),
        FeaturesConfig("ram"),
        max_actions,
    )
    return CollectConfig(episode, **{"num_screens": 64} | others)


def collected(config, directory):
    record = collect(config, directory)
    assert record is not None
    return screen_store.load(directory).screens, record


def test_a_decision_gives_its_root_and_some_of_the_nodes_it_generated(tmp_path, monkeypatch):
    """The root's screen is the one played on; the others are those of new nodes, each once."""
    screens, _ = collected(config(num_screens=15), tmp_path)
    collector = Collector(config(num_screens=15), tmp_path / "again")
    for decision in range(3):
        episode = collector.episode
        before, kept = episode.snapshot.screen.tobytes(), episode.planner.tree.size
        root, *drawn = (screen.tobytes() for screen in screens[5 * decision : 5 * decision + 5])
        assert root == before
        choice = episode.planner.decide()
        new = [s.screen.tobytes() for s in episode.planner.tree.snapshots[kept:]]
        assert set(drawn) <= set(new)
        episode.act(choice)


def test_there_are_exactly_as_many_frames_as_were_asked_for(tmp_path):
    screens, record = collected(config(num_screens=33), tmp_path)
    assert len(screens) == record["screens"] == 33
    assert screens.shape[1:] == (210, 160)


def test_a_store_can_be_made_to_grow(tmp_path):
    first, _ = collected(config(num_screens=30), tmp_path / "grown")
    grown, _ = collected(config(num_screens=60), tmp_path / "grown")
    assert len(grown) == 60
    assert (grown[:30] == first).all()


@pytest.mark.parametrize("crash_in", ["write_arrays", "write_json", "between"])
def test_a_crash_at_any_write_neither_loses_nor_repeats_a_screen(tmp_path, monkeypatch, crash_in):
    expected, _ = collected(config(), tmp_path / "undisturbed")
    for survived in range(1, 5):
        directory = tmp_path / f"{crash_in}-{survived}"
        with monkeypatch.context() as patch:
            crash_after(patch, crash_in, survived)
            with pytest.raises(MemoryError):
                collect(config(), directory)
        screens, _ = collected(config(), directory)
        assert (screens == expected).all()


def crash_after(patch, where, survived):
    """Lets the process die at the given write, once `survived` of its kind went well."""
    names = {"write_arrays": "durable.write_arrays", "write_json": "durable.write_json"}
    name = names.get(where, "screen_store.append")
    module, attribute = name.split(".")
    module = getattr(collecting, module)
    real, calls = getattr(module, attribute), []

    def dying(*arguments, **options):
        calls.append(arguments)
        if len(calls) > survived - (where == "between"):
            raise MemoryError
        return real(*arguments, **options)

    patch.setattr(module, attribute, dying)


def test_duplicates_are_counted_and_dropped_on_request(tmp_path):
    kept, record = collected(config("MsPacman", num_screens=60), tmp_path / "kept")
    distinct = len({screen.tobytes() for screen in kept})
    assert record["duplicates"] == 60 - distinct > 0
    unique, record = collected(
        config("MsPacman", num_screens=60, drop_duplicates=True), tmp_path / "dropped"
    )
    assert len({screen.tobytes() for screen in unique}) == len(unique) == 60
    assert record["duplicates"] == 0


def test_episode_follows_episode(tmp_path):
    _, record = collected(config(max_actions=3, num_screens=40, seed=5), tmp_path)
    assert record["finished_episodes"] == len(record["scores"]) == 2
    assert record["first_seed"] == 5


def test_random_play_gives_the_screens_it_passes(tmp_path):
    screens, _ = collected(config(planner="random", num_screens=30), tmp_path)
    assert len(screens) == 30
    assert len(np.unique(screens, axis=0)) > 5


def test_a_store_of_other_settings_is_refused(tmp_path):
    collected(config(num_screens=5), tmp_path)
    with pytest.raises(UserError, match=r"drawn_screens=4, .*, and this run has drawn_screens=2"):
        collect(config(drawn_screens=2), tmp_path)


def test_a_finished_collection_is_not_made_again_and_an_interrupted_one_has_no_record(tmp_path):
    told = []
    assert collect(config(), tmp_path, lambda: len(told) > 3, told.append) is None
    assert not (tmp_path / "collection.json").exists()
    assert told[0] == (0, 64, "episode 1, score 0, 0 duplicates")
    assert screen_store.count(tmp_path) == told[-1].done
    screens, record = collected(config(), tmp_path)
    assert len(screens) == 64
    assert collect(config(), tmp_path, tell=pytest.fail) == record
    sessions = json.loads((tmp_path / "collection.host.json").read_text())["sessions"]
    assert len(sessions) == 2


def test_a_collection_is_of_the_model_it_began_with(tmp_path):
    episode = EpisodeConfig.of("Pong", features="vae:universal", budget_nodes=2)
    assert collect(CollectConfig(episode, num_screens=1), tmp_path) is not None
    begun = json.loads((tmp_path / "config.json").read_text())
    assert begun["features"] == episode.identified().features.features != "vae:universal"


def test_two_processes_do_not_collect_into_one_store(tmp_path):
    """A second process is refused while the first is at work, which is when it tells of its progress."""
    refused = []

    def also_collect(progress):
        if not refused:
            with pytest.raises(BusyError, match="another process is working on") as raised:
                collect(config(), tmp_path)
            refused.append(raised)

    assert collect(config(num_screens=10), tmp_path, tell=also_collect) is not None
    assert refused


def test_screens_without_the_save_to_go_on_from_are_refused(tmp_path):
    collected(config(num_screens=30), tmp_path)
    (tmp_path / "progress.npz").unlink()
    with pytest.raises(UserError, match=r"progress\.npz, .* is missing"):
        collect(config(num_screens=40), tmp_path)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"num_screens": 0}, "num_screens must be at least 1"),
        ({"root_screens": 2}, "root_screens must be 0 or 1"),
        ({"root_screens": 0, "drawn_screens": 0}, "nothing would be collected"),
        ({"drawn_screens": -1}, "drawn_screens must be 0 or more"),
        ({"planner": "random", "root_screens": 0}, "no nodes to draw from"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"emulators": -1}, "emulators must be 0 or more"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        config(**settings)
