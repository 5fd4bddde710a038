"""What a training run begins with: random weights, or those of a model of the same shape."""

from typing import Any

from vaeiw_jax.errors import UserError
from vaeiw_jax.models import load_model, model_directory
from vaeiw_jax.vae.steps import TrainConfig, TrainState, create_train_state


def starting_state(config: TrainConfig) -> TrainState:
    """The state before the first step, with the weights of the model the config starts from."""
    state = create_train_state(config)
    if not config.start_from:
        return state
    variables = starting_model(config)
    return TrainState(state.step, variables["params"], variables["batch_stats"], state.opt_state)


def starting_model(config: TrainConfig) -> dict[str, Any]:
    """The variables of the model the config starts from; one of another shape is refused."""
    directory = model_directory(f"vae:{config.start_from}", "")
    model, variables = load_model(directory)
    for name in ("latent", "latent_kind", "variant"):
        if getattr(model, name) != getattr(config.model, name):
            raise UserError(
                f"{directory} holds a model with {name}={getattr(model, name)}, which cannot begin"
                f" one with {name}={getattr(config.model, name)}; --start_from= begins with random weights"
            )
    return variables
