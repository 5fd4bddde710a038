"""The convolutions of the networks, over float[B, H, W, C] and kernels [height, width, in, out].

Each comes twice: as XLA's own convolution, for accelerators, and rewritten for the CPU, where XLA
is slow at the gradients of strided and transposed convolutions. Both are the same function of the
same parameters, with the same gradients. Which one is used is decided when a function is lowered,
by the platform it is lowered for: exported for `cuda` or `tpu` from a machine that has neither, it
is XLA's own.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

_LAYOUT = ("NHWC", "HWIO", "NHWC")


@functools.cache
def compiler_options() -> dict[str, str]:
    """What to pass to `jax.jit(..., compiler_options=)` around convolutions.

    XLA hands convolutions on the CPU to a library that, as of jaxlib 0.10, computes each on one
    thread. Without it XLA's own kernels run, as fast on one thread and on all of them.
    """
    options = {"xla_cpu_experimental_ynn_fusion_type": ""}
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:  # an XLA that has no such option
        return {}
    return options if jax.default_backend() == "cpu" else {}


def conv(
    x: jax.Array,
    kernel: jax.Array,
    stride: int = 1,
    padding: int = 0,
    rewritten: bool | None = None,
) -> jax.Array:
    """Cross-correlation: y[i] = sum over a of x[stride * i - padding + a] @ kernel[a], in 2-D.

    Args:
      x: float[B, H, W, C].
      kernel: float[size, size, C, C'].
      stride: 1 or 2; with 2 the kernel's size is 3 or 4.
      padding: zeros on each side.
      rewritten: whether to use the form for the CPU; None leaves it to the platform.
    """

    def own(x: jax.Array, kernel: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x, kernel, (stride, stride), [(padding, padding)] * 2, dimension_numbers=_LAYOUT
        )

    def for_cpu(x: jax.Array, kernel: jax.Array) -> jax.Array:
        rewrite = _unit_conv if stride == 1 else _conv_as_unit_conv
        return rewrite(x, kernel, padding)

    return _by_platform(own, for_cpu, rewritten)(x, kernel)


def conv_transpose(x: jax.Array, kernel: jax.Array, rewritten: bool | None = None) -> jax.Array:
    """Transposed convolution of stride 2: y[2 * i + a] sums x[i] @ kernel[a], in 2-D.

    Args:
      x: float[B, H, W, C].
      kernel: float[size, size, C, C'], of size 3 or 4.
      rewritten: whether to use the form for the CPU; None leaves it to the platform.
    """

    def own(x: jax.Array, kernel: jax.Array) -> jax.Array:
        margin = len(kernel) - 1
        return lax.conv_general_dilated(
            x,
            jnp.flip(kernel, (0, 1)),
            (1, 1),
            [(margin, margin)] * 2,
            lhs_dilation=(2, 2),
            dimension_numbers=_LAYOUT,
        )

    return _by_platform(own, _conv_transpose_as_unit_conv, rewritten)(x, kernel)


_Convolution = Callable[[jax.Array, jax.Array], jax.Array]


def _by_platform(own: _Convolution, for_cpu: _Convolution, rewritten: bool | None) -> _Convolution:
    """The form of a convolution to use: the given one, or that of the platform it is lowered for.

    On several CPU devices it is XLA's own: the rewritten gradient of a kernel takes images for
    channels, which does not go with a batch that is spread over devices.
    """
    if rewritten is not None:
        return for_cpu if rewritten else own
    if jax.device_count() > 1:
        return own
    return functools.partial(lax.platform_dependent, cpu=for_cpu, default=own)


def _conv_as_unit_conv(x: jax.Array, kernel: jax.Array, padding: int) -> jax.Array:
    """A convolution of stride 2 as one of stride 1 and size 2 over 2x2 pixels at a time.

    With a = 2q + r: y[i] = sum over q, r of x[2 (i + q) + r - padding] @ kernel[2q + r].
    """
    batch, height, width, channels = x.shape
    out_height = (height + 2 * padding - len(kernel)) // 2 + 1
    out_width = (width + 2 * padding - len(kernel)) // 2 + 1
    below = 2 * out_height + 2 - height - padding  # negative where the last row is never read
    right = 2 * out_width + 2 - width - padding
    zero = jnp.zeros((), x.dtype)
    x = lax.pad(x, zero, [(0, 0, 0), (padding, below, 0), (padding, right, 0), (0, 0, 0)])
    x = x.reshape(batch, out_height + 1, 2, out_width + 1, 2, channels)
    x = x.transpose(0, 1, 3, 2, 4, 5).reshape(batch, out_height + 1, out_width + 1, -1)
    phases = _phases(kernel).transpose(0, 2, 1, 3, 4, 5)  # to q, q, r, r, in, out
    return _unit_conv(x, phases.reshape(2, 2, 4 * channels, -1), 0)


def _conv_transpose_as_unit_conv(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """A transposed convolution of stride 2 as a convolution of size 2 to four times the channels.

    With a = 2q + r: y[2m + r] = sum over q of x[m - q] @ kernel[2q + r]; the four (r, r) of a
    position are the channels of the convolution, then its neighbours in the image.
    """
    batch, height, width, channels = x.shape
    size, out_channels = len(kernel), kernel.shape[-1]
    phases = jnp.flip(_phases(kernel), (0, 2)).transpose(0, 2, 4, 1, 3, 5)  # to q, q, in, r, r, out
    y = _unit_conv(x, phases.reshape(2, 2, channels, 4 * out_channels), 1)
    y = y.reshape(batch, height + 1, width + 1, 2, 2, out_channels).transpose(0, 1, 3, 2, 4, 5)
    y = y.reshape(batch, 2 * height + 2, 2 * width + 2, out_channels)
    return y[:, : 2 * (height - 1) + size, : 2 * (width - 1) + size]


def _phases(kernel: jax.Array) -> jax.Array:
    """A kernel of size 3 or 4 with its offsets a = 2q + r apart: [q, r, q, r, in, out]."""
    lacking = 4 - len(kernel)
    kernel = jnp.pad(kernel, ((0, lacking), (0, lacking), (0, 0), (0, 0)))
    return kernel.reshape(2, 2, 2, 2, *kernel.shape[2:])


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _unit_conv(x: jax.Array, kernel: jax.Array, padding: int) -> jax.Array:
    """A convolution of stride 1 whose gradients are convolutions that XLA is fast at."""
    return lax.conv_general_dilated(
        x, kernel, (1, 1), [(padding, padding)] * 2, dimension_numbers=_LAYOUT
    )


def _unit_conv_forward(
    x: jax.Array, kernel: jax.Array, padding: int
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return _unit_conv(x, kernel, padding), (x, kernel)


def _unit_conv_backward(
    padding: int, saved: tuple[jax.Array, jax.Array], dy: jax.Array
) -> tuple[jax.Array, jax.Array]:
    x, kernel = saved
    backwards = jnp.flip(kernel, (0, 1)).swapaxes(2, 3)
    dx = _unit_conv(dy, backwards, len(kernel) - 1 - padding)
    return dx, _kernel_gradient(x, dy, len(kernel), padding).astype(kernel.dtype)


_unit_conv.defvjp(_unit_conv_forward, _unit_conv_backward)


def _kernel_gradient(x: jax.Array, dy: jax.Array, size: int, padding: int) -> jax.Array:
    """dkernel[a, b] = sum over i, j of x[i + a, j + b] outer dy[i, j]: itself a convolution.

    Its images are the channels of x or of dy, whichever has fewer, its kernel is the other, and the
    images of the batch are its channels.
    """
    if dy.shape[-1] < x.shape[-1]:
        swapped = _correlation(dy, x, size, size - 1 - padding)
        return jnp.flip(swapped, (0, 1)).swapaxes(2, 3)
    return _correlation(x, dy, size, padding)


def _correlation(x: jax.Array, y: jax.Array, size: int, padding: int) -> jax.Array:
    """[a, b] -> sum over i, j of x[i + a - padding, j + b - padding] outer y[i, j], a and b < size.

    Where the output is not as large as the input or without padding, XLA's kernel for it is fifty
    times slower, so x is padded before.
    """
    if 2 * padding != size - 1:
        x = jnp.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
        padding = 0
    return lax.conv_general_dilated(
        x,
        y,
        (1, 1),
        [(padding, padding)] * 2,
        dimension_numbers=("CHWN", "IHWO", "HWNC"),
        preferred_element_type=jnp.float32,
    )
