import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaeiw_jax.errors import UserError
from vaeiw_jax.vae import sampling, steps
from vaeiw_jax.vae.config import TrainConfig

CONFIG = TrainConfig(screens="", batch_size=16)
sizes = st.lists(st.integers(2, 60), min_size=1, max_size=6)


def store_of(rows, counts):
    return np.searchsorted(np.cumsum(counts), rows, side="right")


@given(sizes, st.integers(0, 100), st.integers(0, 5))
def test_every_store_gives_as_many_screens_to_an_epoch(counts, seed, epoch):
    rows = sampling.epoch_rows(counts, seed, epoch)
    assert set(np.bincount(store_of(rows, counts), minlength=len(counts))) == {
        sum(counts) // len(counts)
    }


@given(sizes, st.integers(0, 100))
def test_no_screen_comes_twice_before_all_of_its_store_came_once(counts, seed):
    rows = sampling.epoch_rows(counts, seed, 0)
    start = 0
    for count in counts:
        times = np.bincount(rows[(rows >= start) & (rows < start + count)] - start, minlength=count)
        assert times.max() - times.min() <= 1
        start += count


def test_batches_hold_each_store_equally_often_in_expectation():
    counts = [500, 20, 130]
    stores = np.concatenate(
        [
            store_of(steps.batches(CONFIG, sampling.epoch_rows(counts, 0, epoch)), counts)
            for epoch in range(200)
        ]
    )
    shares = np.stack([(stores == store).mean(axis=1) for store in range(3)], axis=1)
    assert np.abs(shares.mean(axis=0) - 1 / 3).max() < 4 * shares.std() / np.sqrt(len(shares))
    assert (shares.std(axis=0) > 0).all()  # drawn, not dealt out


@given(sizes, st.floats(0.01, 0.9), st.integers(0, 100))
def test_a_split_takes_its_share_of_every_store(counts, share, seed):
    training, validation = sampling.split(counts, share, seed)
    together = np.concatenate([*training, *validation])
    assert sorted(together) == list(range(sum(counts)))
    for count, kept in zip(counts, validation, strict=True):
        assert len(kept) == max(1, round(count * share))


@given(st.integers(2, 60), st.integers(0, 100))
def test_a_store_is_split_alike_alone_and_among_others(count, seed):
    alone, _ = sampling.split([count], 0.2, seed)
    among, _ = sampling.split([7, count, 9], 0.2, seed)
    np.testing.assert_array_equal(alone[0], among[1] - 7)


def test_epochs_and_seeds_differ_and_repeat():
    counts = [30, 10]
    first = sampling.epoch_rows(counts, 0, 0)
    np.testing.assert_array_equal(first, sampling.epoch_rows(counts, 0, 0))
    assert (first != sampling.epoch_rows(counts, 0, 1)).any()
    assert (first != sampling.epoch_rows(counts, 1, 0)).any()


def test_fewer_screens_than_a_batch_are_refused():
    with pytest.raises(UserError, match="10 frames to train on, fewer than a batch of 16"):
        steps.batches(CONFIG, np.arange(10))
