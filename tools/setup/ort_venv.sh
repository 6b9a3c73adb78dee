#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The environment of the test against ONNX Runtime, in .deps/ort-venv. Does nothing when it is there already.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
venv="$root/.deps/ort-venv"
# wheels of these exist for the Python 3.11 of Debian 12 and the 3.12 of Ubuntu 24.04
packages=(numpy==2.2.6 onnx==1.17.0 onnxruntime==1.21.1)
stamp="$venv/installed"

[[ -f "$stamp" && "$(cat "$stamp")" == "${packages[*]}" ]] && exit 0
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
echo "${packages[*]}" > "$stamp"
