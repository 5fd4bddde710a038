import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from vaeiw_jax import frames, models
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, check, create, encoders, screen_digest, vae
from vaeiw_jax.features.registry import origin
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing.episodes import Episode, EpisodeConfig
from vaeiw_jax.vae import codes, latents
from vaeiw_jax.vae.config import ModelConfig
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
    models.save_model(directory, model, variables, {"game": "Pong"})
    return model, variables, directory


@pytest.fixture
def small(tmp_path):
    model = MODELS["15x15x20"]
    models.save_model(tmp_path / "model", model, variables_of(model), {"game": "Pong"})
    return tmp_path


def seen(screen):
    return SimpleNamespace(screen=screen)


@pytest.fixture(scope="module")
def many_screens(real_screens):
    """Screens of several games, in an order that is none's."""
    games = ("Pong", "Breakout", "MsPacman", "Alien", "Seaquest")
    together = np.concatenate([real_screens(game, 8) for game in games])
    return np.random.default_rng(0).permutation(together)


@pytest.fixture(scope="module")
def posteriors(saved, many_screens):
    """What the network, as JAX computes it, makes of the many screens."""
    model, variables, _ = saved
    encode = jax.jit(lambda frames: VAE(model).apply(variables, frames, False, method="encode"))
    return [
        np.asarray(encode(frames.from_screens(screen[None])[..., None])) for screen in many_screens
    ]


SETTINGS = {
    "bernoulli": ({}, {"threshold": 0.3}),
    "gaussian": ({}, {"quantisation_bits": 6}),
}

SCREENS = {"patches": 40, "xla": 5}
"""How many screens are encoded; those of the first depend on the ones before."""

ROUNDING = 1e-4
"""How close to where a feature changes a value must be for it to be rounding that decides."""


@pytest.mark.parametrize("encoder", ["patches", "xla"])
@pytest.mark.parametrize("chosen", ["default", "other"])
def test_atoms_are_the_bits_of_the_network_but_for_rounding(
    saved, many_screens, posteriors, chosen, encoder
):
    model, _, directory = saved
    settings = SETTINGS[model.latent_kind][chosen == "other"]
    config = FeaturesConfig(f"vae:{directory}", **settings, encoder=encoder)
    features = create(config, SETTING)
    for screen, posterior in zip(many_screens[: SCREENS[encoder]], posteriors, strict=False):
        bits = latents.bits(model, posterior, config.threshold, config.quantisation_bits)
        expected = np.flatnonzero(bits)
        atoms = features.atoms(seen(screen), None)
        assert atoms.dtype == np.int32
        assert 0 < len(atoms) < features.num_features == bits.size
        different = np.setxor1d(atoms, expected)
        assert (to_an_edge(model, config, posterior)[different] < ROUNDING).all()


def to_an_edge(model, config, posterior):
    """float[num_features]: how far each feature's value is from where features change."""
    if model.latent_kind == "bernoulli":
        return np.abs(posterior.ravel() - np.log(config.threshold / (1 - config.threshold)))
    values = posterior[..., : model.channels].reshape(-1, 1)
    distances = np.abs(values - codes.bin_edges(config.quantisation_bits)).min(axis=1)
    return np.repeat(distances, config.quantisation_bits)


@pytest.mark.parametrize(
    "saved", [name for name in MODELS if MODELS[name].latent_kind == "bernoulli"], indirect=True
)
@pytest.mark.parametrize("encoder", ["patches", "xla"])
def test_sampled_features_have_the_network_s_probabilities(
    saved, many_screens, posteriors, encoder
):
    _, _, directory = saved
    config = FeaturesConfig(f"vae:{directory}", sample_features=True, encoder=encoder)
    features = create(config, SETTING)
    for screen, posterior in zip(many_screens[: SCREENS[encoder]], posteriors, strict=False):
        digest = screen_digest.digest(screen)
        draws = np.random.default_rng(int.from_bytes(digest)).random(posterior.size)
        chances = 1 / (1 + np.exp(-posterior.ravel().astype(np.float64)))
        atoms = features.atoms(seen(screen), None)
        different = np.setxor1d(atoms, np.flatnonzero(draws < chances))
        assert (np.abs(draws - chances)[different] < ROUNDING).all()


def test_arithmetic_is_float32_whatever_a_model_was_trained_with(tmp_path, many_screens):
    made = {}
    for dtype in ("float32", "bfloat16"):
        model = ModelConfig(dtype=dtype)
        models.save_model(tmp_path / dtype, model, variables_of(model), {"game": "Pong"})
        features = create(FeaturesConfig(f"vae:{tmp_path / dtype}"), SETTING)
        made[dtype] = [features.atoms(seen(screen), None).tolist() for screen in many_screens]
    assert made["float32"] == made["bfloat16"]


