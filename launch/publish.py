"""Makes a trained model ready to ship: weights, config, learning curve, reconstructions, and a card.

    python -m launch.publish --run=runs/vaes/MsPacman --screens=runs/screens/MsPacman
    python -m launch.publish --run=runs/many-games-vae --screens=runs/screens

`--features=vae` then finds it for its game; one trained on many games, for all that have none of their own.
"""

from pathlib import Path

from absl import flags

from launch import command
from vaeiw_jax import durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.models import SHIPPED, UNIVERSAL
from vaeiw_jax.reports import model_card

_RUN = flags.DEFINE_string(
    "run", None, "work directory of launch.train, finished or stopped after an epoch"
)
_SCREENS = flags.DEFINE_string(
    "screens",
    None,
    "what launch.collect made and it was trained on: a screen store, or a folder of them",
)
_TO = flags.DEFINE_string(
    "to", None, "where to (default: checkpoints/GAME, of many games checkpoints/universal)"
)
_NOTE = flags.DEFINE_string("note", "", "a sentence for the card, such as what else ran beside it")


def main() -> None:
    if _RUN.value is None or _SCREENS.value is None:
        raise UserError(
            "--run and --screens are both needed: what was trained, and on which screens"
        )
    run = Path(_RUN.value)
    config = run / "config.json"
    described = durable.read_json(config) if config.exists() else {}
    several = len(described.get("games", ())) > 1
    name = UNIVERSAL if several else described.get("game") or run.name
    directory = Path(_TO.value) if _TO.value else SHIPPED / name
    size = model_card.publish(run, Path(_SCREENS.value), directory, _NOTE.value)
    print(f"{size / 1e6:.2f} MB in {directory}; its card: {directory / 'README.md'}")


if __name__ == "__main__":
    command.run(main)
