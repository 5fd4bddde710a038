"""The command `launch.benchmark`, on next to nothing: that every suite runs, not how fast."""

import json

import pytest

from vaeiw_jax.benchmarks import planner_suite, players
from vaeiw_jax.benchmarks.config import BenchmarkConfig
from vaeiw_jax.benchmarks.measurements import Measurements
from vaeiw_jax.benchmarks.players import Player, Setup
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing.episodes import EpisodeConfig

TINY = (
    "--games=Pong",
    "--opening=1",
    "--decisions=2",
    "--seconds=0.03",
    "--long_seconds=0.1",
    "--memory_decisions=4",
    "--memory_nodes=2",
    "--in_flight=1",
    "--parts=rates,bprost,growth,memory,start",
)


def test_planner_features_and_scaling_end_in_one_file_and_one_picture(
    launch, tmp_path, monkeypatch
):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")  # five sizes of batches
    suites = "--suite=planner,features,scaling"
    done = launch("benchmark", suites, f"--workdir={tmp_path}", *TINY)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "benchmark.json").read_text())
    planner = results["planner"]
    assert set(planner) == {"rates", "bprost", "growth", "memory", "start"}
    rates = planner["rates"]["Pong"]
    assert len(rates["rates"]) == 5
    assert all(rate > 0 for rate in rates["rates"].values())
    assert set(rates["decisions"].values()) == {2}
    assert planner["memory"]["Pong"]["decisions"] == [0, 1, 2, 3, 4]
    assert set(results["scaling"]) == {"emulators", "budgets"}
    assert results["features"]["milliseconds"]["Pong"]["vae"]["new"] > 0
    encoders = results["features"]["encoders"]["Pong"]
    assert encoders["patches"]["1"] > 0
    assert set(encoders["xla"]) == {"1", "2", "4", "8", "16"}
    assert "| VAE-IW, one emulator, of the emulator bound | 0.60 | 0.95 |" in done.stdout
    assert (tmp_path / "benchmark.png").read_bytes().startswith(b"\x89PNG")


def test_settings_are_compared_on_one_core():
    config = BenchmarkConfig(games="Pong", opening=1, decisions=2, seconds=0.03)
    settings = {"RAM": {"features": "ram"}, "UCB1": {"features": "ram", "action_choice": "ucb1"}}
    measured = planner_suite._on_one_core(settings, config, "Pong")
    assert set(measured["rates"]) == set(measured["nodes_a_decision"]) == {"RAM", "UCB1"}
    assert all(rate > 0 for rate in measured["rates"].values())


@pytest.mark.parametrize("part", planner_suite.ON_ONE_CORE)
def test_what_is_compared_are_settings_of_an_episode(part):
    for settings in planner_suite.ON_ONE_CORE[part].values():
        EpisodeConfig.of("Pong", **{"features": "vae:universal"} | settings)


def test_settings_are_compared_on_the_same_states():
    guide = players._Game(Setup("Breakout", "ram"))
    player = players._Game(Setup("Breakout", "basic"))
    actions = guide.play(8, budget_nodes=5)["actions"]
    played = player.play(8, budget_nodes=9, actions=actions)
    assert played["actions"] == actions
    assert played["nodes"] == [9] * 8
    assert player._episode.snapshot.state == guide._episode.snapshot.state


def test_what_was_measured_is_not_measured_again_unless_asked_for(tmp_path):
    first = Measurements(tmp_path)
    assert first.missing("planner", "rates", ["Pong", "Alien"]) == ["Pong", "Alien"]
    first.put("planner", "rates", "Pong", {"rate": 1.0})
    later = Measurements(tmp_path)
    assert later.of("planner", "rates") == {"Pong": {"rate": 1.0}}
    assert later.missing("planner", "rates", ["Pong", "Alien"]) == ["Alien"]
    again = Measurements(tmp_path, again=True)
    assert again.missing("planner", "rates", ["Pong", "Alien"]) == ["Pong", "Alien"]
    again.put("planner", "rates", "Pong", {"rate": 2.0})
    assert again.missing("planner", "rates", ["Pong", "Alien"]) == ["Alien"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"parts": "rate"}, "unknown part 'rate'; did you mean 'rates'?"),
        ({"games": "Pong,Pnog"}, "unknown game 'Pnog'"),
        ({"decisions": 0}, "decisions must be 1 or more, not 0"),
        ({"in_flight": "one"}, "in_flight must be numbers such as 1,2,4, not 'one'"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(settings, sentence):
    with pytest.raises(UserError) as refused:
        BenchmarkConfig(**settings)
    assert str(refused.value).startswith(sentence)


def test_a_suite_there_is_not_is_refused_in_a_sentence(launch, tmp_path):
    done = launch("benchmark", "--suite=train,planer", f"--workdir={tmp_path}")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["error: unknown suite 'planer'; did you mean 'planner'?"]


def test_a_player_that_cannot_play_is_answered_with_a_sentence():
    setup = Setup("Pong", "ram", rollouts_in_flight=2000)
    with (
        Player(setup) as player,
        pytest.raises(UserError, match="ended with code 1; what it printed"),
    ):
        player.play(1, budget_nodes=5)
