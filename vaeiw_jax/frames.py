"""From a palette screen to a grey 128x128 frame: the one function that training and planning share.

Grey is a lookup by palette byte; the resize is bilinear with antialiasing, as Pillow's BILINEAR,
and therefore two fixed matrices. Both hold whole numbers (the weights over a common denominator),
small enough that every sum is exact in float32: a frame depends on its screen alone, never on the
batch it is in, the order of summation or the device.
"""

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import jax  # takes half a second to load, and play makes its frames without it

SCREEN_SHAPE = (210, 160)
FRAME_SIZE = 128

# The emulator's NTSC palette: a line per hue, dark to bright. A palette byte's lowest bit is idle.
_COLOURS = """
000000 4a4a4a 6f6f6f 8e8e8e aaaaaa c0c0c0 d6d6d6 ececec
484800 69690f 86861d a2a22a bbbb35 d2d240 e8e84a fcfc54
7c2c00 904811 a26221 b47a30 c3903d d2a44a dfb755 ecc860
901c00 a33915 b55328 c66c3a d5824a e39759 f0aa67 fcbc74
940000 a71a1a b83232 c84848 d65c5c e46f6f f08080 fc9090
840064 97197a a8308f b846a2 c659b3 d46cc3 e07cd2 ec8ce0
500084 68199a 7d30ad 9246c0 a459d0 b56ce0 c57cee d48cfc
140090 331aa3 4e32b5 6848c6 7f5cd5 956fe3 a980f0 bc90fc
000094 181aa7 2d32b8 4248c8 545cd6 656fe4 7580f0 8490fc
001c88 183b9d 2d57b0 4272c2 548ad2 65a0e1 75b5ef 84c8fc
003064 185080 2d6d98 4288b0 54a0c5 65b7d9 75cceb 84e0fc
004030 18624e 2d8169 429e82 54b899 65d1ae 75e7c2 84fcd4
004400 1a661a 328432 48a048 5cba5c 6fd26f 80e880 90fc90
143c00 355f18 527e2d 6e9c42 87b754 9ed065 b4e775 c8fc84
303800 505916 6d762b 88923e a0ab4f b7c25f ccd86e e0ec7c
482c00 694d14 866a26 a28638 bb9f47 d2b656 e8cc63 fce070
"""

RGB = np.repeat(
    np.frombuffer(bytes.fromhex("".join(_COLOURS.split())), np.uint8).reshape(128, 3), 2, axis=0
)
"""uint8[256, 3]: the colour of each palette byte."""

GREY = np.rint(RGB @ np.array([0.2989, 0.587, 0.114])).astype(np.float32)
"""float32[256]: the grey level of each palette byte, a whole number from 0 to 236."""


def from_screens(screens: "jax.Array | np.ndarray") -> "jax.Array":
    """screens: uint8[..., rows, columns] -> frames: float32[..., 128, 128], grey in [0, 1]."""
    import jax
    import jax.numpy as jnp

    rows, row_sums = resize_weights(screens.shape[-2])
    columns, column_sums = resize_weights(screens.shape[-1])
    grey = jnp.asarray(GREY)[screens]
    sums = jnp.einsum(
        "fr,...rc,gc->...fg", rows, grey, columns, precision=jax.lax.Precision.HIGHEST
    )
    scale = 1 / (255.0 * np.outer(row_sums, column_sums))
    return sums * scale.astype(np.float32)


@functools.cache
def resize_weights(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the resize, whole numbers in float32[128, size], and their sums float32[128].

    Output pixel i is centred on (i + 1/2) * size / 128 and weighs input pixels by a triangle that
    falls to zero one output pixel (when enlarging: one input pixel) away. These weights are
    fractions with one denominator, left out here.
    """
    centres = (2 * np.arange(FRAME_SIZE)[:, None] + 1) * size
    pixels = (2 * np.arange(size)[None, :] + 1) * FRAME_SIZE
    weights = np.maximum(2 * max(size, FRAME_SIZE) - np.abs(pixels - centres), 0)
    weights //= math.gcd(*weights.ravel().tolist())
    return weights.astype(np.float32), weights.sum(axis=1).astype(np.float32)
