import functools
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.features.test_vae import MODELS, variables_of
from vaeiw_jax import screens
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.fast_encoder import FastEncoder
from vaeiw_jax.vae.networks import VAE

GAMES = ("Pong", "MsPacman", "Alien")
SHAPE = (210, 160)


@functools.cache
def variables(name):
    return variables_of(MODELS[name])


def encoder(name="15x15x20", shape=SHAPE, **options):
    return FastEncoder(MODELS[name], variables(name), shape, **options)


@functools.cache
def network(name):
    """The plain network: from a screen to its posterior."""
    encode = jax.jit(
        lambda frames: VAE(MODELS[name]).apply(variables(name), frames, False, method="encode")
    )
    return lambda screen: np.asarray(encode(screens.frames(screen[None])[..., None])[0])


@pytest.fixture(scope="module")
def mixed(real_screens):
    """Screens of several games, in an order that is none's."""
    together = np.concatenate([real_screens(game, 12) for game in GAMES])
    return np.random.default_rng(0).permutation(together)


@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_network_up_to_rounding(name, mixed):
    fast = encoder(name)
    for screen in mixed[:10]:
        posterior, ids, _ = fast.encode(screen)
        expected = network(name)(screen)
        assert posterior.shape == expected.shape
        assert ids.shape == expected.shape[:2]
        np.testing.assert_allclose(posterior, expected, rtol=1e-5, atol=1e-5 * expected.std())


@pytest.mark.parametrize("name", ["15x15x20", "4x4x200"])
def test_a_posterior_does_not_depend_on_what_was_encoded_before(name, mixed):
    """However long the chain: to the last bit."""
    chained, other_way = encoder(name), encoder(name)
    one = {i: chained.encode(mixed[i])[0] for i in range(len(mixed))}
    other = {i: other_way.encode(mixed[i])[0] for i in reversed(range(len(mixed)))}
    assert all((one[i] == other[i]).all() for i in one)
    again = chained.encode(mixed[3])[0]
    assert (again == one[3]).all()
    assert (encoder(name).encode(mixed[5])[0] == one[5]).all()


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
    fresh = encoder().encode(screen)[0]
    assert (chained.encode(screen)[0] == fresh).all()


def test_frames_are_those_that_training_sees(mixed):
    fast = encoder()
    for screen in mixed[:12]:
        fast.encode(screen)
        into = int((fast._references.screens == screen).all(axis=(1, 2)).argmax())
        frame = fast._references.grids[0][into, 1:-1, 1:-1].view(np.float32)
        assert (frame == np.asarray(screens.frames(screen))).all()


def test_positions_with_one_id_see_the_same_and_others_do_not(real_screens):
    """On two screens that differ in a single pixel, only positions near it change their id."""
    fast = encoder()
    screen = real_screens("Breakout", 3)[-1]
    dotted = screen.copy()
    dotted[100, 80] ^= 0x0E
    (before, ids, _), (after, dotted_ids, _) = fast.encode(screen), fast.encode(dotted)
    changed = ids != dotted_ids
    assert (before[~changed] == after[~changed]).all()
    rows, columns = changed.nonzero()
    assert rows.size
    # Pixel (100, 80) is (61, 64) of the frame; outputs are 8 pixels apart and see 42.
    assert (np.abs(rows * 8 + 4 - 61) <= 32).all()
    assert (np.abs(columns * 8 + 4 - 64) <= 32).all()


def test_a_full_table_is_emptied_and_nothing_changes(mixed):
    roomy, narrow = encoder(), encoder(capacity=2**13)
    for screen in mixed:
        assert (narrow.encode(screen)[0] == roomy.encode(screen)[0]).all()
    assert narrow.generation > roomy.generation
    assert all(layer.used[0] <= 2**13 for layer in narrow._layers)


def test_threads_may_share_one(mixed):
    fast = encoder()
    alone = [encoder().encode(screen)[0] for screen in mixed[:6]]
    order = np.random.default_rng(0).integers(6, size=120)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: fast.encode(mixed[i])[0], order))
    assert all((together[k] == alone[i]).all() for k, i in enumerate(order))


def test_screens_of_other_sizes_are_encoded(real_screens):
    shape = (213, 155)  # not even a whole number of words
    screen = np.resize(real_screens("Pong", 4)[-1], shape)
    expected = network("15x15x20")(screen)
    posterior = encoder(shape=shape).encode(screen)[0]
    np.testing.assert_allclose(posterior, expected, rtol=1e-5, atol=1e-5 * expected.std())


def test_only_float32_is_covered():
    assert FastEncoder.covers(ModelConfig())
    assert not FastEncoder.covers(ModelConfig(dtype="bfloat16"))
