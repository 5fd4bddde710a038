"""The VAEs that are measured: shipped ones, or briefly trained where there is none."""

from dataclasses import dataclass
from pathlib import Path

from vaeiw_jax import compilation
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.models import SHIPPED
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing.collecting import CollectConfig, collect
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.training import checkpoints
from vaeiw_jax.training.loop import train
from vaeiw_jax.vae.config import ModelConfig
from vaeiw_jax.vae.steps import TrainConfig


@dataclass(frozen=True)
class BriefTraining:
    """How a VAE is trained that only has to be as slow, and its features as lively, as a good one's."""

    screens: int = 200
    batch_size: int = 4
    epochs: int = 1
    learning_rate: float = 1e-3
    latent: str = "15x15x20"

    def __str__(self) -> str:
        return f"trained briefly: {self.screens} screens, {self.epochs} epochs, batches of {self.batch_size}"


BRIEF = BriefTraining()


def find_or_train(game: str, directory: Path, brief: BriefTraining = BRIEF) -> tuple[str, str]:
    """A VAE of the game.

    Args:
      game: its usual name.
      directory: where VAEs are kept from one benchmark to the next.
      brief: how to train one, if none is shipped and none was trained before.

    Returns:
      What to give as `features`, and where it comes from, in words.
    """
    if (SHIPPED / game).is_dir():
        return "vae", "shipped"
    workdir = directory / game
    model = workdir / "vae" / "model"
    if not (workdir / "done").exists():
        _collect(game, workdir / "screens", brief.screens)
        _train(workdir / "screens", workdir / "vae", brief)
        (workdir / "done").touch()
    return f"vae:{model}", str(brief)


def _collect(game: str, store: Path, number: int) -> None:
    planner = PlannerConfig(budget_seconds=None, budget_nodes=50)
    episode = EpisodeConfig(AtariConfig(game), planner, FeaturesConfig("basic"))
    collect(CollectConfig(episode, num_screens=number), store)


def _train(store: Path, workdir: Path, brief: BriefTraining) -> None:
    checkpoints.quiet_orbax()
    compilation.keep_compiled_code()  # every game's training is the same code
    config = TrainConfig(
        screens=str(store),
        model=ModelConfig(latent=brief.latent),
        epochs=brief.epochs,
        batch_size=brief.batch_size,
        learning_rate=brief.learning_rate,
        picture_every=0,
    )
    train(config, workdir)
