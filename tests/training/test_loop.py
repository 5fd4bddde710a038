"""Training on real screens: batches, steps, validation, interruptions that change something."""

import dataclasses
import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import scipy.special

from tests.random_play import random_screens
from vaeiw_jax import frames
from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, create
from vaeiw_jax.models import model_digest, save_model
from vaeiw_jax.playing import screen_store
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.training import loop, metrics
from vaeiw_jax.training.trainer import Trainer
from vaeiw_jax.vae import latents, sampling, steps
from vaeiw_jax.vae.config import ModelConfig, TrainConfig
from vaeiw_jax.vae.networks import VAE

pytestmark = pytest.mark.usefixtures("compiled_soon")

CONFIG = TrainConfig(screens="", batch_size=2, epochs=2, learning_rate=1e-3, learning_rate_end=1e-4)


@pytest.fixture(scope="module")
def state() -> steps.TrainState:
    return jax.device_get(steps.create_train_state(CONFIG))


@pytest.fixture(scope="module")
def one_step() -> Callable[..., Any]:
    """A compiled step, which several tests take: compiling it takes longer than all of them."""
    return jax.jit(functools.partial(steps.train_steps, CONFIG, 1))


def test_the_split_is_seeded_whole_and_ninetyfive_to_five() -> None:
    (training_part,), (validation_part,) = sampling.split([15_000], 0.05, seed=0)
    assert (len(training_part), len(validation_part)) == (14_250, 750)
    together = np.concatenate([training_part, validation_part])
    np.testing.assert_array_equal(np.sort(together), np.arange(15_000))
    np.testing.assert_array_equal(sampling.split([15_000], 0.05, seed=0)[1][0], validation_part)
    other = sampling.split([15_000], 0.05, seed=1)[1][0]
    assert not np.array_equal(other, validation_part)


def test_epochs_are_shuffled_differently_and_drop_the_last_partial_batch() -> None:
    first, second = (np.asarray(steps.epoch_order(CONFIG, 101, epoch)) for epoch in range(2))
    assert first.shape == (50, 2)
    for order in (first, second):
        assert len(np.unique(order)) == 100
        assert 0 <= order.min() <= order.max() <= 100
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, steps.epoch_order(CONFIG, 101, 0))


def test_steps_in_one_call_equal_steps_in_calls_of_their_own(
    state: steps.TrainState, one_step: Callable[..., Any]
) -> None:
    played = jnp.asarray(random_screens("pong", 4))
    order = steps.epoch_order(CONFIG, 4, 0)
    together, metrics_together = jax.jit(functools.partial(steps.train_steps, CONFIG, 2))(
        state, played, order
    )
    first, metrics_first = one_step(state, played, order)
    second, metrics_second = one_step(first, played, order)
    assert together.step == second.step == 2
    for name in ("loss", "bce", "mse", "gradient_norm"):
        apart = [metrics_first[name][0], metrics_second[name][0]]
        np.testing.assert_allclose(metrics_together[name], apart, rtol=1e-4, err_msg=name)
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4),
        together.batch_stats,
        second.batch_stats,
    )


