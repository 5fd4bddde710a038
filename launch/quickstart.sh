#!/usr/bin/env bash
# Makes the project's environment where there is none, plays MsPacman with VAE-IW, and shows what came of it.
#   bash launch/quickstart.sh [FLAGS OF launch.play]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source launch/environment.sh ""

WORKDIR=${VAEIW_QUICKSTART:-runs/quickstart}
python -m vaeiw_jax.features # compiles what is not compiled yet, so that the game does not wait for it
python -m launch.play --game=MsPacman --features=vae --max_actions=100 --video --profile --workdir="$WORKDIR" "$@"
[ -e "$WORKDIR/inside/index.html" ] ||
  python -m launch.inspect --checkpoint=checkpoints/MsPacman --run="$WORKDIR" --fresh_tree --num_screens=150 \
    --workdir="$WORKDIR/inside"
cat <<NEXT

  the game    $WORKDIR/videos/MsPacman/seed-0.mp4
  its record  $WORKDIR/episodes/MsPacman/seed-0.json
  the page    $WORKDIR/inside/index.html: what the VAE sees, what its features stand for, how a decision came about

Try next:
  source ${VAEIW_VENV:-.venv}/bin/activate
  python -m launch.play --game=MsPacman --features=vae --runs=3 --workdir=runs/mspacman   # whole games
  python -m launch.play --game=Pong --features=bprost --planner=iw --max_actions=300      # another game, features, planner
  python -m launch.pipeline --game=Freeway --preset=laptop                                # learn a game from nothing
NEXT
