"""The convolutions of the networks, over float[B, H, W, C] and kernels [height, width, in, out]."""

import jax
import jax.numpy as jnp
from jax import lax

_LAYOUT = ("NHWC", "HWIO", "NHWC")


def conv(x: jax.Array, kernel: jax.Array, stride: int = 1, padding: int = 0) -> jax.Array:
    """Cross-correlation: y[i] = sum over a of x[stride * i - padding + a] @ kernel[a], in both directions."""
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), [(padding, padding)] * 2, dimension_numbers=_LAYOUT
    )


def conv_transpose(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Transposed convolution of stride 2: y[2 * i + a] sums x[i] @ kernel[a], in both directions."""
    height, width = kernel.shape[:2]
    return lax.conv_general_dilated(
        x,
        jnp.flip(kernel, (0, 1)),
        (1, 1),
        [(height - 1, height - 1), (width - 1, width - 1)],
        lhs_dilation=(2, 2),
        dimension_numbers=_LAYOUT,
    )
