"""Which feature set, and what it is told about where it is used."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.vae import codes

ENCODER_CHOICES = ("auto", "xla", "patches")
BACKGROUNDS = ("background_mask", "background_subtract")
"""The settings that make a difference between what moves and what does not."""
OF_LEARNED_BITS = ("literals", "usual", "changes", "noise")
"""The settings that say what of a learned code is an atom."""
LITERALS = TRUE, EITHER, UNUSUAL = "true", "either", "unusual"
USUAL = MODEL, RANDOM_PLAY = "model", "random_play"


@dataclass(frozen=True)
class FeaturesConfig:
    """What the planner sees."""

    features: str = field(
        default="vae",
        metadata={
            "help": "vae for the VAE shipped for the game, or for every game if it has none of its own; vae:NAME for "
            "the shipped one of that name, vae:DIRECTORY for another; bprost, bpros, basic or ram; "
            "policy:DIRECTORY for the hidden layer of the policy that a run learned; package.module:CLASS for your own"
        },
    )
    background_mask: bool = field(
        default=False,
        metadata={"help": "basic, bpros, bprost: pixels that never change count as colour 0"},
    )
    background_subtract: bool = field(
        default=False,
        metadata={
            "help": "basic, bpros, bprost: the colour of pixels that stand still for a while is subtracted, except "
            "where it is more than what is there"
        },
    )
    threshold: float = field(
        default=codes.THRESHOLD,
        metadata={"help": "vae, Bernoulli: a feature is true if its probability exceeds this"},
    )
    sample_features: bool = field(
        default=False,
        metadata={"help": "vae, Bernoulli: draw features instead, seeded by the screen"},
    )
    quantisation_bits: int = field(
        default=codes.QUANTISATION_BITS,
        metadata={"help": "vae, Gaussian: bits that number the bin of a latent's mean"},
    )
    literals: str = field(
        default="true",
        metadata={
            "help": "vae: what of a bit is an atom: true: that it is true, as in the paper; either: its value; "
            "unusual: that it is not as it mostly is in the game"
        },
    )
    usual: str = field(
        default=MODEL,
        metadata={
            "help": "vae, literals=unusual: how bits mostly are. model: on the screens the model was trained on or, if "
            "it does not know the game, in random play; random_play: in seeded random play of the game"
        },
    )
    changes: bool = field(
        default=False,
        metadata={
            "help": "vae: atoms also for bits that were switched on, or off, since the parent's screen"
        },
    )
    noise: bool = field(
        default=False,
        metadata={
            "help": "vae, Bernoulli: add the noise of training, drawn for each node, as the paper's published code does"
        },
    )
    encoder: str = field(
        default="auto",
        metadata={
            "help": "vae: xla for a GPU or TPU, patches for a CPU, auto for the one that suits the machine"
        },
    )

    def __post_init__(self) -> None:
        if self.background_mask and self.background_subtract:
            raise UserError(
                "background_mask and background_subtract are two ways to treat a background; choose one"
            )
        if self.encoder not in ENCODER_CHOICES:
            raise unknown("encoder", self.encoder, ENCODER_CHOICES)
        if self.literals not in LITERALS:
            raise unknown("literals", self.literals, LITERALS)
        if self.usual.partition(":")[0] not in USUAL:
            raise unknown("source of usual values", self.usual, USUAL)
        if self.noise and self.sample_features:
            raise UserError(
                "noise is drawn for every node, sample_features for every screen; choose one of the two"
            )
        if not 0 < self.threshold < 1:
            raise UserError(f"threshold must be above 0 and below 1, not {self.threshold}")
        if not 1 <= self.quantisation_bits <= 8:
            raise UserError(f"quantisation_bits must be from 1 to 8, not {self.quantisation_bits}")

    def num_atoms(self, num_bits: int) -> int:
        """The number of atoms of codes of `num_bits` bits."""
        return num_bits * (1 + (self.literals == EITHER) + 2 * self.changes)

    def require_wider_notion(self) -> None:
        """Refuses learned features that `widen` would change nothing for: they have one notion of novelty."""
        if self.literals == TRUE and not self.changes:
            raise UserError(
                "widen needs a wider notion than true bits; use --literals=either, --literals=unusual or --changes"
            )

    @property
    def kind(self) -> str:
        """The name of the feature set, without the directory it may come from."""
        return self.features.partition(":")[0]


class Seen(Protocol):
    """What features that are made of screens look at."""

    @property
    def screen(self) -> np.ndarray: ...


class Setting(NamedTuple):
    """Where features are used."""

    game: str
    screen_shape: tuple[int, int]
    background: np.ndarray | None = None
    """int16[height, width]: the colour a pixel never left, -1 where it did; None if it makes no difference."""
    random_screens: Callable[[], np.ndarray] | None = None
    """() -> uint8[n, height, width]: what seeded random play shows; None where there is no emulator to play with."""
