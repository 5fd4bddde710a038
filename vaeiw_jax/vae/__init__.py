"""Screens to a trained encoder: the paper's variational autoencoders, as pure JAX functions."""
