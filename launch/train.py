"""Trains an autoencoder on collected frames.

    python -m launch.train --screens=frames/pong --workdir=runs/pong

Run the same command again to go on after an interruption.
"""

import contextlib
import sys
import time
from pathlib import Path

import jax
from absl import flags

from launch import command
from vaeiw_jax import compilation, provenance, workdirs
from vaeiw_jax.errors import UserError
from vaeiw_jax.training.checkpoints import quiet_orbax
from vaeiw_jax.training.loop import TrainConfig, train
from vaeiw_jax.vae import sharding

WORKDIR = flags.DEFINE_string("workdir", None, "folder for checkpoints, metrics and the model")
RESUME = flags.DEFINE_boolean("resume", True, "go on from the latest checkpoint in --workdir")
COORDINATOR = flags.DEFINE_string(
    "coordinator", None, "several hosts: HOST:PORT of process 0, or auto where the platform tells"
)
NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "several hosts: how many processes")
PROCESS_ID = flags.DEFINE_integer("process_id", None, "several hosts: which one this is, from 0")
command.define_flags(TrainConfig)


def main() -> int | None:
    quiet_orbax()
    config = command.read_flags(TrainConfig)
    if WORKDIR.value is None:
        raise UserError(f"--workdir is missing: {flags.FLAGS['workdir'].help}")
    compilation.fit_threads()
    sharding.connect(COORDINATOR.value, NUM_PROCESSES.value, PROCESS_ID.value)
    workdir = Path(WORKDIR.value)
    started = time.time()
    with workdirs.alone_in(workdir) if sharding.is_primary() else contextlib.nullcontext():
        result = train(config, workdir, resume=RESUME.value)
    if not sharding.is_primary():
        return None
    devices = [device.device_kind for device in jax.devices()]
    host = workdir / "trained.host.json"
    provenance.note_session(host, sys.orig_argv, started, until_step=result.step, devices=devices)
    if not result.finished:
        print(f"stopped at step {result.step}; run the same command again to go on")
        return 130
    best = result.validation or {}
    print(
        f"trained for {result.step} steps; best validation loss {best['loss']:,.1f} after epoch"
        f" {best['epoch']}: reconstruction {best['bce']:,.1f} ({best['excess_bce']:,.1f} above the"
        f" floor), KL {best['kl']:,.1f}\nmodel: {workdir / 'model'}"
    )
    return None


if __name__ == "__main__":
    command.run(main)
