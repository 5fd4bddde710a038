"""Which of the paper's autoencoders: the shape of its code, its prior, its weight on the KL."""

import dataclasses
import math
import re

from vaeiw_jax.errors import UserError, unknown

LATENT_KINDS = ("bernoulli", "gaussian")
VARIANTS = ("paper", "published")
DTYPES = ("float32", "bfloat16")
LATENT_SIZES = ((15, 15), (4, 4))


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """One autoencoder. The defaults are the paper's Table 2."""

    latent: str = dataclasses.field(
        default="15x15x20",
        metadata={"help": "shape of the code, HxWxC; H and W are 15x15 or 4x4, any C"},
    )
    latent_kind: str = dataclasses.field(
        default="bernoulli", metadata={"help": "what a latent variable is: bernoulli or gaussian"}
    )
    variant: str = dataclasses.field(
        default="paper",
        metadata={"help": "paper, or published: the networks of the paper's published code"},
    )
    tau: float = dataclasses.field(
        default=0.5, metadata={"help": "temperature of the relaxed Bernoulli samples"}
    )
    prior: float = dataclasses.field(
        default=0.5, metadata={"help": "prior probability that a Bernoulli latent is on"}
    )
    beta: float = dataclasses.field(
        default=1e-4,
        metadata={
            "help": "weight of the KL in the loss; below zero it drives Bernoulli latents away from the prior, to "
            "certainty, as in the state autoencoder (SAE) that the paper cites"
        },
    )
    dropout: float = dataclasses.field(
        default=0.2, metadata={"help": "share of activations dropped while training"}
    )
    dtype: str = dataclasses.field(
        default="float32",
        metadata={"help": "arithmetic of the networks: float32, or bfloat16 for accelerators"},
    )

    def __post_init__(self) -> None:
        for name, given, valid in (
            ("latent_kind", self.latent_kind, LATENT_KINDS),
            ("variant", self.variant, VARIANTS),
            ("dtype", self.dtype, DTYPES),
        ):
            if given not in valid:
                raise unknown(name, given, valid)
        if not re.fullmatch(r"[0-9]+x[0-9]+x[1-9][0-9]*", self.latent):
            raise UserError(f"latent must look like 15x15x20, not {self.latent!r}")
        if (self.height, self.width) not in LATENT_SIZES:
            raise UserError(f"latent is 15x15xC or 4x4xC; there is no network for {self.latent!r}")
        if self.variant == "published" and self.height != 15:
            raise UserError(
                f"the published networks have 15x15xC latents, not {self.latent!r};"
                " use variant=paper"
            )
        if not 0 < self.tau < math.inf:
            raise UserError(f"tau must be positive, not {self.tau}")
        if not 0 < self.prior < 1:
            raise UserError(f"prior must lie between 0 and 1, not {self.prior}")
        if not math.isfinite(self.beta):
            raise UserError(f"beta must be a number, not {self.beta}")
        if self.beta < 0 and self.latent_kind != "bernoulli":
            raise UserError(
                f"beta must be zero or more for gaussian latents, whose KL has no bound, not {self.beta}"
            )
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout must be at least 0 and less than 1, not {self.dropout}")

    @property
    def height(self) -> int:
        return self._latent_shape[0]

    @property
    def width(self) -> int:
        return self._latent_shape[1]

    @property
    def channels(self) -> int:
        return self._latent_shape[2]

    @property
    def posterior_channels(self) -> int:
        """Outputs of the encoder per position: per latent a logit, or a mean and a log-variance."""
        return self.channels if self.latent_kind == "bernoulli" else 2 * self.channels

    @property
    def num_latents(self) -> int:
        return self.height * self.width * self.channels

    @property
    def _latent_shape(self) -> tuple[int, int, int]:
        height, width, channels = map(int, self.latent.split("x"))
        return height, width, channels
