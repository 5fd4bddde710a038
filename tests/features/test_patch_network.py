import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.features.test_vae import MODELS, variables_of
from vaeiw_jax import frames, models
from vaeiw_jax.features import patches
from vaeiw_jax.features.patch_network import PatchNetwork
from vaeiw_jax.models import SHIPPED
from vaeiw_jax.vae import codes
from vaeiw_jax.vae.networks import VAE

GAMES = ("Pong", "MsPacman", "Alien")
SHAPE = (210, 160)


@functools.cache
def variables(name):
    return variables_of(MODELS[name])


def encoder(name="15x15x20", shape=SHAPE, **options):
    return PatchNetwork(MODELS[name], variables(name), shape, **options)


@functools.cache
def network(name):
    """The plain network: from a screen to its posterior."""
    encode = jax.jit(
        lambda frames: VAE(MODELS[name]).apply(variables(name), frames, False, method="encode")
    )
    return lambda screen: np.asarray(encode(frames.from_screens(screen[None])[..., None])[0])


@pytest.fixture(scope="module")
def mixed(real_screens):
    """Screens of several games, in an order that is none's."""
    together = np.concatenate([real_screens(game, 12) for game in GAMES])
    return np.random.default_rng(0).permutation(together)


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_network_up_to_rounding(name, mixed):
    fast = encoder(name)
    for screen in mixed[:10]:
        posterior = fast.encode(screen)
        expected = network(name)(screen)
        assert posterior.shape == expected.shape
        np.testing.assert_allclose(posterior, expected, rtol=1e-5, atol=1e-5 * expected.std())


@pytest.mark.parametrize("game", ["MsPacman", "Pong", "SpaceInvaders"])
def test_it_is_the_network_with_shipped_weights_up_to_rounding(game, real_screens):
    model, weights = models.load_model(SHIPPED / game)
    plain = jax.jit(lambda frames: VAE(model).apply(weights, frames, False, method="encode"))
    fast = PatchNetwork(model, weights, SHAPE)
    for screen in real_screens(game, 24)[::2]:
        expected = np.asarray(plain(frames.from_screens(screen[None])[..., None])[0])
        posterior = fast.encode(screen)
        np.testing.assert_allclose(posterior, expected, rtol=2e-5, atol=2e-5 * expected.std())
        near = np.abs(expected - codes.edges(model)) < 1  # where rounding may change a feature
        assert np.abs(posterior - expected)[near].max() < 1e-4


@pytest.mark.parametrize("name", ["15x15x20", "4x4x200"])
def test_a_posterior_does_not_depend_on_what_was_encoded_before(name, mixed):
    """However long the chain: to the last bit."""
    chained, other_way = encoder(name), encoder(name)
    one = {i: chained.encode(mixed[i]) for i in range(len(mixed))}
    other = {i: other_way.encode(mixed[i]) for i in reversed(range(len(mixed)))}
    assert all((one[i] == other[i]).all() for i in one)
    again = chained.encode(mixed[3])
    assert (again == one[3]).all()
    assert (encoder(name).encode(mixed[5]) == one[5]).all()


@pytest.fixture(scope="module")
def chained():
    """An encoder that goes from one example to the next."""
    return encoder()


_EDIT = st.tuples(
    st.integers(0, 209),
    st.integers(0, 159),
    st.integers(1, 90),
    st.integers(1, 90),
    st.integers(0, 255),
)


@settings(max_examples=15, deadline=None)
@given(st.lists(_EDIT, min_size=1, max_size=8))
def test_any_change_of_a_screen_is_seen(real_screens, chained, edits):
    screen = real_screens("Qbert", 3)[-1].copy()
    for top, left, height, width, colour in edits:
        screen[top : top + height, left : left + width] = colour
        chained.encode(screen)
    fresh = encoder().encode(screen)
    assert (chained.encode(screen) == fresh).all()


def test_frames_are_those_that_training_sees(mixed):
    fast = encoder()
    for screen in mixed[:12]:
        fast.encode(screen)
        into = int((fast._references.screens == screen).all(axis=(1, 2)).argmax())
        frame = fast._references.grids[0][into, 1:-1, 1:-1].view(np.float32)
        assert (frame == np.asarray(frames.from_screens(screen))).all()


