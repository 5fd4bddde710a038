import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from vaeiw_jax import screens
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.episodes import Episode, EpisodeConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, create, vae
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.vae import checkpoints, latents
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.fast_encoder import FastEncoder
from vaeiw_jax.vae.networks import VAE

MODELS = {
    "15x15x20": ModelConfig(),
    "4x4x200": ModelConfig("4x4x200"),
    "15x15x5": ModelConfig("15x15x5", "gaussian"),
    "published": ModelConfig(variant="published"),
    "published_gaussian": ModelConfig("15x15x5", "gaussian", "published"),
}
SETTING = Setting("Pong", (210, 160))


def variables_of(model, seed=0):
    """Random weights whose features are true about half the time, and normalisers that are not the identity."""
    rng = np.random.default_rng(seed)

    def draw(path, shape):
        name = jax.tree_util.keystr(path)
        values = rng.normal(size=shape.shape) * (2 / max(1, np.prod(shape.shape[:-1]))) ** 0.5
        return (np.abs(values) + 0.5 if "var" in name or "scale" in name else values).astype(
            np.float32
        )

    def init(key):
        frames = jax.numpy.zeros((1, 128, 128, 1))
        return VAE(model).init(key, frames, latents.noise(model, key, 1), False)

    return jax.tree_util.tree_map_with_path(draw, jax.eval_shape(init, jax.random.key(0)))


@pytest.fixture(scope="module", params=MODELS)
def saved(request, tmp_path_factory):
    """A model of each kind, and where it was saved."""
    model = MODELS[request.param]
    variables = variables_of(model)
    directory = tmp_path_factory.mktemp(request.param)
    checkpoints.save_model(directory, model, variables, {"game": "Pong"})
    return model, variables, directory


@pytest.fixture
def small(tmp_path):
    model = MODELS["15x15x20"]
    checkpoints.save_model(tmp_path / "model", model, variables_of(model), {"game": "Pong"})
    return tmp_path


def seen(screen):
    return SimpleNamespace(screen=screen)


@pytest.mark.parametrize("bits", [4, 6])
def test_atoms_are_the_bits_that_the_model_gives(saved, real_screens, bits):
    model, variables, directory = saved
    if bits == 6 and model.latent_kind == "bernoulli":
        return  # their bits are one each
    config = FeaturesConfig(f"vae:{directory}", threshold=0.6, quantisation_bits=bits)
    features = create(config, SETTING)
    encode = jax.jit(lambda frames: VAE(model).apply(variables, frames, False, method="encode"))
    for screen in real_screens("Pong", 6)[1::2]:
        posterior = encode(screens.frames(screen[None])[..., None])
        expected = np.asarray(latents.bits(model, posterior, 0.6, bits)[0])
        atoms = features.atoms(seen(screen), None)
        assert atoms.dtype == np.int32
        assert len(expected) == features.num_features
        assert 0 < len(atoms) < features.num_features
        near = nearest_to_an_edge(model, np.asarray(posterior), bits)
        unsure = np.setxor1d(atoms, expected.nonzero()[0])
        assert not len(unsure) or near < 1e-4


def nearest_to_an_edge(model, posterior, bits):
    """How close a value comes to where its bits change: there two compilations may round apart."""
    edges = [np.log(0.6 / 0.4)] if model.latent_kind == "bernoulli" else latents.bin_edges(bits)
    values = posterior[..., : model.channels]
    return np.abs(values[..., None] - np.asarray(edges)).min()


@pytest.fixture(scope="module")
def many_screens(real_screens):
    """Screens of several games, in an order that is none's."""
    games = ("Pong", "Breakout", "MsPacman", "Alien", "Seaquest")
    together = np.concatenate([real_screens(game, 8) for game in games])
    return np.random.default_rng(0).permutation(together)


@pytest.fixture(scope="module")
def canonical(saved, many_screens):
    """What the canonical encoder of the saved model makes of the many screens."""
    model, variables, _ = saved
    encode = vae.canonical_encoder(model, variables, SETTING.screen_shape)
    return [encode(screen) for screen in many_screens]


