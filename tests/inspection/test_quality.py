import numpy as np
import pytest

from vaeiw_jax.inspection.quality import measure_quality


def made_up(rng, frames=12, features=30):
    """Small screens, some of them equal, and features that repeat as often."""
    screens = rng.integers(0, 2, (frames, 5, 4), np.uint8)
    screens[3] = screens[7]
    bits = rng.random((frames, features)) < 0.5
    bits[3] = bits[7]
    return screens, bits


def test_features_are_counted_that_are_always_never_or_at_times_true():
    screens = np.arange(4, dtype=np.uint8).reshape(4, 1, 1)
    bits = np.array([[1, 0, 0, 1], [1, 0, 1, 1], [1, 0, 1, 1], [1, 0, 0, 0]], bool)
    summary = measure_quality(screens, bits, alike_pixels=0).summary()
    assert (summary["always_true"], summary["never_true"], summary["varying"]) == (1, 1, 2)
    assert summary["true_per_frame"] == 2.25


def test_every_pair_of_distinct_screens_is_measured_once():
    screens, bits = made_up(np.random.default_rng(0))
    quality = measure_quality(screens, bits, alike_pixels=0)
    pairs = quality.pairs
    assert quality.distinct_screens == 11
    assert len(pairs.first) == 11 * 10 / 2
    assert len({frozenset(pair) for pair in zip(pairs.first, pairs.second, strict=True)}) == 55
    for first, second, pixels, flips in zip(
        pairs.first, pairs.second, pairs.pixels, pairs.flips, strict=True
    ):
        assert pixels == (screens[first] != screens[second]).sum() > 0
        assert flips == (bits[first] != bits[second]).sum()


def test_each_screen_is_compared_with_the_one_most_like_it_if_that_is_alike():
    screens = np.zeros((5, 1, 20), np.uint8)
    for row, pixels in enumerate((0, 1, 3, 10, 20)):  # apart from the first by so many pixels
        screens[row, 0, :pixels] = 1
    bits = np.zeros((5, 3), bool)
    bits[1, 0] = bits[2, 1] = True
    quality = measure_quality(screens, bits, alike_pixels=2)
    pairs = quality.pairs
    alike = [(int(pairs.first[p]), int(pairs.second[p])) for p in quality.alike]
    assert alike == [(0, 1), (1, 2)]
    assert quality.flip_rates.tolist() == [1, 0.5, 0]
    assert quality.most_flipping(5).tolist() == [0, 1]
    assert quality.summary()["flips_between_alike"] == 1.5


def test_different_screens_with_equal_features_are_found_the_most_different_first():
    screens = np.zeros((4, 1, 9), np.uint8)
    for row, pixels in enumerate((0, 2, 9, 5)):
        screens[row, 0, :pixels] = 1
    bits = np.array([[0], [0], [0], [1]], bool)
    quality = measure_quality(screens, bits, alike_pixels=0)
    found = [(int(quality.pairs.first[p]), int(quality.pairs.second[p])) for p in quality.confused]
    assert found == [(0, 2), (1, 2), (0, 1)]
    assert quality.distinct_codes == 2


@pytest.mark.parametrize("pick", ["most_frequent", "least_frequent", "most_informative"])
def test_features_that_never_change_are_not_shown(pick):
    screens = np.arange(4, dtype=np.uint8).reshape(4, 1, 1)
    bits = np.array([[1, 0, 0, 1, 0], [1, 0, 1, 1, 0], [1, 0, 1, 1, 0], [1, 0, 0, 0, 1]], bool)
    chosen = getattr(measure_quality(screens, bits, alike_pixels=0), pick)(9).tolist()
    assert sorted(chosen) == [2, 3, 4]
    assert chosen[0] == {"most_frequent": 3, "least_frequent": 4, "most_informative": 2}[pick]


def test_one_screen_over_and_over_is_judged_without_pairs():
    quality = measure_quality(np.zeros((3, 2, 2), np.uint8), np.ones((3, 4), bool), alike_pixels=10)
    summary = quality.summary()
    assert summary["distinct_screens"] == 1
    assert summary["alike_pairs"] == 0
    assert summary["flips_between_any"] is None
