"""What is compiled for a GPU or a TPU, seen without one: training and encoding are lowered for it."""

import functools

import jax
import numpy as np
import pytest

from vaeiw_jax.vae import codes, encoding, steps
from vaeiw_jax.vae.config import ModelConfig, TrainConfig

TRANSPOSED = "lhs_dilate = [2, 2]"
"""In the text of a convolution: XLA's own form of a transposed one, which the rewriting for the CPU avoids."""

SCREENS = jax.ShapeDtypeStruct((8, 210, 160), np.uint8)


def lowered(function, platform, *arguments):
    exported = jax.export.export(jax.jit(function), platforms=[platform])(*arguments)
    assert exported.platforms == (platform,)
    return exported.mlir_module()


def training(dtype, count):
    config = TrainConfig(screens="", model=ModelConfig(dtype=dtype), batch_size=4)
    state = jax.eval_shape(functools.partial(steps.create_train_state, config))
    order = jax.ShapeDtypeStruct((2, 4), np.int32)
    return functools.partial(steps.train_steps, config, count), state, SCREENS, order


@pytest.mark.parametrize(
    ("platform", "dtype"), [("cuda", "float32"), ("cuda", "bfloat16"), ("tpu", "bfloat16")]
)
def test_steps_of_training_are_lowered_with_the_platform_s_own_convolutions(platform, dtype):
    function, *arguments = training(dtype, count=2)
    text = lowered(function, platform, *arguments)
    assert TRANSPOSED in text
    assert "stablehlo.while" in text  # several steps in one call
    assert ("bf16" in text) == (dtype == "bfloat16")


def test_steps_of_training_are_lowered_for_the_cpu_without_them():
    function, *arguments = training("float32", count=1)
    assert TRANSPOSED not in lowered(function, "cpu", *arguments)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_encoder_is_lowered_in_full_precision(platform, dtype):
    config = ModelConfig(dtype=dtype)
    variables = jax.eval_shape(
        lambda: steps.create_train_state(TrainConfig(screens="", model=config)).variables
    )
    encode = functools.partial(encoding.encode, config, edges=codes.edges(config))
    text = lowered(encode, platform, variables, SCREENS)
    convolutions = [line for line in text.splitlines() if "stablehlo.convolution" in line]
    assert len(convolutions) == 7
    assert all(line.count("precision HIGHEST") == 2 for line in convolutions)
    assert "bf16" not in text
    assert "(8x563xui8>" in text.replace("tensor<", "(")  # the packed bits of 15 x 15 x 20 features


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_the_compiler_knows_the_encoder_s_options(platform):
    options = encoding.compiler_options(platform)
    assert jax.jit(lambda x: x + 1, compiler_options=options)(1) == 2
    assert ("xla_gpu_deterministic_ops" in options) == (platform == "gpu")
