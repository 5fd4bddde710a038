import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaeiw_jax.policies.targets import TARGETS, target

NOT_TRIED = np.nan


def test_the_softmax_of_returns():
    odds = np.exp([1.0, 3.0, 2.0])
    expected = np.insert(odds / odds.sum(), 1, 0.0)
    values = np.array([2.0, NOT_TRIED, 6.0, 4.0])
    np.testing.assert_allclose(target(values, "softmax", 2.0), expected, rtol=1e-6)


def test_ranks_tell_points_apart_where_a_life_is_at_stake():
    values = np.array([-500_000.0, 10.0, 10.0, 20.0])
    odds = np.exp([0.0, 0.5, 0.5, 1.0])
    np.testing.assert_allclose(target(values, "rank", 1.0), odds / odds.sum(), rtol=1e-6)


def test_the_best_actions_share_alike():
    values = np.array([5.0, 1.0, NOT_TRIED, 5.0])
    assert target(values, "best", 1.0).tolist() == [0.5, 0.0, 0.0, 0.5]


@pytest.mark.parametrize("kind", TARGETS)
@given(
    values=st.lists(st.floats(-1e6, 1e6) | st.just(NOT_TRIED), min_size=1, max_size=18).filter(
        lambda values: not np.isnan(values).all()
    ),
    temperature=st.floats(0.01, 100),
)
def test_whatever_the_returns_they_are_probabilities_in_their_order(kind, values, temperature):
    values = np.array(values)
    probabilities = target(values, kind, temperature)
    assert probabilities.sum() == pytest.approx(1, abs=1e-5)
    assert (probabilities >= 0).all()
    assert not probabilities[np.isnan(values)].any()
    tried = ~np.isnan(values)
    in_order = probabilities[tried][np.argsort(values[tried], kind="stable")]
    assert (np.diff(in_order) >= 0).all()
    equal = np.full(4, values[tried][0])
    np.testing.assert_allclose(target(equal, kind, temperature), 0.25)
