"""When feature code is compiled. That it is announced, `test_wheel` sees after an installation."""

from types import SimpleNamespace

import numpy as np
import pytest

from vaeiw_jax.features import (
    FeaturesConfig,
    Setting,
    bprost,
    create,
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
