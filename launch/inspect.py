"""Shows what a trained VAE has learned, how good its features are, and how a decision was made with them.

    python -m launch.inspect --checkpoint=runs/mspacman-vae --screens=runs/MsPacman-screens --workdir=runs/inside
    python -m launch.inspect --checkpoint=runs/mspacman-vae --run=runs/mspacman-play --decision=30 --workdir=...
    python -m launch.inspect --checkpoint=universal --game=Kangaroo --workdir=...

Leaves a page, WORKDIR/index.html, that opens from disk, and its pictures one by one.
"""

from pathlib import Path

from absl import flags

from launch import command
from vaeiw_jax.inspection.config import InspectConfig

command.define_flags(InspectConfig)
_WORKDIR = flags.DEFINE_string("workdir", None, "where the page and the pictures go")


def main() -> None:
    workdir = Path(command.required(_WORKDIR))
    config = command.read_flags(InspectConfig)
    # Only now, so that a mistake is answered at once: this loads JAX and matplotlib.
    from vaeiw_jax.reports.inspection_report import PAGE, inspect

    findings = inspect(config, workdir)
    quality = findings.quality.summary()
    print(
        f"{quality['features']:,} features over {quality['frames']:,} frames of {findings.game}: "
        f"{quality['true_per_frame']:,.0f} true in a frame, {quality['varying']:,} vary; "
        f"{quality['distinct_codes']:,} of {quality['distinct_screens']:,} distinct screens told apart"
    )
    atoms = findings.atoms.counts()
    print(
        f"{atoms['atoms']:,} atoms: {atoms['true_per_screen']['mean']:,.0f} true on a screen, "
        f"{atoms['varying']:,} vary; an object switches {atoms['switched_on']:,} on "
        f"and {atoms['switched_off']:,} off"
    )
    if findings.recorded:
        run = findings.recorded.summary()
        print(
            f"{run['solved']:,} of {run['decisions']:,} decisions of {run['run']} solved before their budget was spent"
        )
    if findings.replanned:
        same = "the recorded tree" if findings.replanned.same_tree else "a fresh tree"
        print(
            f"decision {findings.replanned.number:,} of {findings.replanned.run.record}: {same}, "
            f"{findings.replanned.tree.size:,} nodes"
        )
    print(f"page: {workdir / PAGE}")


if __name__ == "__main__":
    command.run(main)