def test_a_changed_pixel_is_noticed_near_it_alone(real_screens):
    fast = encoder()
    screen = real_screens("Breakout", 3)[-1]
    dotted = screen.copy()
    dotted[100, 80] ^= 0x0E
    changed = (fast.encode(screen) != fast.encode(dotted)).any(axis=-1)
    rows, columns = changed.nonzero()
    assert rows.size
    # Pixel (100, 80) is (61, 64) of the frame; outputs are 8 pixels apart and see 42.
    assert (np.abs(rows * 8 + 4 - 61) <= 32).all()
    assert (np.abs(columns * 8 + 4 - 64) <= 32).all()


def test_a_full_table_is_emptied_and_nothing_changes(mixed):
    roomy, narrow = encoder(), encoder(capacity=2**13)
    for screen in mixed:
        assert (narrow.encode(screen) == roomy.encode(screen)).all()
    assert narrow._encoded < roomy._encoded
    assert all(layer.used[0] <= len(layer.keys) for layer in narrow._layers)


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 1000),
    shares=st.lists(st.sampled_from([0.0, 0.01, 0.5, 1.0]), max_size=5),
)
def test_the_nearest_screen_is_the_first_of_those_with_the_fewest_other_words(seed, size, shares):
    rng = np.random.default_rng(seed)
    screen = rng.integers(2, size=size, dtype=np.uint64)
    screens = np.array([screen ^ (rng.random(size) < share) for share in shares], np.uint64)
    different = [int((other != screen).sum()) for other in screens]
    expected = different.index(min(different)) if different else 0
    assert patches.nearest(screen, screens.reshape(-1, size)) == expected


def test_threads_may_share_one(mixed):
    fast = encoder()
    alone = [encoder().encode(screen) for screen in mixed[:6]]
    order = np.random.default_rng(0).integers(6, size=120)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: fast.encode(mixed[i]), order))
    assert all((together[k] == alone[i]).all() for k, i in enumerate(order))


def test_screens_of_other_sizes_are_encoded(real_screens):
    shape = (213, 155)  # not even a whole number of words
    screen = np.resize(real_screens("Pong", 4)[-1], shape)
    expected = network("15x15x20")(screen)
    posterior = encoder(shape=shape).encode(screen)
    np.testing.assert_allclose(posterior, expected, rtol=1e-5, atol=1e-5 * expected.std())


def test_a_matrix_product_is_the_same_to_the_last_bit_in_tiles_for_any_cpu(monkeypatch):
    """So that machines with and without AVX-512 come to the same atoms."""
    rng = np.random.default_rng(0)
    rows, taps, inputs, outputs = 100, 9, 64, 64
    below = rng.standard_normal((50, inputs), np.float32)
    kernel = rng.standard_normal((taps, inputs, outputs), np.float32)
    keys = rng.integers(len(below), size=(rows, taps)).astype(np.int32)

    def product(tile_rows, tile_columns):
        monkeypatch.setattr(patches, "TILE_ROWS", tile_rows)
        monkeypatch.setattr(patches, "TILE_COLUMNS", tile_columns)
        tiled = kernel.reshape(taps, inputs, -1, tile_columns).transpose(2, 0, 1, 3)
        layer = (
            encoder()
            ._layers[1]
            ._replace(
                kernel=np.ascontiguousarray(tiled),
                bias=np.ones(outputs, np.float32),
                keys=keys,
                values=np.zeros((rows, outputs), np.float32),
            )
        )
        convolve = numba.njit(patches._convolve.py_func)  # compiled for this tile
        convolve(layer, 0, rows, below, True)
        return layer.values

    narrow, wide = product(6, 16), product(12, 32)
    np.testing.assert_array_equal(narrow, wide)
    obvious = np.einsum("rti,tio->ro", below[keys].astype(np.float64), kernel) + 1
    np.testing.assert_allclose(wide, obvious, rtol=1e-4, atol=1e-3)
