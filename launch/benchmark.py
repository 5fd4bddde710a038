"""Measures this machine: one suite a run, a line per measurement, all of it in one JSON file.

    python -m launch.benchmark --suite=train

Start it in the project's folder, on a machine that does nothing else. Suites:

    train   a training step of the autoencoder here and in the PyTorch reference of tests/
"""

import dataclasses
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np
from absl import flags

from launch import command
from vaeiw_jax import durable
from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.vae import steps
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.training import TrainConfig, Trainer

SUITE = flags.DEFINE_string("suite", None, "what to measure: train")
OUTPUT = flags.DEFINE_string("output", None, "JSON file to write; default: benchmark_SUITE.json")
REPEATS = flags.DEFINE_integer("repeats", 3, "how often each measurement is taken")
BATCH_SIZE = flags.DEFINE_integer("batch_size", 64, "train: frames per step")
command.define_flags(ModelConfig)


@dataclasses.dataclass(frozen=True)
class Measurement:
    """The seconds that one thing took, each time."""

    name: str
    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def main() -> None:
    suites: dict[str, Callable[[], dict[str, Any]]] = {"train": train}
    if SUITE.value is None:
        raise UserError(f"--suite is missing; choose {' or '.join(suites)}")
    if SUITE.value not in suites:
        raise unknown("suite", SUITE.value, suites)
    if REPEATS.value < 1:
        raise UserError(f"repeats must be 1 or more, not {REPEATS.value}")
    report = {"suite": SUITE.value, **suites[SUITE.value](), "machine": machine()}
    path = Path(OUTPUT.value or f"benchmark_{SUITE.value}.json")
    durable.write_json(path, report)
    print(f"written: {path}")


def train() -> dict[str, Any]:
    """One step of Adam in JAX and in PyTorch, whose layout of images is tried both ways."""
    model = command.read_flags(ModelConfig)
    config = TrainConfig(frames="", model=model, batch_size=BATCH_SIZE.value)
    measurements = measure(
        {
            "jax": jax_step(config),
            "pytorch": torch_step(config, channels_last=False),
            "pytorch, channels last": torch_step(config, channels_last=True),
        }
    )
    ours, *theirs = (measurement.median for measurement in measurements)
    ratio, ratio_to_the_faster = ours / theirs[0], ours / min(theirs)
    print(f"jax / pytorch: {ratio:.2f}; jax / the faster pytorch: {ratio_to_the_faster:.2f}")
    return {
        "batch_size": config.batch_size,
        "model": dataclasses.asdict(model),
        "measurements": [dataclasses.asdict(measurement) for measurement in measurements],
        "ratio": ratio,
        "ratio_to_the_faster": ratio_to_the_faster,
    }


def measure(functions: Mapping[str, Callable[[], None]]) -> list[Measurement]:
    """Takes turns, so that what slows the machine slows all alike; a first turn warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(REPEATS.value + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if turn > 0:
                seconds[name].append(time.perf_counter() - start)
    measurements = [Measurement(name, times) for name, times in seconds.items()]
    for measurement in measurements:
        print(f"{measurement.name}: {measurement.median:.3f} s", flush=True)
    return measurements


def jax_step(config: TrainConfig) -> Callable[[], None]:
    screens = np.random.default_rng(0).integers(
        0, 256, (2 * config.batch_size + 2, 210, 160), np.uint8
    )
    trainer = Trainer(config, screens)
    state = trainer.place(steps.create_train_state(config))
    order = trainer.epoch_order(0)

    def step() -> None:
        nonlocal state
        state, metrics = trainer.advance(state, order, 1)
        jax.block_until_ready((state, metrics))

    return step


def torch_step(config: TrainConfig, channels_last: bool) -> Callable[[], None]:
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


def machine() -> dict[str, Any]:
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "devices": [str(device) for device in jax.devices()],
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in ("jax", "jaxlib", "torch", "numpy")},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    command.run(main)
