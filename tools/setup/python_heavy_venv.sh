#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The environment of ./dev test-python, in ~/.cache/silc/python-heavy (or $SILC_PYTHON_HEAVY): mjlab with PyTorch 2,
# pandas and matplotlib, 6.7 GB. Outside the build, so that a clean clone does not fetch half a gigabyte again.
# Versions are those of tools/setup/python_heavy.txt, exact but without hashes: some sixty wheels, most of them CUDA's.
# Beside them, without what they ask for: holosoma with the two packages that its PPO imports (it pins an older NumPy),
# and, in the folder rsl_rl-next, the rsl_rl after mjlab's.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
venv="${SILC_PYTHON_HEAVY-$HOME/.cache/silc/python-heavy}"
wanted=$(cat "$root/tools/setup/python_heavy.txt" "$root/tools/setup/python_heavy_alone.txt")

[[ $wanted == "$(cat "$venv/installed" 2>/dev/null)" ]] && { echo "$venv"; exit 0; }
pip=("$venv/bin/pip" --disable-pip-version-check install --quiet)
alone() { grep -v '^#' "$root/tools/setup/python_heavy_alone.txt" | grep "$@"; }
python3 -m venv --clear "$venv" >&2
"${pip[@]}" --requirement "$root/tools/setup/python_heavy.txt" >&2
alone -v '^rsl' | "${pip[@]}" --no-deps --requirement /dev/stdin >&2
alone '^rsl' | "${pip[@]}" --no-deps --target "$venv/rsl_rl-next" --requirement /dev/stdin >&2
echo "$wanted" >"$venv/installed"
echo "$venv"