SETTINGS = {
    "threshold": {},
    "low threshold": {"threshold": 0.3},
    "sampled": {"sample_features": True},
    "4 bits": {"quantisation_bits": 4},
    "6 bits": {"quantisation_bits": 6},
}


@pytest.mark.parametrize("safety", [vae.SAFETY, 500], ids=["few unsure", "many unsure"])
@pytest.mark.parametrize("chosen", SETTINGS)
def test_atoms_are_the_canonical_ones_exactly(
    saved, many_screens, canonical, chosen, safety, monkeypatch
):
    """In an order drawn at random, with few or with many features left to the canonical encoder."""
    model, _, directory = saved
    if ("bits" in chosen) != (model.latent_kind == "gaussian"):
        return  # a setting of the other latents
    monkeypatch.setattr(vae, "SAFETY", safety)
    config = FeaturesConfig(f"vae:{directory}", **SETTINGS[chosen])
    features = create(config, SETTING)
    settled = counted(features._settled, "_canonical")
    for screen, posterior in zip(many_screens, canonical, strict=True):
        expected = canonical_atoms(model, config, posterior, screen)
        assert features.atoms(seen(screen), None).tolist() == expected.tolist()
    if safety == 500:
        assert settled.calls


def counted(owner, name):
    """Counts the calls of a method from now on."""
    count, method = SimpleNamespace(calls=0), getattr(owner, name)

    def counting(*arguments):
        count.calls += 1
        return method(*arguments)

    setattr(owner, name, counting)
    return count


def canonical_atoms(model, config, posterior, screen):
    if config.sample_features:
        digest = vae._digest(screen.ravel().view(np.uint64)).tobytes()
        draws = np.random.default_rng(int.from_bytes(digest)).random(posterior.shape)
        features = draws < 1 / (1 + np.exp(-posterior.astype(np.float64)))
        return np.flatnonzero(features)
    bits = latents.bits(model, posterior[None], config.threshold, config.quantisation_bits)
    return np.flatnonzero(np.asarray(bits))


def test_the_canonical_posterior_of_a_position_depends_on_what_it_sees_alone(
    saved, many_screens, canonical
):
    """Which is why it may be kept for other screens: to the last bit."""
    model, variables, _ = saved
    fast = FastEncoder(model, variables, SETTING.screen_shape)
    known, met_again = {}, 0
    for screen, posterior in zip(many_screens, canonical, strict=True):
        ids = fast.encode(screen)[1]
        for position in np.ndindex(ids.shape):
            key = (*position, int(ids[position]))
            met_again += key in known
            assert (
                known.setdefault(key, posterior[position].tobytes())
                == posterior[position].tobytes()
            )
    assert met_again
    assert fast.generation == 0


def test_what_was_settled_is_not_computed_again(small, real_screens, monkeypatch):
    monkeypatch.setattr(vae, "SAFETY", 500)
    features = create(FeaturesConfig(f"vae:{small}"), SETTING)
    settled = counted(features._settled, "_canonical")
    first, second = (
        features._features(screen, b"") for screen in [real_screens("Pong", 9)[-1]] * 2
    )
    assert settled.calls == 1
    assert (first == second).all()


def test_a_model_the_fast_encoder_does_not_cover_is_encoded_by_the_canonical_one(
    tmp_path, real_screens
):
    model = ModelConfig(dtype="bfloat16")
    variables = variables_of(model)
    checkpoints.save_model(tmp_path, model, variables, {"game": "Pong"})
    config = FeaturesConfig(f"vae:{tmp_path}")
    features = create(config, SETTING)
    screen = real_screens("Pong", 5)[-1]
    canonical = vae.canonical_encoder(model, variables, SETTING.screen_shape)
    expected = canonical_atoms(model, config, canonical(screen), screen)
    assert features.atoms(seen(screen), None).tolist() == expected.tolist()


