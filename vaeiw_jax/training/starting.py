"""What a training run begins with: random weights, or those of a model of the same shape."""

from typing import Any

from vaeiw_jax.errors import UserError
from vaeiw_jax.models import CONFIG, load_model, model_digest, named
from vaeiw_jax.vae.config import TrainConfig
from vaeiw_jax.vae.steps import TrainState, create_train_state, train_state_of


def starting_state(config: TrainConfig) -> TrainState:
    """The state before the first step, with the weights of the model the config starts from."""
    if not config.start_from:
        return create_train_state(config)
    return train_state_of(config, starting_model(config))


def starting_model(config: TrainConfig) -> dict[str, Any]:
    """The variables of the model the config starts from; one of another shape is refused."""
    directory = named(config.start_from)
    model, variables = load_model(directory)
    for name in ("latent", "latent_kind", "variant"):
        if getattr(model, name) != getattr(config.model, name):
            raise UserError(
                f"{directory} holds a model with {name}={getattr(model, name)}, which cannot begin"
                f" one with {name}={getattr(config.model, name)}; --start_from= begins with random weights"
            )
    return variables


def starting_digest(start_from: str) -> str | None:
    """The digest of the model that `start_from` names; None if it names none, or one that is gone."""
    directory = named(start_from)
    return model_digest(directory) if start_from and (directory / CONFIG).exists() else None
