"""Screens to a trained encoder: the variational autoencoders of the paper, as pure JAX functions."""
