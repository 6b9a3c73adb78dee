#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The environment of the viewer's browser test, in .deps/browser-venv. Does nothing when it is there already.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
venv="$root/.deps/browser-venv"
lock="$root/tools/setup/browser.lock"
stamp="$venv/installed"

cmp -s "$lock" "$stamp" && exit 0
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
  --requirement "$lock"
cp "$lock" "$stamp"
