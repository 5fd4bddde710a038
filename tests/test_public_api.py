"""What `import vaeiw_jax` offers, and how little it costs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vaeiw_jax as vx
from tests.random_play import random_screens
from vaeiw_jax import frames, models
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, create

HEAVY = {"ale_py", "flax", "jax", "matplotlib", "numba", "numpy", "orbax", "scipy"}


def loaded_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_importing_it_loads_nothing_heavy():
    assert not loaded_after("import vaeiw_jax") & HEAVY


def test_planning_on_a_simulator_of_ones_own_loads_nothing_but_numpy():
    loaded = loaded_after("import vaeiw_jax; vaeiw_jax.Planner, vaeiw_jax.PlainWorld")
    assert loaded & HEAVY == {"numpy"}


def test_feature_sets_by_name_load_nothing_but_numpy():
    assert loaded_after("import vaeiw_jax; vaeiw_jax.features") & HEAVY == {"numpy"}


def test_every_public_name_is_there_and_documented():
    offered = set(vx.__all__) - {"__version__"}
    assert offered <= set(dir(vx))
    for name in offered:
        documentation = getattr(vx, name).__doc__
        assert documentation, name
        assert not documentation.startswith(f"{name}("), f"{name} has a generated docstring"


def test_what_is_offered_is_what_its_own_documentation_lists():
    listing = vx.__doc__.partition("playing  ")[2]
    missing = {name for name in vx.__all__ if name not in listing} - {"__version__"}
    assert not missing


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Planer'"):
        _ = vx.Planer


def test_a_shipped_vae_encodes_as_the_planner_sees_it_and_redraws_its_frames():
    vae = vx.load_vae("MsPacman")
    assert vae.about["game"] == "MsPacman"
    screens = random_screens("ms_pacman", 4)
    pictures = frames.from_screens(screens)
    posterior = vae.encode(pictures)
    assert posterior.shape == (4, 15, 15, 20)
    planner_sees = create(FeaturesConfig("vae"), Setting("MsPacman", (210, 160)))

    class Seen:
        screen = screens[3]

    atoms = planner_sees.atoms(Seen, None)
    assert set(atoms) == set(np.flatnonzero(posterior[3] > np.log(9)))
    redrawn = vae.decode(posterior > 0)
    assert np.abs(redrawn - pictures).mean() < 0.05


def test_a_vae_is_loaded_from_a_directory_or_refused_in_a_sentence(tmp_path):
    shipped = models.SHIPPED / "Pong"
    assert vx.load_vae(shipped).config == vx.load_vae("Pong").config
    with pytest.raises(UserError, match="neither a directory nor a VAE that is shipped"):
        vx.load_vae("Zaxxon")
    with pytest.raises(UserError, match="there is no model in"):
        vx.load_vae(tmp_path)


def test_a_name_means_the_same_vae_to_whoever_is_given_it(tmp_path, monkeypatch):
    """A directory comes before a shipped model of its name."""
    model, variables = models.load_model(models.SHIPPED / "Pong")
    models.save_model(tmp_path / "universal" / "model", model, variables, {"game": "mine"})
    assert vx.load_vae("universal").about["games"]
    monkeypatch.chdir(tmp_path)
    assert vx.load_vae("universal").about == {"game": "mine"}
    assert models.named("universal") == models.model_directory("vae:universal", "Pong")
    assert models.named("Pong") == models.SHIPPED / "Pong"


def test_shipped_models_are_those_at_the_top_of_the_checkout():
    top = Path(__file__).parent.parent / "checkpoints"
    assert top == models.SHIPPED
    assert models.shipped_models() == sorted(path.name for path in top.iterdir())


def test_the_package_says_that_it_has_types():
    assert (Path(vx.__file__).parent / "py.typed").exists()
