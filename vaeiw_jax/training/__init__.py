"""From stored screens to a trained model: the loop around the pure functions of `vae`."""
