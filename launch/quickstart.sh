#!/usr/bin/env bash
# Makes the project's environment where there is none, plays some MsPacman, and shows what came of it.
#   bash launch/quickstart.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source launch/environment.sh

python -m launch.play --game=MsPacman --max_actions=100 --video --workdir=runs/quickstart
cat <<'NEXT'

The game's record, decision statistics and video are in runs/quickstart. Try next:
  source .venv/bin/activate
  python -m launch.play --game=SpaceInvaders --max_actions=300 --video     # another game
  python -m launch.play --game=Pong --planner=iw --norisk_averse --runs=3  # another planner
  python -m launch.play --help                                             # everything there is to set
NEXT
