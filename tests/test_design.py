"""The rules of who may know what."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "vaeiw_jax"
SOURCES = sorted(path for path in PACKAGE.rglob("*.py"))


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


def imports(path: Path) -> set[str]:
    """The modules a file imports, and the names it imports from them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def test_vae_knows_nothing_of_the_others_but_frames_and_errors():
    files = list((PACKAGE / "vae").glob("*.py"))
    assert len(files) > 5
    imported = set().union(*map(imports, files))
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


def test_nobody_in_the_package_but_the_reports_imports_the_reports():
    importing = [
        path
        for path in SOURCES
        if PACKAGE / "reports" not in path.parents
        and any(name.startswith("vaeiw_jax.reports") for name in imports(path))
    ]
    assert importing == []


TAG = re.compile(
    r"</?(a|b|body|br|button|circle|code|dd|details|div|dl|dt|em|figcaption|figure|footer|g|h[1-6]|head|header|html|i|img"
    r"|li|line|main|nav|ol|p|path|picture|pre|script|section|small|source|span|strong|style|summary|svg|table|tbody|td"
    r"|text|tfoot|th|thead|title|tr|ul|video)(\s[^<>]*)?/?>"
)


def strings(path: Path) -> Iterator[str]:
    """The string literals of a file, docstrings aside."""
    tree = ast.parse(path.read_text())
    documentation = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in documentation:
                yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield ast.unparse(node)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_html_is_in_templates_and_not_in_python(path):
    assert [text for text in strings(path) if TAG.search(text)] == []