def test_validation_is_the_loss_of_the_elbo_without_dropout(state: steps.TrainState) -> None:
    played = jnp.asarray(random_screens("pong", 3))
    evaluation = jax.jit(functools.partial(steps.eval_step, CONFIG))(
        state.variables, played, np.array([1, 2]), np.array([True, True]), 0
    )
    model = CONFIG.model
    batch = frames.from_screens(played[1:])[..., None]
    key = jax.random.fold_in(steps._key(CONFIG, steps._VALIDATION), 0)
    noise = latents.noise(model, key, 2)
    output = jax.jit(lambda variables: VAE(model).apply(variables, batch, noise, False))(
        state.variables
    )
    seen = np.asarray(output.pixel_logits, np.float64)
    grey, decoded = np.asarray(batch, np.float64), 1 / (1 + np.exp(-seen))
    for ours, expected in (
        (
            evaluation.terms.bce,
            -scipy.special.xlogy(grey, decoded) - scipy.special.xlogy(1 - grey, 1 - decoded),
        ),
        (evaluation.terms.entropy, scipy.special.entr(grey) + scipy.special.entr(1 - grey)),
    ):
        np.testing.assert_allclose(ours, expected.sum(axis=(1, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(
        evaluation.terms.mse, np.square(decoded - grey).mean(axis=(1, 2, 3)), rtol=1e-5
    )
    kl = latents.kl(model, output.posterior)
    np.testing.assert_allclose(evaluation.terms.kl, kl, rtol=1e-5)
    assert evaluation.features.sum() == evaluation.feature_counts.sum()


def test_what_fills_up_the_last_validation_batch_does_not_count(state: steps.TrainState) -> None:
    played = random_screens("pong", 10)
    config = dataclasses.replace(CONFIG, validation_share=0.3)
    trainer = Trainer(config, ScreenSet.of("", played))
    assert len(trainer.validation_screens) == 3
    shifted = jax.tree.map(np.copy, state)
    # Without this bias no feature is true at the start.
    shifted.params["encoder"]["conv_2"]["bias"][:10] += 5
    validation = trainer.validate(trainer.place(shifted))
    assert validation.features.shape == (3,)
    assert validation.metrics["features_per_frame"] == pytest.approx(10 * 15 * 15, rel=0.05)
    np.testing.assert_allclose(validation.feature_shares.sum(), validation.features.mean())
    assert validation.feature_shares.max() == 1


def test_temperature_and_zero_suppression_follow_their_schedules() -> None:
    config = dataclasses.replace(CONFIG, tau_start=2.0, zero_suppression=0.7)
    progress = (0.0, 1 / 3, 0.5, 2 / 3, 1.0)
    taus, weights = zip(*(steps._schedules(config, jnp.float32(p)) for p in progress), strict=True)
    np.testing.assert_allclose(taus, [2, 2 * 0.25 ** (1 / 3), 1, 2 * 0.25 ** (2 / 3), 0.5], 1e-5)
    np.testing.assert_allclose(weights, [0, 0, 0.35, 0.7, 0.7], atol=1e-6)
    early = dataclasses.replace(config, zero_suppression_from=0.25)
    weights = [steps._schedules(early, jnp.float32(p))[1] for p in progress]
    np.testing.assert_allclose(weights, [0, 0.7 / 3, 0.7, 0.7, 0.7], atol=1e-6)
    at_once = dataclasses.replace(config, zero_suppression_from=0.0)
    assert [steps._schedules(at_once, jnp.float32(p))[1] for p in progress] == [0.7] * 5
    assert steps._schedules(CONFIG, jnp.float32(0.5)) == (None, 0.0)


def test_the_learning_rate_falls_along_half_a_cosine(
    state: steps.TrainState, one_step: Callable[..., Any]
) -> None:
    played = jnp.asarray(random_screens("pong", 4))
    order = steps.epoch_order(CONFIG, 4, 0)  # two steps an epoch, four in all
    for done, rate in ((0, 1e-3), (1, 8.68198e-4), (2, 5.5e-4), (3, 2.31802e-4)):
        after, metrics = one_step(state.replace(step=np.int32(done)), played, order)
        np.testing.assert_allclose(metrics["learning_rate"], [rate], rtol=1e-5)
        moved = jax.tree.map(lambda new, old: np.abs(new - old).max(), after.params, state.params)
        # Adam's first step is as long as the learning rate wherever there is a gradient.
        np.testing.assert_allclose(max(jax.tree.leaves(moved)), rate, rtol=1e-3)


def test_a_run_starts_from_the_model_it_is_given(state: steps.TrainState, tmp_path: Path) -> None:
    others = jax.tree.map(lambda values: values + 1, state.variables)
    save_model(tmp_path, CONFIG.model, others)
    config = dataclasses.replace(CONFIG, start_from=str(tmp_path))
    begun = loop.starting_state(config)
    jax.tree.map(np.testing.assert_array_equal, begun.variables, others)
    smaller = dataclasses.replace(config, model=ModelConfig(latent="4x4x20"))
    with pytest.raises(UserError, match="latent=15x15x20, which cannot begin one with"):
        loop.starting_state(smaller)


def test_no_epochs_validate_a_model_and_leave_it_as_it_is(tmp_path: Path) -> None:
    screens = random_screens("pong", 12)
    screen_store.append(tmp_path / "screens", "Pong", screens)
    store = str(tmp_path / "screens")
    config = TrainConfig(store, epochs=0, batch_size=2, start_from="SpaceInvaders")
    record = loop.train(config, tmp_path / "run")
    assert record is not None
    assert record["steps"] == record["validation"]["step"] == 0
    assert record["validation"]["mse"] > 0
    theirs, ours = (
        create(FeaturesConfig(f"vae:{name}"), Setting("Pong", (210, 160)))
        for name in ("SpaceInvaders", tmp_path / "run")
    )
    for screen in screens:
        seen = SimpleNamespace(screen=screen)
        np.testing.assert_array_equal(ours.atoms(seen, None), theirs.atoms(seen, None))


def test_gradients_are_clipped_to_the_norm_asked_for() -> None:
    gradients = {"w": jnp.full(4, 100.0)}
    optimizer = steps._optimizer(dataclasses.replace(CONFIG, clip_norm=1.0))
    _, opt_state = optimizer.update(gradients, optimizer.init(gradients), gradients)
    moments = optax.tree_utils.tree_get(opt_state, "mu")
    np.testing.assert_allclose(optax.tree.norm(moments), 0.1, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"epochs": 0}, "epochs=0 trains nothing; give --start_from"),
        ({"learning_rate": 0.0}, "learning_rate must be positive"),
        ({"validation_share": 1.0}, "validation_share must lie between 0 and 1"),
        ({"clip_norm": -1.0}, "clip_norm must be zero or more"),
        (
            {"tau_start": 1.0, "model": ModelConfig(latent_kind="gaussian")},
            "are for bernoulli latents",
        ),
    ],
)
def test_nonsense_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        dataclasses.replace(CONFIG, **change)


