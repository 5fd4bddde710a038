"""Encoder and decoder of the paper (Tables 3 to 7), for codes of 15x15 and 4x4 positions.

Parameters are named alike in both networks: `conv_i` is the i-th strided (in the decoder:
transposed) convolution, `block_i` the residual block after it, with `norm_0`, `conv_0`, `norm_1`,
`conv_1`.
"""

import math
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from vaeiw_jax.frames import FRAME_SIZE
from vaeiw_jax.vae import convolutions, latents
from vaeiw_jax.vae.architecture import (
    DECODER_KERNELS,
    ENCODER_LAYERS,
    HIDDEN_CHANNELS,
    LEAK,
    NORM_EPSILON,
    NORM_MOMENTUM,
)
from vaeiw_jax.vae.channels import normalise, spread
from vaeiw_jax.vae.config import ModelConfig

CLAMP = 8.0  # the published code keeps its logits within this


class VAEOutput(NamedTuple):
    """What one pass of the autoencoder gives."""

    posterior: jax.Array  # float32[B, H, W, posterior_channels]
    latents: jax.Array  # float32[B, H, W, C], samples
    pixel_logits: jax.Array  # float32[B, 128, 128, 1]


class VAE(nn.Module):
    """The autoencoder. Needs the rng "dropout" while training."""

    config: ModelConfig

    def setup(self) -> None:
        self.encoder = Encoder(self.config)
        self.decoder = Decoder(self.config)

    def __call__(
        self,
        frames: jax.Array,
        noise: jax.Array,
        train: bool,
        tau: jax.Array | float | None = None,
    ) -> VAEOutput:
        """Encodes frames, float[B, 128, 128, 1], samples codes with the noise and decodes them."""
        posterior = self.encode(frames, train)
        if self.config.variant == "published" and self.config.latent_kind == "bernoulli":
            posterior = jnp.clip(posterior, -CLAMP, CLAMP)
        codes = latents.sample(self.config, posterior, noise, tau)
        return VAEOutput(posterior, codes, self.decode(codes, train))

    def encode(self, frames: jax.Array, train: bool) -> jax.Array:
        """frames: float[B, 128, 128, 1] -> posterior: float32[B, H, W, posterior_channels]."""
        return self.encoder(frames, train)

    def decode(self, codes: jax.Array, train: bool) -> jax.Array:
        """codes: float[B, H, W, C] -> pixel logits: float32[B, 128, 128, 1]."""
        return self.decoder(codes, train)


class Encoder(nn.Module):
    config: ModelConfig

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        config = self.config
        x = x.astype(config.dtype)
        *layers, last = ENCODER_LAYERS[config.height]
        for i, (size, padding) in enumerate(layers):
            x = Conv(HIDDEN_CHANNELS, size, stride=2, padding=padding, name=f"conv_{i}")(x)
            if config.variant == "published":
                x = nn.leaky_relu(x, LEAK)
            x = ResidualBlock(config, name=f"block_{i}")(x, train)
        size, padding = last
        name = f"conv_{len(layers)}"
        x = Conv(config.posterior_channels, size, stride=2, padding=padding, name=name)(x)
        return x.astype(jnp.float32)


class Decoder(nn.Module):
    config: ModelConfig

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        config = self.config
        x = x.astype(config.dtype)
        *sizes, last = DECODER_KERNELS[config.height]
        for i, size in enumerate(sizes):
            x = ConvTranspose(HIDDEN_CHANNELS, size, name=f"conv_{i}")(x)
            if config.variant == "published":
                x = nn.leaky_relu(x, LEAK)
            x = ResidualBlock(config, name=f"block_{i}")(x, train)
        x = ConvTranspose(1, last, name=f"conv_{len(sizes)}")(x)
        before = (x.shape[1] - FRAME_SIZE) // 2
        x = x[:, before : before + FRAME_SIZE, before : before + FRAME_SIZE]
        return x.astype(jnp.float32)


