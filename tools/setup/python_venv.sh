#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The environment that builds and tests the Python package, in .deps/python-venv (or $SILC_PYTHON_VENV): NumPy, MuJoCo,
# pytest and what builds the wheel, pinned. Does nothing when it is there already.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
venv="${SILC_PYTHON_VENV-$root/.deps/python-venv}"
lock="$root/tools/setup/python.lock"
stamp="$venv/installed"

cmp -s "$lock" "$stamp" && exit 0
python3 -m venv --clear "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
  --requirement "$lock"
cp "$lock" "$stamp"
