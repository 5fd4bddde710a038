"""When feature code is compiled. That it is announced, `test_wheel` sees after an installation."""

from types import SimpleNamespace

import numpy as np
import pytest

from vaeiw_jax.features import (
    FeaturesConfig,
    Setting,
    bprost,
    create,
    literals,
    numba_compilation,
    screen_digest,
)


@pytest.mark.parametrize(
    ("name", "function"), [("bprost", bprost._tile_maps), ("vae", screen_digest._lanes)]
)
def test_screens_that_can_be_written_need_no_code_of_their_own(name, function):
    features = create(FeaturesConfig(name), Setting("MsPacman", (210, 160)))
    screen = np.random.default_rng(0).integers(0, 128, (210, 160), np.uint8)
    fixed = numba_compilation.read_only(screen)
    of_fixed = features.atoms(SimpleNamespace(screen=fixed), None)
    compiled = list(function.signatures)
    assert (features.atoms(SimpleNamespace(screen=screen), None) == of_fixed).all()
    assert function.signatures == compiled
    assert screen.flags.writeable


@pytest.mark.parametrize("settings", [{}, {"literals": "either", "changes": True}, {"noise": True}])
def test_nothing_is_left_to_compile_for_the_first_decision(settings):
    numba_compilation.compile_all()
    functions = (literals._true_bits, literals._values, screen_digest._lanes)
    compiled = [list(function.signatures) for function in functions]
    assert all(compiled)
    features = create(FeaturesConfig("vae", **settings), Setting("MsPacman", (210, 160)))
    screens = np.random.default_rng(0).integers(0, 128, (2, 210, 160), np.uint8)
    seen = [SimpleNamespace(screen=numba_compilation.read_only(screen)) for screen in screens]
    features.atoms(seen[1], seen[0])
    assert [list(function.signatures) for function in functions] == compiled
