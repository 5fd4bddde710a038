"""Which screens to learn from next: those that a trained model explains worst, or any."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from vaeiw_jax.models import load_model
from vaeiw_jax.progress import Interrupted, Progress, Tell, never, silent
from vaeiw_jax.vae import convolutions, latents, misfit
from vaeiw_jax.vae.config import ENTROPY, RANDOM, ModelConfig

BATCH = 32
"""Screens that are measured at once."""

Screens = Callable[[np.ndarray], np.ndarray]
"""int[n], places of screens -> uint8[n, rows, columns]: not all need be in memory at once."""


class Choice(NamedTuple):
    """Screens to learn from."""

    places: np.ndarray
    """int[n], ascending."""
    mean_misfit: float | None = None
    """Of all that were measured; None if none were."""
    chosen_misfit: float | None = None
    """Of those chosen."""


def choose(
    criterion: str,
    model: Path | None,
    count: int,
    screens: Screens,
    number: int,
    rng: np.random.Generator,
    candidates: int = 0,
    interrupted: Interrupted = never,
    tell: Tell = silent,
) -> Choice | None:
    """Chooses at most `number` of `count` screens.

    Args:
      criterion: one of `config.CRITERIA`.
      model: the folder of the model that is to explain them; None chooses at random.
      count: how many screens there are.
      screens: gives them.
      number: how many to choose.
      rng: draws those chosen at random, and the candidates.
      candidates: measure and choose among this many, drawn at random; 0: among all.
      interrupted: asked after every batch.
      tell: called after every batch.

    Returns:
      The choice; None if interrupted.
    """
    if not number or not count:
        return Choice(np.zeros(0, int))
    if criterion == RANDOM or model is None:
        return Choice(_drawn(count, number, rng))
    among = _drawn(count, candidates or count, rng)
    parts: list[np.ndarray] = []
    for part in measured(criterion, model, among, screens):
        parts.append(part)
        tell(Progress(sum(map(len, parts)), len(among)))
        if interrupted():
            return None
    misfits = np.concatenate(parts).astype(np.float64)
    places = worst(misfits, number)
    return Choice(among[places], float(misfits.mean()), float(misfits[places].mean()))


def measured(
    measure: str, model: Path, places: np.ndarray, screens: Screens
) -> Iterator[np.ndarray]:
    """How badly a model explains screens, a batch at a time: float32[n] each.

    All screens are given the same noise, from a fixed key, and all batches are filled up to one size, so that the
    measure of a screen is a function of screen and model.

    Args:
      measure: one of `config.MISFITS`.
      model: the folder of the model.
      places: int[n], which screens.
      screens: gives them.
    """
    config, variables = load_model(model)
    variables = jax.device_put(variables)
    others: tuple[Any, ...] = ()
    if measure == ENTROPY:
        of_batch = _compiled(misfit.code_entropy, config)
    else:
        of_batch = _compiled(misfit.reconstruction_and_kl, config)
        noise = latents.noise(config, jax.random.key(0), 1)
        others = (noise, misfit.kl_weight(config, measure))
    size = min(BATCH, len(places))
    for start in range(0, len(places), size):
        batch = screens(places[start : start + size])
        filled = np.pad(batch, ((0, size - len(batch)), (0, 0), (0, 0)))
        yield np.asarray(of_batch(variables, filled, *others))[: len(batch)]


@functools.cache
def _compiled(function: Callable[..., jax.Array], config: ModelConfig) -> Callable[..., jax.Array]:
    """Compiled once for all models of a shape."""
    return jax.jit(
        functools.partial(function, config), compiler_options=convolutions.compiler_options()
    )


def worst(misfits: np.ndarray, number: int) -> np.ndarray:
    """int[n]: the indices of the `number` largest values, ascending; of equal values the first."""
    return np.sort(np.argsort(-misfits, kind="stable")[:number])


def _drawn(count: int, number: int, rng: np.random.Generator) -> np.ndarray:
    """int[n]: at most `number` indices below `count`, at random, ascending."""
    return np.sort(rng.choice(count, min(number, count), replace=False))
