"""A training step here and in PyTorch."""

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from vaeiw_jax.benchmarks.config import BenchmarkConfig
from vaeiw_jax.benchmarks.measurements import Measurements
from vaeiw_jax.errors import UserError
from vaeiw_jax.playing.screen_store import ScreenSet
from vaeiw_jax.training.trainer import Trainer
from vaeiw_jax.vae import steps
from vaeiw_jax.vae.config import TrainConfig

SUITE, PART = "train", "seconds"
JAX, TORCH, CHANNELS_LAST = "jax", "PyTorch", "PyTorch, channels last"


def measure(config: BenchmarkConfig, results: Measurements) -> None:
    """One step of Adam in JAX and in PyTorch, whose layout of images is tried both ways."""
    name = f"{config.model.latent}, batch {config.batch_size}"
    if not results.missing(SUITE, PART, [name]):
        return
    training = TrainConfig(screens="", model=config.model, batch_size=config.batch_size)
    functions = {
        JAX: _jax_step(training),
        TORCH: _torch_step(training, channels_last=False),
        CHANNELS_LAST: _torch_step(training, channels_last=True),
    }
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    # Measured in turn, so that a slow phase of the machine affects all alike; the first turn is a warm-up.
    turns = [(turn, each) for turn in range(config.repeats + 1) for each in functions]
    for turn, each in tqdm(turns, desc=SUITE, unit=" steps"):
        start = time.perf_counter()
        functions[each]()
        if turn > 0:
            seconds[each].append(time.perf_counter() - start)
    model, devices = dataclasses.asdict(config.model), [str(device) for device in jax.devices()]
    results.put(SUITE, PART, name, {"seconds": seconds, "model": model, "devices": devices})


def _jax_step(config: TrainConfig) -> Callable[[], None]:
    screens = np.random.default_rng(0).integers(
        0, 256, (2 * config.batch_size + 2, 210, 160), np.uint8
    )
    trainer = Trainer(config, ScreenSet.of("", screens))
    state = trainer.place(steps.create_train_state(config))
    order = trainer.epoch_order(0)

    def step() -> None:
        nonlocal state
        state, metrics = trainer.advance(state, order, 1)
        jax.block_until_ready((state, metrics))

    return step


def _torch_step(config: TrainConfig, channels_last: bool) -> Callable[[], None]:
    try:
        import torch

        from tests.vae import torch_reference
    except ImportError as error:
        raise UserError(
            f"the reference needs PyTorch and the project's tests ({error});"
            " pip install torch, and start the benchmark in the project's folder"
        ) from error
    model = config.model
    layout = torch.channels_last if channels_last else torch.contiguous_format
    reference: Any = torch_reference.ReferenceVAE(
        model.height,
        model.channels,
        gaussian=model.latent_kind == "gaussian",
        published=model.variant == "published",
        dropout=model.dropout,
    )
    reference = reference.to(memory_format=layout)
    frames = torch.rand(config.batch_size, 1, 128, 128).to(memory_format=layout)
    optimiser = torch.optim.Adam(reference.parameters(), config.learning_rate)

    def step() -> None:
        noise = torch.randn(config.batch_size, model.channels, model.height, model.width)
        optimiser.zero_grad()
        torch_reference.loss(reference, frames, noise, model.beta).backward()
        optimiser.step()

    return step


def medians(results: Measurements) -> dict[str, dict[str, float]]:
    """The median seconds of a step, by model and batch, then by implementation."""
    return {
        name: {each: statistics.median(times) for each, times in measured["seconds"].items()}
        for name, measured in results.of(SUITE, PART).items()
    }
