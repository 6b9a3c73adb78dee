#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Python environment of the tests, in .deps/NAME-venv (or FOLDER), with what tools/setup/NAME.lock pins: ort (ONNX
# Runtime), browser (the viewer's test), python (builds and tests the package). Does nothing when it is there already.
#   tools/setup/venv.sh NAME [FOLDER]
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
lock="$root/tools/setup/${1:?tools/setup/venv.sh: name an environment: ort, browser or python}.lock"
venv=${2:-$root/.deps/$1-venv}
stamp="$venv/installed"

cmp -s "$lock" "$stamp" && exit 0
python3 -m venv --clear "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
  --requirement "$lock"
cp "$lock" "$stamp"
