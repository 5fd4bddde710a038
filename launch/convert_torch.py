"""Converts weights between PyTorch files and models of this project.

    python -m launch.convert_torch --from_torch=FILE --to_checkpoint=DIR \\
        --variant=published --latent=15x15x20 --latent_kind=bernoulli
    python -m launch.convert_torch --from_checkpoint=DIR --to_torch=FILE
"""

from pathlib import Path

from absl import flags

from launch import command
from vaeiw_jax import models
from vaeiw_jax.errors import UserError
from vaeiw_jax.training import torch_weights
from vaeiw_jax.vae.config import ModelConfig

FROM_TORCH = flags.DEFINE_string("from_torch", None, "PyTorch file to read, a state_dict")
TO_CHECKPOINT = flags.DEFINE_string("to_checkpoint", None, "folder to write the model to")
FROM_CHECKPOINT = flags.DEFINE_string("from_checkpoint", None, "folder of the model to read")
TO_TORCH = flags.DEFINE_string("to_torch", None, "PyTorch file to write, a state_dict")
command.define_flags(ModelConfig)


def main() -> None:
    match (FROM_TORCH.value, TO_CHECKPOINT.value, FROM_CHECKPOINT.value, TO_TORCH.value):
        case (str(source), str(target), None, None):
            config = command.read_flags(ModelConfig)
            variables = torch_weights.from_torch(config, torch_weights.read(Path(source)))
            models.save_model(Path(target), config, variables)
        case (None, None, str(source), str(target)):
            config, variables = models.load_model(Path(source))
            torch_weights.write(Path(target), torch_weights.to_torch(config, variables))
        case _:
            raise UserError(
                "give --from_torch=FILE and --to_checkpoint=DIR,"
                " or --from_checkpoint=DIR and --to_torch=FILE"
            )
    print(f"{source} -> {target}: {config.variant} {config.latent_kind} {config.latent}")


if __name__ == "__main__":
    command.run(main)
