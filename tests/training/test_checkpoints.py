"""What is saved comes back bit for bit; what is torn or does not fit is refused by name."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.training import checkpoints
from vaeiw_jax.vae.architecture import variable_shapes
from vaeiw_jax.vae.config import ModelConfig

CONFIG = ModelConfig()


def random_variables(config: ModelConfig, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    arrays = {
        name: generator.normal(size=shape).astype(np.float32)
        for name, shape in variable_shapes(config).items()
    }
    return flax.traverse_util.unflatten_dict(arrays, sep="/")


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        ModelConfig(latent="4x4x200"),
        ModelConfig(latent="15x15x5", latent_kind="gaussian", variant="published"),
    ],
    ids=str,
)
def test_a_model_comes_back_bit_for_bit(config: ModelConfig, tmp_path: Path) -> None:
    variables = random_variables(config)
    models.save_model(tmp_path, config, variables, about={"game": "pong"})
    loaded_config, loaded = models.load_model(tmp_path)
    assert loaded_config == config
    jax.tree.map(np.testing.assert_array_equal, loaded, variables)
    assert models.model_description(tmp_path)["about"] == {"game": "pong"}


def test_a_model_takes_at_most_three_megabytes(tmp_path: Path) -> None:
    models.save_model(tmp_path, CONFIG, random_variables(CONFIG))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3e6


def test_a_new_model_replaces_the_old_one(tmp_path: Path) -> None:
    for seed in range(2):
        models.save_model(tmp_path, CONFIG, random_variables(CONFIG, seed))
    assert len(list(tmp_path.iterdir())) == 2
    _, loaded = models.load_model(tmp_path)
    jax.tree.map(np.testing.assert_array_equal, loaded, random_variables(CONFIG, 1))


def test_torn_and_missing_weights_are_named(tmp_path: Path) -> None:
    models.save_model(tmp_path, CONFIG, random_variables(CONFIG))
    (weights,) = tmp_path.glob("weights-*.npz")
    os.truncate(weights, weights.stat().st_size // 2)
    with pytest.raises(UserError, match=rf"{weights.name} is torn"):
        models.load_model(tmp_path)
    weights.unlink()
    with pytest.raises(UserError, match=rf"{weights.name} is missing"):
        models.load_model(tmp_path)
    with pytest.raises(UserError, match="there is no model in"):
        models.load_model(tmp_path / "absent")


def test_weights_that_do_not_fit_the_config_are_named(tmp_path: Path) -> None:
    models.save_model(tmp_path, CONFIG, random_variables(CONFIG))
    path = tmp_path / models.CONFIG
    description = json.loads(path.read_text())
    description["model"]["latent"] = "15x15x21"
    del description["sha256"]  # or the change itself is noticed
    path.write_text(json.dumps(description))
    with pytest.raises(UserError, match=r"params/decoder/conv_0/kernel .* is float32\[3, 3, 20"):
        models.load_model(tmp_path)
    variables = random_variables(CONFIG)
    del variables["batch_stats"]["encoder"]["block_0"]["norm_0"]["mean"]
    with pytest.raises(UserError, match="lacks batch_stats/encoder/block_0/norm_0/mean"):
        models.save_model(tmp_path, CONFIG, variables)


def some_state(value: float = 0.0) -> dict[str, Any]:
    return {"step": jnp.int32(3), "params": {"w": jnp.full((300, 300), value, jnp.float32)}}


def test_the_latest_and_the_best_checkpoints_are_kept_also_after_reopening(tmp_path: Path) -> None:
    losses: list[float | None] = [None, 1.0, 3.0, 2.0, None, 4.0]
    for step, loss in enumerate(losses, start=1):
        manager = checkpoints.TrainingCheckpoints(tmp_path, keep=2)
        metrics = None if loss is None else {"loss": loss}
        manager.save(step, some_state(step), {"seed": 0}, metrics)
        manager.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "5", "6"]
    manager = checkpoints.TrainingCheckpoints(tmp_path, keep=2)
    assert (manager.latest_step(), manager.best_step()) == (6, 2)
    best = manager.restore(2, some_state())
    jax.tree.map(np.testing.assert_array_equal, best, some_state(2))
    manager.close()


def test_a_save_does_not_see_the_steps_that_follow_it(tmp_path: Path) -> None:
    advance = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf + 1, state), donate_argnums=0)
    state = advance(some_state(0.0))
    manager = checkpoints.TrainingCheckpoints(tmp_path)
    manager.save(1, state, {})
    for _ in range(100):
        state = advance(state)
    manager.wait()
    restored = manager.restore(1, some_state())
    np.testing.assert_array_equal(restored["params"]["w"], np.ones((300, 300)))
    assert restored["step"] == 4
    manager.close()


def test_a_damaged_checkpoint_is_named_whatever_file_is_damaged(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    manager = checkpoints.TrainingCheckpoints(whole)
    state = {"w": jax.random.normal(jax.random.key(0), (200, 200))}
    manager.save(7, state, {})
    manager.close()
    data = max((whole / "7").rglob("*"), key=lambda path: path.stat().st_size)
    for damage in ("flip", "truncate"):
        damaged = tmp_path / damage
        shutil.copytree(whole, damaged)
        path = damaged / data.relative_to(whole)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content if damage == "flip" else content[: len(content) // 2])
        manager = checkpoints.TrainingCheckpoints(damaged)
        with pytest.raises(UserError, match=rf"{damaged}/7 is damaged"):
            manager.restore(7, state)
        manager.close()


def test_what_a_crash_left_unfinished_is_removed_however_torn_it_is(tmp_path: Path) -> None:
    manager = checkpoints.TrainingCheckpoints(tmp_path)
    manager.save(1, some_state(1), {})
    manager.close()
    torn = tmp_path / "2.orbax-checkpoint-tmp"
    shutil.copytree(tmp_path / "1", torn)
    for path in (torn / "about" / "metadata", torn / "_CHECKPOINT_METADATA"):
        path.write_text('{"conf')
    manager = checkpoints.TrainingCheckpoints(tmp_path)
    assert manager.latest_step() == 1
    manager.save(2, some_state(2), {})
    manager.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_the_digests_of_what_older_versions_wrote_are_still_right(tmp_path: Path) -> None:
    universal = models.SHIPPED / models.UNIVERSAL
    models.save_model(tmp_path, *models.load_model(universal), usual=models.usual_codes(universal))
    names = sorted(path.name for path in universal.glob("*.npz"))
    assert sorted(path.name for path in tmp_path.glob("*.npz")) == names
    state = {"step": np.int32(3), "params": {"w": np.arange(6, dtype=np.float32).reshape(2, 3)}}
    assert checkpoints._digest(state).startswith("451030031fc6166d290115c189937cd5")


def test_a_checkpoint_of_another_shape_is_refused(tmp_path: Path) -> None:
    manager = checkpoints.TrainingCheckpoints(tmp_path)
    manager.save(1, {"w": jnp.zeros(3)}, {})
    manager.wait()
    with pytest.raises(UserError, match="of another shape"):
        manager.restore(1, {"w": jnp.zeros(4)})
    manager.close()
