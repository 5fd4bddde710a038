"""Between images and vectors with one number per channel: sums over an image, vectors spread on it.

They are each other's gradient. Written out because XLA on the CPU takes ten times as long over a
plain `x.sum((0, 1, 2))` as over a product with a vector of ones.
"""

import jax
import jax.numpy as jnp


def channel_sum(x: jax.Array) -> jax.Array:
    """x: float[B, H, W, C] -> float32[C], the sum over batch, rows and columns."""
    batch, height, width, channels = x.shape
    positions = x.reshape(batch, height * width, channels)
    ones = jnp.ones((batch, height * width), x.dtype)
    per_image = jnp.einsum("bp,bpc->bc", ones, positions, preferred_element_type=jnp.float32)
    return per_image.sum(axis=0)


@jax.custom_vjp
def spread(vector: jax.Array, image: jax.Array) -> jax.Array:
    """vector: float[C] -> the same at every position, in the shape and type of `image`."""
    return jnp.broadcast_to(vector.astype(image.dtype), image.shape)


def _spread_forward(vector: jax.Array, image: jax.Array) -> tuple[jax.Array, None]:
    return spread(vector, image), None


def _spread_backward(_: None, gradient: jax.Array) -> tuple[jax.Array, None]:
    return channel_sum(gradient), None


spread.defvjp(_spread_forward, _spread_backward)
