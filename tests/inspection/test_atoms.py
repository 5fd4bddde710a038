"""Atoms of screens, counted here and by loops that say what is meant."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.features.test_literals import obvious
from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, create
from vaeiw_jax.features.config import LITERALS
from vaeiw_jax.inspection import reconstructions
from vaeiw_jax.inspection.atoms import inspect_atoms, measure_atoms
from vaeiw_jax.inspection.config import InspectConfig
from vaeiw_jax.inspection.gathering import Gathered
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.playing.runs import Run

settings = pytest.mark.parametrize(
    ("literals", "changes"), [(kind, changes) for kind in LITERALS for changes in (False, True)]
)


@settings
def test_atoms_of_random_codes_are_counted(literals, changes):
    rng = np.random.default_rng(0)
    chances = rng.choice([0, 0.003, 0.2, 0.8, 0.997, 1], 37)
    bits = rng.random((300, 37)) < chances
    parents = [None, *bits[:-1]]
    usual = rng.random(37) < 0.5
    config = FeaturesConfig("vae", literals=literals, changes=changes)
    packed = np.packbits(usual) if literals == "unusual" else None
    counts = measure_atoms(config, bits, parents, packed).counts()

    atoms = [
        obvious(literals, changes, code.tolist(), usual, parent)
        for code, parent in zip(bits, parents, strict=True)
    ]
    screens = [sum(atom in of for of in atoms) for atom in range(counts["atoms"])]
    on = [atom for atom, n in enumerate(screens) if 3 <= n <= 150]  # a hundredth, and a half
    off = [atom for atom, n in enumerate(screens) if 150 < n <= 297]
    assert counts["true_per_screen"]["mean"] == pytest.approx(np.mean([len(of) for of in atoms]))
    assert counts["true_per_screen"]["least"] == min(len(of) for of in atoms)
    assert counts["true_per_screen"]["median"] == np.median([len(of) for of in atoms])
    assert counts["always_true"] == screens.count(300)
    assert counts["never_true"] == screens.count(0)
    assert counts["varying"] == sum(0 < n < 300 for n in screens) > len(on) + len(off)
    assert (counts["switched_on"], counts["switched_off"]) == (len(on), len(off))
    assert counts["switched_on_per_screen"] * 300 == pytest.approx(sum(screens[a] for a in on))
    assert counts["switched_off_per_screen"] * 300 == pytest.approx(
        sum(300 - screens[a] for a in off)
    )


@settings
def test_atoms_of_real_screens_are_those_that_a_planner_is_given(
    literals, changes, real_screens, tmp_path
):
    screens = real_screens("Pong", 30)
    usual = {"usual": "random_play"} if literals == "unusual" else {}
    config = FeaturesConfig("vae", literals=literals, changes=changes, **usual)
    features = create(config, Setting("Pong", (210, 160), random_screens=lambda: screens))
    run = Run(tmp_path, "Pong", 0)  # whose usual values are those of the screens
    recorded = {} if features.usual is None else {"usual": features.usual}
    durable.write_arrays(run.decisions, {"actions": np.zeros(1), **recorded})
    seen = Gathered("Pong", screens[1:6], list(screens[:5]))
    bits = reconstructions.true_bits(config, "Pong", seen.screens)
    found = inspect_atoms(config, seen, bits, number=5, seed=0, run=run)
    for true, screen, parent in zip(found.true, screens[1:6], screens[:5], strict=True):
        atoms = features.atoms(SimpleNamespace(screen=screen), SimpleNamespace(screen=parent))
        assert np.flatnonzero(true).tolist() == atoms.tolist()
    assert sum(part.true.shape[1] for part in found.kinds().values()) == features.num_features


def test_without_a_run_what_is_usual_is_what_a_run_of_the_seed_begins_with(real_screens):
    config = FeaturesConfig("vae", literals="unusual")
    seen = Gathered("Pong", real_screens("Pong", 30)[:3], None)
    bits = reconstructions.true_bits(config, "Pong", seen.screens)
    episode = Episode(EpisodeConfig.of("Pong", literals="unusual", budget_nodes=1), seed=5)
    usual = np.unpackbits(episode.decisions()["usual"])[:4500].astype(bool)
    found = inspect_atoms(config, seen, bits, number=3, seed=5, run=None)
    assert np.array_equal(found.true, bits != usual)


def test_changes_need_parents_which_a_short_game_has_and_a_store_has_not():
    config = FeaturesConfig("vae", changes=True)
    screens = np.zeros((4, 210, 160), np.uint8)
    bits = np.zeros((4, 4500), bool)
    found = inspect_atoms(config, Gathered("Pong", screens, None), bits, 6, seed=0, run=None)
    assert found.true.shape == (6, 3 * 4500)
    with pytest.raises(UserError, match="does not say which game"):
        inspect_atoms(config, Gathered("", screens, None), bits, 6, seed=0, run=None)


def test_the_settings_are_the_runs_unless_given():
    played = FeaturesConfig("vae:digest", threshold=0.7, literals="either", encoder="patches")
    asked = InspectConfig("model", changes=True).features("here", played)
    assert asked == FeaturesConfig("vae:here", threshold=0.7, literals="either", changes=True)
    assert InspectConfig("model").features("here") == FeaturesConfig("vae:here")
    unusual = FeaturesConfig("vae:digest", literals="unusual", usual="random_play")
    assert InspectConfig("model").features("here", unusual).usual == "random_play"
    either = InspectConfig("model", literals="either").features("here", unusual)
    assert either == FeaturesConfig("vae:here", literals="either")
