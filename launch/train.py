"""Trains an autoencoder on collected screens.

    python -m launch.train --screens=runs/Pong-screens --workdir=runs/Pong-vae

Run the same command again to go on after an interruption.
"""

from pathlib import Path

from absl import flags

from launch import command
from vaeiw_jax import compilation
from vaeiw_jax.errors import UserError
from vaeiw_jax.training.checkpoints import quiet_orbax
from vaeiw_jax.training.loop import CONFIG, train
from vaeiw_jax.vae import sharding
from vaeiw_jax.vae.config import TrainConfig

_WORKDIR = flags.DEFINE_string("workdir", None, "folder for checkpoints, metrics and the model")
_RESUME = flags.DEFINE_boolean("resume", True, "go on from the latest checkpoint in --workdir")
_COORDINATOR = flags.DEFINE_string(
    "coordinator", None, "several hosts: HOST:PORT of process 0, or auto where the platform tells"
)
_NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "several hosts: how many processes")
_PROCESS_ID = flags.DEFINE_integer("process_id", None, "several hosts: which one this is, from 0")
command.define_flags(TrainConfig)


def main() -> int | None:
    quiet_orbax()
    config = command.read_flags(TrainConfig)
    workdir = Path(command.required(_WORKDIR))
    compilation.fit_threads()
    sharding.connect(_COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value)
    if not _RESUME.value and sharding.is_primary() and (workdir / CONFIG).exists():
        raise UserError(f"{workdir} holds a run already; choose another --workdir, or resume it")
    with command.progress_bar("training", "steps", smoothing=0.1) as bar:
        record = train(config, workdir, command.Interrupt(), bar.tell)
    if not sharding.is_primary():
        return None
    if record is None:
        return command.stopped()
    best = record["validation"]
    print(
        f"trained for {record['steps']} steps; best validation loss {best['loss']:,.1f} at step"
        f" {best['step']}: reconstruction {best['bce']:,.1f} ({best['excess_bce']:,.1f} above the"
        f" floor), KL {best['kl']:,.1f}\nmodel: {workdir / 'model'}"
    )
    return None


if __name__ == "__main__":
    command.run(main)
