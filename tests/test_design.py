"""The rules of who may know what."""

import subprocess
import sys


def imported_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_planning_knows_neither_emulator_nor_network_nor_features():
    loaded = imported_by("vaeiw_jax.planning")
    assert not loaded & {"jax", "ale_py", "numba", "flax"}
    assert {name for name in loaded if name.startswith("vaeiw_jax.")} <= {
        "vaeiw_jax.errors",
        "vaeiw_jax.object_names",
        *(name for name in loaded if name.startswith("vaeiw_jax.planning")),
    }


def test_features_know_no_planner_and_no_emulator():
    loaded = imported_by("vaeiw_jax.features")
    assert not loaded & {"ale_py", "vaeiw_jax.planning", "vaeiw_jax.atari"}


def test_playing_waits_for_no_jax():
    loaded = imported_by("vaeiw_jax.playing.episodes, vaeiw_jax.features.vae, launch.play")
    assert not loaded & {"jax", "flax", "orbax", "optax"}
