#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheel.sh VENV BUILD WERROR COMPILER: builds the wheel with the packages of VENV alone, unpacks it
# into BUILD/site, and looks whether it is whole. Exit 77, with a message, where VENV is missing
# (tools/setup/venv.sh python makes it).
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
venv=${SILC_PYTHON_VENV-$1}
if [[ ! -x $venv/bin/pip ]]; then
  echo "no $venv: the Python package is not tested; tools/setup/venv.sh python makes it" >&2
  exit 77
fi
export CMAKE_CXX_COMPILER_LAUNCHER=${SILC_COMPILER_LAUNCHER-} CMAKE_BUILD_PARALLEL_LEVEL=2 PATH="$venv/bin:$PATH"
pip=("$venv/bin/pip" --disable-pip-version-check)
# as deep in the tree as the other builds, so that ccache, which sees paths from here, knows their
# objects again
export CCACHE_BASEDIR=${CCACHE_BASEDIR-$root}
tree=$root/build/wheel
rm -rf "$2/wheel" "$2/site"
"${pip[@]}" wheel --quiet --no-deps --no-build-isolation --wheel-dir "$2/wheel" \
  --config-settings build-dir="$tree" --config-settings cmake.define.SILC_WERROR="$3" \
  --config-settings cmake.define.CMAKE_CXX_COMPILER="$4" "$root"
"${pip[@]}" install --quiet --no-deps --target "$2/site" "$2"/wheel/silc-*.whl
cd "$2"
PYTHONPATH="$2/site" "$venv/bin/python" -c 'import silc; print(silc.Robot.read("g1").name, silc.Budget.read("compliance"))'
ls -l "$2"/wheel
# a wheel that says it serves later Pythons must hold a module that does
if compgen -G "$2/wheel/silc-*-abi3-*.whl" >/dev/null && [[ ! -e $2/site/silc/_core.abi3.so ]]; then
  echo "the wheel is called abi3, its module is $(basename "$2"/site/silc/_core*.so)" >&2
  exit 1
fi
# type checkers read the compiled module's stub, and look into packages that say they are typed
for file in _core.pyi py.typed; do
  if [[ ! -e $2/site/silc/$file ]]; then
    echo "the wheel has no silc/$file" >&2
    exit 1
  fi
done
if ! grep -q 'class Policy' "$2/site/silc/_core.pyi"; then
  echo "silc/_core.pyi does not describe the module" >&2
  exit 1
fi
# users bring their own MuJoCo
if readelf -d "$2"/site/silc/_core*.so | grep -i mujoco; then
  echo "silc._core must not link MuJoCo" >&2
  exit 1
fi
