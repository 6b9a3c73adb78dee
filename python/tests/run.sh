#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh SITE torch|venv VENV FILE...: pytest on the wheel unpacked in SITE. `venv`: with the
# packages of VENV. `torch`: in the first Python that has PyTorch ($SILC_TORCH_PYTHON, the
# distribution's); what it has not, such as MuJoCo, comes from VENV where that is of the same version
# of Python. Exit 77, with a message, where none has PyTorch. A folder $SILC_PYTHON_FIRST is looked
# into before all others.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
site=$1 kind=$2 venv=${SILC_PYTHON_VENV-$3}
shift 3
# silc.torch is plain Python and is tested without the wheel, too
[[ -d $site ]] || site=$here/..
export PYTHONPATH=${SILC_PYTHON_FIRST:+$SILC_PYTHON_FIRST:}$site PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
cd "$here"
if [[ $kind == venv ]]; then
  [[ -x $venv/bin/python ]] || { echo "no $venv: tools/setup/venv.sh python makes it" >&2; exit 77; }
  exec "$venv/bin/python" -m pytest -q -rs -p no:cacheprovider "$@"
fi
for python in "${SILC_TORCH_PYTHON-}" /usr/bin/python3 python3; do
  [[ -n $python ]] || continue
  if "$python" -c 'import numpy, pytest, torch; print("PyTorch", torch.__version__)' 2>/dev/null; then
    # after everything else: Debian's PyTorch needs Debian's NumPy
    version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
    [[ ! -d $venv/lib/$version/site-packages ]] || export SILC_PYTHON_LAST=$venv/lib/$version/site-packages
    exec "$python" -m pytest -q -rs -p no:cacheprovider "$@"
  fi
done
echo "no Python with PyTorch, NumPy and pytest: silc.torch is not tested (Debian: python3-torch python3-pytest)" >&2
exit 77
