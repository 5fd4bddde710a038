"""One model twice: here and in the PyTorch reference, with the same weights, noise and dropout."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
import torch

from tests.vae.torch_reference import ReferenceVAE
from vaeiw_jax.training import torch_weights
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.networks import Dropout

MODELS = {
    "15x15": ModelConfig(),
    "4x4": ModelConfig(latent="4x4x200"),
    "gaussian": ModelConfig(latent="15x15x5", latent_kind="gaussian"),
    "published": ModelConfig(variant="published"),
    "published_gaussian": ModelConfig(
        latent="15x15x5", latent_kind="gaussian", variant="published"
    ),
}
BATCH = 2


def reference(config: ModelConfig) -> ReferenceVAE:
    """The PyTorch model, every weight and running average drawn at random."""
    torch.manual_seed(0)
    model = ReferenceVAE(
        config.height,
        config.channels,
        gaussian=config.latent_kind == "gaussian",
        published=config.variant == "published",
        dropout=config.dropout,
    )
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            for tensor in (module.weight, module.bias, module.running_mean, module.running_var):
                torch.nn.init.uniform_(tensor, 0.5, 1.5)
    return model


def variables_of(model: ReferenceVAE, config: ModelConfig) -> dict[str, Any]:
    """A copy of the PyTorch model's weights, as variables here."""
    arrays = {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}
    return torch_weights.from_torch(config, arrays)


def inputs(config: ModelConfig, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Frames and noise, as they are here: [B, H, W, C]."""
    rng = np.random.default_rng(seed)
    frames = rng.random((BATCH, 128, 128, 1), np.float32)
    noise = rng.standard_normal((BATCH, config.height, config.width, config.channels), np.float32)
    return frames, noise


def to_torch(images: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.moveaxis(np.array(images), -1, 1)).to(dtype).contiguous()


def from_torch(images: torch.Tensor) -> np.ndarray:
    return np.moveaxis(images.detach().numpy(), 1, -1)


class Masks:
    """Dropout whose masks are a function of the layer's name, on both sides."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    def mask(self, layer: str, shape: tuple[int, ...]) -> np.ndarray:
        if self.config.variant == "published":
            shape = (shape[0], 1, 1, shape[3])
        keep = 1 - self.config.dropout
        rng = np.random.default_rng([ord(letter) for letter in layer])
        return (rng.random(shape) < keep).astype(np.float32) / np.float32(keep)

    def intercept(self, call: Callable[..., Any], args: Any, kwargs: Any, context: Any) -> Any:
        """For `nn.intercept_methods`."""
        if not isinstance(context.module, Dropout) or context.method_name != "__call__":
            return call(*args, **kwargs)
        x, train = args
        layer = "/".join(context.module.path)
        return x * jnp.asarray(self.mask(layer, x.shape)) if train else x

    def install(self, model: ReferenceVAE) -> None:
        for network in ("encoder", "decoder"):
            blocks = [layer for layer in getattr(model, network) if hasattr(layer, "block")]
            for i, block in enumerate(blocks):
                for j, position in enumerate((3, 7)):
                    layer = f"{network}/block_{i}/dropout_{j}"
                    block.block[position] = _MaskedDropout(self, layer)

    def applied(self) -> Any:
        return nn.intercept_methods(self.intercept)


class _MaskedDropout(torch.nn.Module):
    def __init__(self, masks: Masks, layer: str) -> None:
        super().__init__()
        self.masks, self.layer = masks, layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        batch, channels, height, width = x.shape
        mask = self.masks.mask(self.layer, (batch, height, width, channels))
        return x * to_torch(mask, x.dtype)
