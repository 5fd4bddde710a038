"""Which of the paper's autoencoders, and how to train it. Free of JAX: whoever plans a training need not load it."""

import dataclasses
import math
import re

from vaeiw_jax.errors import UserError, unknown

LATENT_KINDS = ("bernoulli", "gaussian")
VARIANTS = ("paper", "published")
DTYPES = ("float32", "bfloat16")
LATENT_SIZES = ((15, 15), (4, 4))

MISFITS = ELBO, LOSS, RECONSTRUCTION, ENTROPY = "elbo", "loss", "reconstruction", "entropy"
"""How badly a model explains a screen. `elbo`: cross-entropy + KL, the negative evidence lower bound. `loss`:
cross-entropy + beta * KL, as trained. `reconstruction`: cross-entropy alone. `entropy`: of the code."""
RANDOM = "random"
CRITERIA = (*MISFITS, RANDOM)
"""Of the screens to learn from next: those of the worst misfit, or any."""


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


TIME_ONLY = ("steps_per_call", "checkpoint_every", "keep", "picture_every")
"""Settings of training that change nothing but the time it takes and what is left to look at."""


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """How to train. The defaults are the paper's Table 2; the published code gives the epochs."""

    screens: str = dataclasses.field(metadata={"help": "screen store or folder of PNG files"})
    leave_out: str = dataclasses.field(
        default="", metadata={"help": "games, with commas, whose screens are not trained on"}
    )
    model: ModelConfig = dataclasses.field(default_factory=ModelConfig)
    epochs: int = dataclasses.field(
        default=100,
        metadata={"help": "passes over the frames; 0 validates the model of --start_from on them"},
    )
    batch_size: int = dataclasses.field(default=64, metadata={"help": "frames per step"})
    learning_rate: float = dataclasses.field(default=1e-4, metadata={"help": "of Adam"})
    learning_rate_end: float = dataclasses.field(
        default=0.0,
        metadata={"help": "let the learning rate fall to this along a half cosine; 0: do not"},
    )
    start_from: str = dataclasses.field(
        default="",
        metadata={
            "help": "model of the same shape to begin with: a folder, or a shipped one by name"
        },
    )
    validation_share: float = dataclasses.field(
        default=0.05, metadata={"help": "share of the frames kept for validation"}
    )
    validate_every: int = dataclasses.field(
        default=0,
        metadata={"help": "steps of an epoch between validations; 0: one at its end, as always"},
    )
    seed: int = dataclasses.field(default=0, metadata={"help": "random seed"})
    clip_norm: float = dataclasses.field(
        default=0.0, metadata={"help": "clip gradients to this global norm; 0: do not"}
    )
    tau_start: float = dataclasses.field(
        default=0.0,
        metadata={"help": "let the temperature fall from this to tau over training; 0: do not"},
    )
    zero_suppression: float = dataclasses.field(
        default=0.0,
        metadata={
            "help": "weight that pushes latents to zero, times their mean probability; 0: do not"
        },
    )
    zero_suppression_from: float = dataclasses.field(
        default=1 / 3,
        metadata={
            "help": "share of training at which that weight begins to rise; it has risen when as much again is over. "
            "0: it is there from the first step on"
        },
    )
    steps_per_call: int = dataclasses.field(
        default=0,
        metadata={"help": "steps per compiled call; 0: 32 on accelerators, 1 on the CPU"},
    )
    checkpoint_every: int = dataclasses.field(
        default=200, metadata={"help": "steps between checkpoints; each epoch ends with one too"}
    )
    keep: int = dataclasses.field(
        default=3, metadata={"help": "how many checkpoints to keep besides the best"}
    )
    picture_every: int = dataclasses.field(
        default=5, metadata={"help": "epochs between pictures of reconstructions; 0: none"}
    )

    def __post_init__(self) -> None:
        if not self.epochs and not self.start_from:
            raise UserError("epochs=0 trains nothing; give --start_from to validate a model")
        for name in ("batch_size", "checkpoint_every", "keep"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in ("learning_rate_end", "clip_norm", "tau_start", "zero_suppression"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"{name} must be zero or more, not {getattr(self, name)}")
        for name in ("epochs", "validate_every", "seed", "steps_per_call", "picture_every"):
            if getattr(self, name) < 0:
                raise UserError(f"{name} must be zero or more, not {getattr(self, name)}")
        if not 0 < self.learning_rate < math.inf:
            raise UserError(f"learning_rate must be positive, not {self.learning_rate}")
        if not 0 <= self.zero_suppression_from < 1:
            raise UserError(
                "zero_suppression_from must be at least 0 and less than 1, not"
                f" {self.zero_suppression_from}"
            )
        if not 0 < self.validation_share < 1:
            raise UserError(
                f"validation_share must lie between 0 and 1, not {self.validation_share}"
            )
        if self.model.latent_kind != "bernoulli" and (self.tau_start or self.zero_suppression):
            raise UserError("tau_start and zero_suppression are for bernoulli latents; leave them")

    @property
    def games_left_out(self) -> list[str]:
        return [game.strip() for game in self.leave_out.split(",") if game.strip()]

    def steps_per_epoch(self, num_screens: int) -> int:
        """Whole batches in as many screens to train on."""
        if num_screens < self.batch_size:
            raise UserError(
                f"there are {num_screens} frames to train on, fewer than a batch of"
                f" {self.batch_size}; collect more or take a smaller --batch_size"
            )
        return num_screens // self.batch_size