class ResidualBlock(nn.Module):
    """Table 3. The published code leaves out the addition and drops whole channels."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        config = self.config
        y = x
        for i in range(2):
            y = BatchNorm(name=f"norm_{i}")(y, train)
            y = nn.leaky_relu(y, LEAK)
            y = Conv(HIDDEN_CHANNELS, 3, padding=1, name=f"conv_{i}")(y)
            y = Dropout(config.dropout, config.variant == "published", name=f"dropout_{i}")(
                y, train
            )
        return nn.leaky_relu(y if config.variant == "published" else x + y, LEAK)


class BatchNorm(nn.Module):
    """Normalises each channel by the batch in training, else by running averages.

    As in PyTorch: the batch is divided by its own standard deviation, the running average takes
    the unbiased estimate of the variance.
    """

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        channels = x.shape[-1:]
        scale = self.param("scale", nn.initializers.ones, channels)
        bias = self.param("bias", nn.initializers.zeros, channels)
        mean_average = self.variable("batch_stats", "mean", jnp.zeros, channels)
        var_average = self.variable("batch_stats", "var", jnp.ones, channels)
        if train:
            y, mean, var = normalise(x, scale, bias, NORM_EPSILON)
            count = x.size // x.shape[-1]
            unbiased = var * (count / (count - 1))
            mean_average.value += (1 - NORM_MOMENTUM) * (mean - mean_average.value)
            var_average.value += (1 - NORM_MOMENTUM) * (unbiased - var_average.value)
            return y
        factor = scale * jax.lax.rsqrt(var_average.value + NORM_EPSILON)
        offset = bias - mean_average.value * factor
        return x * spread(factor, x) + spread(offset, x)


class Dropout(nn.Module):
    """Zeroes a share of the elements, or of each image's channels, and scales up what is left."""

    rate: float
    whole_channels: bool = False

    @nn.compact
    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        if not train or self.rate == 0:
            return x
        shape = (len(x), 1, 1, x.shape[-1]) if self.whole_channels else x.shape
        kept = round((1 - self.rate) * 2**32)  # of the 2**32 values that 32 random bits can have
        keep = _random_bits(self.make_rng("dropout"), shape) < jnp.uint32(kept)
        return jnp.where(keep, x * (2**32 / kept), 0)


def _random_bits(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """uint32[shape]: each element's number, hashed with two words drawn from the key.

    `jax.random.bits` takes a tenth of a training step on the CPU. This hash (a multiplication
    between shifts, three times) is part of the pass over the image that it is for.
    """
    first, second = jax.random.bits(key, (2,), jnp.uint32)
    bits = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape) ^ first
    bits *= jnp.uint32(0x9E3779B1)
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B) + second
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)


class Conv(nn.Module):
    channels: int
    size: int
    stride: int = 1
    padding: int = 0

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        shape = (self.size, self.size, x.shape[-1], self.channels)
        kernel, bias = _parameters(self, shape, fan_in=math.prod(shape[:3]))
        y = convolutions.conv(x, kernel.astype(x.dtype), self.stride, self.padding)
        return y + spread(bias, y)


class ConvTranspose(nn.Module):
    """Doubles the resolution."""

    channels: int
    size: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        shape = (self.size, self.size, x.shape[-1], self.channels)
        # PyTorch, whose initialisation the paper's code uses, counts the outputs here.
        kernel, bias = _parameters(self, shape, fan_in=self.size * self.size * self.channels)
        y = convolutions.conv_transpose(x, kernel.astype(x.dtype))
        return y + spread(bias, y)


def _parameters(
    module: nn.Module, shape: tuple[int, ...], fan_in: int
) -> tuple[jax.Array, jax.Array]:
    """Kernel and bias, both uniform within 1 / sqrt(fan_in), as PyTorch initialises them."""
    bound = 1 / math.sqrt(fan_in)

    def uniform(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.uniform(key, shape, jnp.float32, -bound, bound)

    return module.param("kernel", uniform, shape), module.param("bias", uniform, shape[-1:])
