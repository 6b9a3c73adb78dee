#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# torch_tests.sh PENALTY_SAMPLES [PYTHON]: silc.torch against the C++ trainer, in the first Python that has PyTorch and
# pytest: PYTHON, $SILC_TORCH_PYTHON, the distribution's. Exit 77, with a message, where none has them.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
export SILC_PENALTY_SAMPLES=$1 PYTHONPATH="${SILC_PYTHON_SITE-$here/..}" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
for python in "${2-}" "${SILC_TORCH_PYTHON-}" /usr/bin/python3 python3; do
  [[ -n $python ]] || continue
  if "$python" -c 'import numpy, pytest, torch; print("PyTorch", torch.__version__)' 2>/dev/null; then
    exec "$python" -m pytest -q -p no:cacheprovider "$here/test_torch.py"
  fi
done
echo "no Python with PyTorch, NumPy and pytest: silc.torch is not tested (Debian: python3-torch python3-pytest)" >&2
exit 77
