"""From stored screens to a trained model: the loop around the pure functions of `vae`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vaeiw_jax.training.loop import train

__all__ = ["train"]


def __getattr__(name: str) -> Any:
    """Loads the loop, and JAX with it, where it is asked for: reports read metrics without either."""
    if name == "train":
        from vaeiw_jax.training.loop import train

        return train
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
