#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ort_check.sh VENV ONNX_EVAL POLICIES: ort_check.py in its environment, or skipped where there is
# none.
set -euo pipefail
if [[ ! -x "$1/bin/python" ]]; then
  echo "skipped: no ONNX Runtime in $1; make it with tools/setup/venv.sh ort"
  exit 77
fi
exec "$1/bin/python" "$(dirname "$0")/ort_check.py" --eval "$2" --policies "$3"
