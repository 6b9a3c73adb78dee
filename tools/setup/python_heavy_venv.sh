#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The environment of ./dev test-python, in ~/.cache/silc/python-heavy (or $SILC_PYTHON_HEAVY): mjlab with PyTorch 2,
# pandas and matplotlib, 6.7 GB. Outside the build, so that a clean clone does not fetch half a gigabyte again.
# Versions are those of tools/setup/python_heavy.txt, exact but without hashes: some sixty wheels, most of them CUDA's.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
venv="${SILC_PYTHON_HEAVY-$HOME/.cache/silc/python-heavy}"
wanted="$root/tools/setup/python_heavy.txt"

cmp -s "$wanted" "$venv/installed" && { echo "$venv"; exit 0; }
python3 -m venv --clear "$venv" >&2
"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted" >&2
cp "$wanted" "$venv/installed"
echo "$venv"
