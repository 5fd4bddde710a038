"""Chooses beta by the elbow of reconstruction against KL: trains a model per beta.

    python -m launch.select_beta --screens=runs/Pong-screens --workdir=runs/Pong-beta --betas=1e-2,1e-3,1e-4

All settings of a training but --beta work here too. Run the same command again to go on after an interruption.
"""

from pathlib import Path

from absl import flags

from launch import command
from vaeiw_jax.errors import UserError
from vaeiw_jax.training.beta_selection import select_beta
from vaeiw_jax.training.checkpoints import quiet_orbax
from vaeiw_jax.vae.config import TrainConfig

_WORKDIR = flags.DEFINE_string("workdir", None, "folder for the models and the chart")
_BETAS = flags.DEFINE_list("betas", ["1e-2", "1e-3", "1e-4", "1e-5"], "weights of the KL to try")
command.define_flags(TrainConfig, exclude=("beta",))


def main() -> int | None:
    quiet_orbax()
    config = command.read_flags(TrainConfig)
    if _WORKDIR.value is None:
        raise UserError(f"--workdir is missing: {flags.FLAGS['workdir'].help}")
    try:
        betas = [float(beta) for beta in _BETAS.value]
    except ValueError as error:
        raise UserError(f"--betas must be numbers like 1e-3,1e-4,1e-5 ({error})") from error
    with command.progress_bar("training", "steps", smoothing=0.1) as bar:
        selection = select_beta(config, betas, Path(_WORKDIR.value), command.Interrupt(), bar.tell)
    if selection is None:
        return command.stopped()
    print(f"{'beta':>8}  {'KL':>10}  {'reconstruction above the floor':>30}")
    for point in selection.tradeoffs:
        mark = "  <- picked" if point == selection.picked else ""
        print(f"{point.beta:8g}  {point.kl:10,.1f}  {point.excess_bce:30,.1f}{mark}")
    print(f"{selection.why}\nchart: {Path(_WORKDIR.value) / 'selection.png'}")
    return None


if __name__ == "__main__":
    command.run(main)
