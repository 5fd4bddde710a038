# Sourced by the other scripts: makes .venv with the project and the given extras in it, or reuses it.
#   source launch/environment.sh [EXTRA]
# Another place or another Python: VAEIW_VENV=/path PYTHON=python3.12 bash launch/...

_venv="${VAEIW_VENV:-.venv}"
_python="${PYTHON:-python3}"
_extras="${1:-}"

if ! "$_python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "error: '$_python' is not Python 3.11 or newer; name one with PYTHON=/path/to/python3" >&2
  exit 1
fi
if [ ! -x "$_venv/bin/python" ] && ! "$_python" -m venv "$_venv"; then
  echo "error: cannot make a virtual environment in $_venv; on Debian: apt-get install python3-venv" >&2
  exit 1
fi

# A file in the environment tells what was installed; the extras hold the base.
_stamp="$_venv/installed-${_extras:-base}"
_wanted="$(cat pyproject.toml; pwd)"
_installed=
for _found in "$_venv"/installed-${_extras:-*}; do
  if [ "$(cat "$_found" 2>/dev/null)" = "$_wanted" ]; then _installed=yes; fi
done
if [ -z "$_installed" ]; then
  echo "Installing vaeiw_jax${_extras:+[$_extras]} into $_venv ..."
  "$_venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".${_extras:+[$_extras]}"
  printf '%s' "$_wanted" > "$_stamp"
fi
export PATH="$(cd "$_venv/bin" && pwd):$PATH"