def test_too_few_frames_are_refused(tmp_path: Path) -> None:
    screen_store.append(tmp_path, "pong", random_screens("pong", 5))
    with pytest.raises(UserError, match="4 frames to train on, fewer than a batch of 64"):
        loop.train(TrainConfig(screens=str(tmp_path)), tmp_path / "run")


def short_run(tmp_path: Path, **changes: Any) -> TrainConfig:
    """Two epochs of one step each."""
    store = tmp_path / "frames"
    if not store.exists():
        screen_store.append(store, "pong", random_screens("pong", 3))
    return TrainConfig(
        screens=str(store), **({"batch_size": 2, "epochs": 2, "picture_every": 0} | changes)
    )


def test_a_run_goes_on_only_with_the_config_and_frames_it_began_with(tmp_path: Path) -> None:
    config, workdir = short_run(tmp_path, epochs=1), tmp_path / "run"
    record = loop.train(config, workdir)
    assert record is not None
    assert loop.train(config, workdir, tell=pytest.fail) == record  # it is not made again
    longer = dataclasses.replace(config, epochs=2)
    with pytest.raises(UserError, match=r"has learning_rate=0\.0001, not 0\.1"):
        loop.train(dataclasses.replace(longer, learning_rate=0.1), workdir)
    with pytest.raises(UserError, match=r"has beta=0\.0001, not 1\.0"):
        loop.train(dataclasses.replace(longer, model=ModelConfig(beta=1.0)), workdir)
    other = tmp_path / "other"
    screen_store.append(other, "breakout", random_screens("breakout", 3))
    with pytest.raises(
        UserError, match=r"the run is of 'pong', and .* holds screens of 'breakout'"
    ):
        loop.train(dataclasses.replace(longer, screens=str(other)), workdir)
    others = tmp_path / "others"
    screen_store.append(others, "pong", random_screens("pong", 9)[3:])
    with pytest.raises(UserError, match="no longer holds the 3 screens"):
        loop.train(dataclasses.replace(longer, screens=str(others)), workdir)
    screen_store.append(Path(config.screens), "pong", random_screens("pong", 9)[3:])
    assert (loop.train(longer, workdir) or {})["steps"] == 2
    assert [line["step"] for line in metrics.read(workdir / metrics.FILE)] == [1, 1, 2, 2]


def test_a_refused_run_leaves_the_work_directory_to_the_corrected_one(tmp_path: Path) -> None:
    workdir = tmp_path / "run"
    with pytest.raises(UserError, match="unknown directory or VAE that is shipped 'nowhere'"):
        loop.train(short_run(tmp_path, epochs=1, start_from="nowhere"), workdir)
    assert not (workdir / loop.CONFIG).exists()
    record = loop.train(short_run(tmp_path, epochs=1), workdir)
    assert record is not None
    assert (workdir / loop.CONFIG).exists()


