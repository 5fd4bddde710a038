"""The networks in numbers: what `networks.py` builds with JAX and `features/patches.py` computes without it."""

from vaeiw_jax.vae.config import ModelConfig

HIDDEN_CHANNELS = 64
LEAK = 0.01
NORM_MOMENTUM, NORM_EPSILON = 0.9, 1e-5

# Kernel size and padding of the strided convolutions, by the side of the code; all have stride 2.
ENCODER_LAYERS = {
    15: ((4, 0), (4, 0), (3, 1)),
    4: ((3, 0), (3, 0), (3, 0), (3, 0), (3, 1)),
}
DECODER_KERNELS = {15: (3, 4, 4), 4: (3, 3, 3, 3, 3)}


def num_layers(config: ModelConfig) -> int:
    """How many strided convolutions each network has; after all but the last comes a block."""
    return len(ENCODER_LAYERS[config.height])


def variable_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """The name (such as "params/encoder/conv_0/kernel") and shape of every variable; all are float32."""
    shapes: dict[str, tuple[int, ...]] = {}

    def conv(name: str, size: int, inputs: int, outputs: int) -> None:
        shapes[f"params/{name}/kernel"] = (size, size, inputs, outputs)
        shapes[f"params/{name}/bias"] = (outputs,)

    def network(name: str, sizes: list[int], inputs: int, outputs: int) -> None:
        *hidden, last = sizes
        for i, size in enumerate(hidden):
            conv(f"{name}/conv_{i}", size, HIDDEN_CHANNELS if i else inputs, HIDDEN_CHANNELS)
            for part in (0, 1):
                block = f"{name}/block_{i}"
                conv(f"{block}/conv_{part}", 3, HIDDEN_CHANNELS, HIDDEN_CHANNELS)
                for group in ("params", "batch_stats"):
                    for which in ("scale", "bias") if group == "params" else ("mean", "var"):
                        shapes[f"{group}/{block}/norm_{part}/{which}"] = (HIDDEN_CHANNELS,)
        conv(f"{name}/conv_{len(hidden)}", last, HIDDEN_CHANNELS, outputs)

    sizes = [size for size, _ in ENCODER_LAYERS[config.height]]
    network("encoder", sizes, 1, config.posterior_channels)
    network("decoder", list(DECODER_KERNELS[config.height]), config.channels, 1)
    return shapes
