#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The peers that run.sh measures, gathered for a GPU machine that has Python with PyTorch and NumPy
# but no network: FOLDER/peers.tar.xz.00, .01, ..., pieces of at most 45 MiB that can be carried one
# by one.
#   bench/peers/stage.sh FOLDER            STAGE_PYTHON=3.12 before it is the Python of that machine
# There, with a folder PEERS:
#   cat FOLDER/peers.tar.xz.* | tar -xJC PEERS
#   PYTHONPATH=PEERS PEERS_PYTHON=python3 bench/peers/run.sh OUT.jsonl
set -euo pipefail
folder=${1:?bench/peers/stage.sh: name the folder for the pieces, such as .deps/peers}
mkdir -p "$folder"
folder=$(realpath "$folder")
cd "$(dirname "$0")/../.."
python=${STAGE_PYTHON-3.12}
scratch=$(mktemp -d .deps/peers.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
wheels=$scratch/wheels site=$scratch/site
mkdir "$wheels" "$site"

# What the machine brings itself is promised to pip by empty packages: PyTorch alone would be gigabytes.
python3 - "$wheels" <<'PY'
import sys, zipfile

for name in ("torch", "torchvision", "triton"):
    version = "99.0"
    folder = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{folder}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{folder}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{folder}/RECORD", "")
PY
grep -vE '^(#|torch==)' bench/peers/requirements.txt >"$scratch/requirements.txt"
printf '%s==99.0\n' torch torchvision triton >"$scratch/constraints.txt"
platforms=()
for tag in manylinux_2_34 manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014; do
  platforms+=(--platform "${tag}_$(uname -m)")
done
python3 -m pip --disable-pip-version-check download --quiet --only-binary=:all: --implementation cp \
  --python-version "$python" --abi "cp${python/./}" --abi abi3 --abi none "${platforms[@]}" \
  --find-links "$wheels" --constraint "$scratch/constraints.txt" --requirement "$scratch/requirements.txt" \
  --dest "$wheels"
for wheel in "$wheels"/*.whl; do
  case ${wheel##*/} in
    torch-* | torchvision-* | triton-* | numpy-* | sympy-* | mpmath-*) ;;
    *) unzip -q -o "$wheel" -d "$site" ;;
  esac
done

# The half of it that a training on a GPU never opens: encoders of films, Warp's compiler for CPUs,
# other robots' meshes, a service's programs, tests.
rm -rf "$site"/imageio_ffmpeg/binaries "$site"/warp/bin/warp-clang.so "$site"/warp/tests "$site"/wandb/bin/* \
  "$site"/mujoco/experimental/studio "$site"/onnx/backend/test/data "$site"/mjlab/asset_zoo/robots/unitree_go1
find "$site"/scipy "$site"/matplotlib -depth -type d -name tests -exec rm -rf {} +

rm -f "$folder"/peers.tar.xz.*
tar -C "$site" -cf - . | xz -T0 -6 | split --bytes=45M --numeric-suffixes - "$folder/peers.tar.xz."
ls -l "$folder"
