from types import SimpleNamespace

import numpy as np
import pytest

from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, check, create


def test_each_byte_makes_one_atom_true():
    memory = SimpleNamespace(ram=np.arange(128, dtype=np.uint8)[::-1] * 2)
    features = create(FeaturesConfig("ram"), Setting("KingKong", (250, 160)))
    atoms = features.atoms(memory, None)
    assert features.num_features == 128 * 256
    assert atoms.tolist() == [256 * byte + 2 * (127 - byte) for byte in range(128)]
    assert atoms.dtype == np.int32


def test_an_unknown_feature_set_names_the_nearest():
    with pytest.raises(
        UserError, match="unknown feature set 'bprots'; did you mean 'bpros' or 'bprost'"
    ):
        check(FeaturesConfig("bprots"))