def test_threads_may_ask_at_once(small, many_screens):
    features, other = (create(FeaturesConfig(f"vae:{small}"), SETTING) for _ in range(2))
    alone = [other.atoms(seen(screen), None).tolist() for screen in many_screens]
    with ThreadPoolExecutor(4) as pool:
        atoms = pool.map(lambda screen: features.atoms(seen(screen), None).tolist(), many_screens)
        assert list(atoms) == alone


def test_cached_play_is_uncached_play(small, monkeypatch):
    config = EpisodeConfig(
        AtariConfig("Pong"),
        PlannerConfig(budget_seconds=None, budget_nodes=15),
        FeaturesConfig(f"vae:{small}"),
        max_actions=6,
    )

    def record(cached):
        monkeypatch.setattr(vae, "CACHED_SCREENS", cached)
        episode = Episode(config, seed=0)
        while not episode.stop:
            episode.advance()
        return episode.record()

    assert record(cached=20_000) == record(cached=0) == record(cached=3)


def test_the_cache_is_bounded(small, monkeypatch, real_screens):
    monkeypatch.setattr(vae, "CACHED_SCREENS", 2)
    features = create(FeaturesConfig(f"vae:{small}"), SETTING)
    for screen in real_screens("Breakout", 5):
        features.atoms(seen(screen), None)
    assert len(features._cache) <= 2


def test_sampled_features_depend_on_the_screen_alone(small, real_screens):
    config = FeaturesConfig(f"vae:{small}", sample_features=True)
    one, other = create(config, SETTING), create(config, SETTING)
    a, b = real_screens("Pong", 12)[[5, 11]]
    first = [one.atoms(seen(screen), None).tolist() for screen in (a, b)]
    second = [other.atoms(seen(screen), None).tolist() for screen in (b, a)]
    assert first == second[::-1]
    thresholded = create(FeaturesConfig(f"vae:{small}", threshold=0.5), SETTING)
    assert first[0] != thresholded.atoms(seen(a), None).tolist()


def test_width_two_plays_with_a_vae(small):
    config = EpisodeConfig(
        AtariConfig("Pong"),
        PlannerConfig(width=2, budget_seconds=None, budget_nodes=8),
        FeaturesConfig(f"vae:{small}"),
    )
    assert Episode(config, seed=0).advance().statistics.new_nodes == 8


def test_a_record_names_the_model_by_its_digest_not_by_its_place(small):
    config = EpisodeConfig(AtariConfig("Pong"), features=FeaturesConfig(f"vae:{small}"))
    named = config.identified().features.features
    assert re.fullmatch(r"vae:[0-9a-f]{64}", named)
    moved = small.rename(small.parent / "elsewhere")
    again = EpisodeConfig(AtariConfig("Pong"), features=FeaturesConfig(f"vae:{moved}"))
    assert again.identified().features.features == named


def test_a_model_of_another_game_is_used_with_a_warning(small):
    with pytest.warns(UserWarning, match="was trained on Pong, not on Breakout"):
        create(FeaturesConfig(f"vae:{small}"), Setting("Breakout", (210, 160)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        create(FeaturesConfig(f"vae:{small}"), SETTING)


def test_a_game_without_a_shipped_model_says_so():
    with pytest.raises(UserError, match="no VAE of Zaxxon comes with the project"):
        create(FeaturesConfig("vae"), Setting("Zaxxon", (210, 160)))


def test_a_directory_without_a_model_is_named(tmp_path):
    with pytest.raises(UserError, match=f"there is no model in {tmp_path}"):
        create(FeaturesConfig(f"vae:{tmp_path}"), SETTING)


@pytest.mark.parametrize(
    "settings", [{"threshold": 0.0}, {"threshold": 1.0}, {"quantisation_bits": 0}]
)
def test_nonsense_is_refused_in_a_sentence(settings):
    with pytest.raises(UserError, match="must be"):
        FeaturesConfig(**settings)
