#!/usr/bin/env bash
# Makes the project's environment where there is none and runs every check: lint, types, tests.
#   bash launch/test.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source launch/environment.sh test

ruff check .
ruff format --check .
mypy & # while the code of features is compiled, once for all tests
python -m vaeiw_jax.features
wait $!
python -m pytest "$@"
