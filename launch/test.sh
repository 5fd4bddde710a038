#!/usr/bin/env bash
# Makes the project's environment where there is none and runs every check: lint, types, tests.
#   bash launch/test.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source launch/environment.sh test

ruff check .
ruff format --check .
mypy
python -m pytest "$@"
