"""Looking inside: what a trained VAE makes of screens, how good its features are, how a decision was made."""
