"""The rules of who may know what."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import vaeiw_jax.vae


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


def test_vae_knows_nothing_of_the_others_but_frames_and_errors():
    files = list(Path(vaeiw_jax.vae.__path__[0]).glob("*.py"))
    assert len(files) > 5
    imported = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                imported |= {f"{node.module}.{name.name}" for name in node.names}
    ours = {".".join(name.split(".")[:2]) for name in imported if name.startswith("vaeiw_jax")}
    assert ours == {"vaeiw_jax.vae", "vaeiw_jax.frames", "vaeiw_jax.errors"}


ATOMS_OF_A_SHIPPED_VAE = """
import sys
from types import SimpleNamespace
import numpy as np
from vaeiw_jax.features import FeaturesConfig, Setting, create, identified
config = FeaturesConfig("vae", encoder=sys.argv[1])
features = create(config, Setting("Pong", (210, 160)))
features.atoms(SimpleNamespace(screen=np.zeros((210, 160), np.uint8)), None)
print(identified(config, "Pong").encoder, "jax" in sys.modules)
"""


@pytest.mark.parametrize(("encoder", "used"), [("auto", "patches False"), ("xla", "xla True")])
def test_on_a_cpu_jax_is_loaded_for_the_xla_encoder_alone(encoder, used):
    command = [sys.executable, "-c", ATOMS_OF_A_SHIPPED_VAE, encoder]
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == used
