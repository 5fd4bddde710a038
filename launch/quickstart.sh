#!/usr/bin/env bash
# Makes the project's environment where there is none, plays a game with VAE-IW, and shows what came of it.
#   bash launch/quickstart.sh [--game=GAME] [OTHER FLAGS OF launch.play]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source launch/environment.sh ""

GAME=MsPacman
for flag in "$@"; do
  case $flag in
  --game=*) GAME=${flag#--game=} ;;
  --game | --workdir | --workdir=*)
    echo "error: write --game=GAME, and VAEIW_QUICKSTART=DIR before the command for another directory" >&2
    exit 1
    ;;
  esac
done
WORKDIR=${VAEIW_QUICKSTART:-runs/quickstart-$GAME}
python -m vaeiw_jax.features # compiles what is not compiled yet, so that the game does not wait for it
python -m launch.play --game="$GAME" --protocol=recommended --max_actions=100 --video --profile --workdir="$WORKDIR" "$@"
case "$*" in
*--features=*) PAGE="none: it tells of learned features" ;;
*)
  [ -e "$WORKDIR/inside/index.html" ] ||
    python -m launch.inspect --run="$WORKDIR" --fresh_tree --num_screens=150 --workdir="$WORKDIR/inside"
  PAGE="$WORKDIR/inside/index.html: what the VAE sees, what its features stand for, how a decision came about"
  ;;
esac
cat <<NEXT

  the game    $(ls "$WORKDIR"/videos/*/*.mp4)
  its record  $(ls "$WORKDIR"/episodes/*/seed-*[0-9].json)
  the page    $PAGE

Try next:
  source ${VAEIW_VENV:-.venv}/bin/activate
  python -m launch.play --game=$GAME --protocol=recommended --runs=3                   # whole games
  python -m launch.play --game=Pong --features=bprost --planner=iw --max_actions=300   # another game, features, planner
  python -m launch.pipeline --game=$GAME --preset=laptop                               # learn from this game's screens
NEXT
