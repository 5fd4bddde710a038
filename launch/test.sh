#!/usr/bin/env bash
# Makes the project's environment where there is none and runs every check: lint, types, tests.
#   bash launch/test.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source launch/environment.sh test

ruff check .
ruff format --check .
python -m compileall -q vaeiw_jax launch # else each process of the tests does, where Python must not write bytecode
mypy & # while the code of features is compiled, once for all tests
python -m vaeiw_jax.features
wait $!
python -m pytest "$@"