ATOMS_ON_CORES = """
import os, sys
cores, model, screens = sys.argv[1:]
os.sched_setaffinity(0, [int(core) for core in cores.split(",")])
from types import SimpleNamespace
import numpy as np
from vaeiw_jax.features import FeaturesConfig, Setting, create
features = create(FeaturesConfig(f"vae:{model}"), Setting("Pong", (210, 160)))
for screen in np.load(screens):
    print(features.atoms(SimpleNamespace(screen=screen), None).tolist())
"""


def test_atoms_are_the_same_on_one_core_and_on_all(small, tmp_path, many_screens):
    np.save(tmp_path / "screens.npy", many_screens)
    usable = [str(core) for core in os.sched_getaffinity(0)]
    one, all_ = (
        subprocess.run(
            [sys.executable, "-c", ATOMS_ON_CORES, cores, small, tmp_path / "screens.npy"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for cores in (usable[0], ",".join(usable))
    )
    assert one == all_
    assert len(one.splitlines()) == len(many_screens)


def test_threads_may_ask_at_once(small, many_screens):
    features, other = (create(FeaturesConfig(f"vae:{small}"), SETTING) for _ in range(2))
    alone = [other.atoms(seen(screen), None).tolist() for screen in many_screens]
    with ThreadPoolExecutor(4) as pool:
        atoms = pool.map(lambda screen: features.atoms(seen(screen), None).tolist(), many_screens)
        assert list(atoms) == alone


@pytest.mark.parametrize("noise", [False, True])
def test_cached_play_is_uncached_play(small, monkeypatch, noise):
    config = EpisodeConfig(
        AtariConfig("Pong"),
        PlannerConfig(budget_seconds=None, budget_nodes=15),
        FeaturesConfig(f"vae:{small}", noise=noise),
        max_actions=6,
    )

    def record(cached):
        monkeypatch.setattr(vae, "CACHED_SCREENS", cached)
        monkeypatch.setattr(encoders, "CACHED_PROBABILITIES", cached)
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


def test_sampling_gaussian_latents_is_refused_in_a_sentence(tmp_path):
    model = MODELS["15x15x5"]
    models.save_model(tmp_path, model, variables_of(model), {"game": "Pong"})
    with pytest.raises(UserError, match="sample_features needs Bernoulli latents"):
        create(FeaturesConfig(f"vae:{tmp_path}", sample_features=True), SETTING)


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


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        ("auto", "patches" if jax.default_backend() == "cpu" else "xla"),
        ("patches", "patches"),
        ("xla", "xla"),
    ],
)
def test_a_record_says_which_encoder_was_used(small, asked, used):
    features = FeaturesConfig(f"vae:{small}", encoder=asked)
    config = EpisodeConfig(AtariConfig("Pong"), features=features)
    assert config.identified().features.encoder == used


def test_the_record_of_other_features_leaves_the_encoder_open():
    config = EpisodeConfig(AtariConfig("Pong"), features=FeaturesConfig("bprost"))
    assert config.identified().features.encoder == "auto"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"features": "bprost", "encoder": "xla"},
            "an encoder changes nothing for --features=bprost; "
            "leave --encoder out, or use --features=vae",
        ),
        (
            {"features": "vae", "encoder": "patch"},
            "unknown encoder 'patch'; did you mean 'patches'?",
        ),
    ],
)
def test_an_encoder_that_is_unknown_or_unused_is_refused_in_a_sentence(settings, sentence):
    with pytest.raises(UserError) as refused:
        check(FeaturesConfig(**settings))
    assert str(refused.value) == sentence


def test_a_model_of_another_game_is_used_with_a_warning(small):
    with pytest.warns(UserWarning, match="was trained on Pong, not on Breakout"):
        create(FeaturesConfig(f"vae:{small}"), Setting("Breakout", (210, 160)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        create(FeaturesConfig(f"vae:{small}"), SETTING)


def test_a_game_has_its_own_shipped_model_or_the_universal_one():
    universal = models.SHIPPED / "universal"
    for name, game, expected in (
        ("vae", "Pong", models.SHIPPED / "Pong"),
        ("vae", "Zaxxon", universal),
        ("vae", "NoGameAtAll", universal),
        ("vae:universal", "Pong", universal),
        ("vae:Pong", "Zaxxon", models.SHIPPED / "Pong"),
    ):
        assert models.model_directory(name, game) == expected
        assert str(expected) in origin(FeaturesConfig(name), game)
    assert origin(FeaturesConfig("vae"), "Pong").endswith("trained on Pong")
    assert re.search("the universal VAE .* trained on 91 games", origin(FeaturesConfig(), "Alien"))
    assert origin(FeaturesConfig("bprost"), "Pong") == ""


def test_a_directory_comes_before_a_shipped_model_of_its_name(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "universal").symlink_to(small)
    assert models.model_directory("vae:universal", "Pong").resolve() == small / "model"


def test_the_universal_model_is_used_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
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
