"""Frames to a trained model: the paper's variational autoencoders, as pure JAX functions.

`architecture`, `config` and `codes` hold numbers alone and load no JAX; the rest is JAX, Flax and
optax, the same for CPU, GPU and TPU. Training runs `steps.train_steps`. Planning runs
`encoding.encode` on an accelerator; on a CPU it computes the same features without JAX
(`vaeiw_jax.features.patches`).
"""