def test_a_finished_training_needs_neither_its_screens_nor_the_model_it_started_from(
    state: steps.TrainState, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    save_model(start, CONFIG.model, state.variables)
    config, workdir = short_run(tmp_path, epochs=1, start_from=str(start)), tmp_path / "run"
    record = loop.train(config, workdir)
    shutil.rmtree(config.screens)
    shutil.rmtree(start)
    moved = tmp_path / "moved"
    workdir.rename(moved)
    assert loop.train(config, moved) == record
    assert record is not None
    # Of other screens it is not the record.
    other = tmp_path / "other"
    screen_store.append(other, "breakout", random_screens("breakout", 3))
    with pytest.raises(UserError, match="the run is of 'pong'"):
        loop.train(dataclasses.replace(config, screens=str(other)), moved)
    # Nor of those that lie now where its own were.
    other.rename(config.screens)
    with pytest.raises(UserError, match="the run is of 'pong'"):
        loop.train(config, moved)


def test_a_run_that_is_refused_more_epochs_keeps_its_record(tmp_path: Path) -> None:
    config, workdir = short_run(tmp_path, epochs=1), tmp_path / "run"
    record = loop.train(config, workdir)
    (checkpoint,) = (workdir / "checkpoints").glob("[0-9]*")
    (checkpoint / "about" / "metadata").write_text("{")
    with pytest.raises(UserError, match="is damaged"):
        loop.train(dataclasses.replace(config, epochs=2), workdir)
    assert loop.finished(config, workdir) == record


def test_the_record_tells_of_the_model_there_is_when_the_best_checkpoint_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([1000.0, 2000.0, 3000.0])
    validate = Trainer.validate

    def with_losses(self: Trainer, state: steps.TrainState) -> Any:
        validation = validate(self, state)
        validation.metrics["loss"] = next(losses)
        return validation

    monkeypatch.setattr(Trainer, "validate", with_losses)
    config, workdir = short_run(tmp_path, epochs=3), tmp_path / "run"
    done = iter([False, True])
    assert loop.train(config, workdir, interrupted=lambda: next(done)) is None
    shutil.rmtree(workdir / "checkpoints" / "1")
    record = loop.train(config, workdir)
    assert record is not None
    assert record["validation"]["step"] == 2
    assert record["validation"]["loss"] == 2000.0


def test_a_run_goes_on_with_its_starting_model_gone_or_elsewhere(
    state: steps.TrainState, tmp_path: Path
) -> None:
    start, elsewhere, another = (tmp_path / name for name in ("start", "elsewhere", "another"))
    save_model(start, CONFIG.model, state.variables)
    save_model(another, CONFIG.model, jax.tree.map(lambda values: values + 1, state.variables))
    digest = model_digest(start)
    config, workdir = short_run(tmp_path, start_from=str(start)), tmp_path / "run"
    assert loop.train(config, workdir, interrupted=lambda: True) is None
    start.rename(elsewhere)
    another.rename(start)
    with pytest.raises(UserError, match=f"has start_from={start}, not {start}"):
        loop.train(config, workdir)
    start.rename(another)
    for path in (another, tmp_path / "nowhere"):
        with pytest.raises(UserError, match=f"has start_from={start}, not {path}"):
            loop.train(dataclasses.replace(config, start_from=str(path)), workdir)
    copy = shutil.copytree(workdir, tmp_path / "copy")
    whole = loop.train(dataclasses.replace(config, start_from=str(elsewhere)), workdir)
    assert whole is not None
    assert whole["steps"] == 2
    shutil.rmtree(elsewhere)
    gone = loop.train(config, copy)
    assert gone is not None
    assert gone["model"] == whole["model"]
    assert gone["starting_model"] == whole["starting_model"] == digest


def test_a_loss_that_is_not_finite_stops_the_run_with_advice(tmp_path: Path) -> None:
    config, workdir = short_run(tmp_path, learning_rate=1e30), tmp_path / "run"
    with pytest.raises(UserError) as raised:
        loop.train(config, workdir)
    sentence = str(raised.value)
    assert "became nan at step 1" in sentence  # in its validation
    assert "the last good checkpoint is none yet" in sentence
    assert "--clip_norm=1" in sentence
    assert [line["kind"] for line in metrics.read(workdir / metrics.FILE)] == ["train"]
    assert not (workdir / "model").exists()


def test_a_step_in_bfloat16_is_close_to_one_in_float32(
    state: steps.TrainState, one_step: Callable[..., Any], compiled_soon: dict[str, str]
) -> None:
    played = jnp.asarray(random_screens("pong", 4))
    order = steps.epoch_order(CONFIG, 4, 0)
    losses = {}
    bfloat16 = dataclasses.replace(CONFIG, model=ModelConfig(dtype="bfloat16"))
    function = functools.partial(steps.train_steps, bfloat16, 1)
    compiled = jax.jit(function, compiler_options=compiled_soon)
    for dtype, step in (("float32", one_step), ("bfloat16", compiled)):
        after, values = step(state, played, order)
        assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(after.params))
        losses[dtype] = float(values["loss"][0])
    assert losses["bfloat16"] != losses["float32"]
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.01)


def test_a_short_training_halves_the_excess_of_the_reconstruction(tmp_path: Path) -> None:
    store = tmp_path / "frames"
    screen_store.append(store, "breakout", random_screens("breakout", 21))
    config = TrainConfig(
        screens=str(store), batch_size=2, epochs=2, learning_rate=1e-3, picture_every=0
    )
    loop.train(config, tmp_path / "run")
    lines = metrics.read(tmp_path / "run" / metrics.FILE)
    trained = [line for line in lines if line["kind"] == "train"]
    assert trained[-1]["excess_bce"] < trained[0]["excess_bce"] / 2
    validated = [line for line in lines if line["kind"] == "validation"]
    assert validated[-1]["excess_bce"] < trained[0]["excess_bce"] / 2
