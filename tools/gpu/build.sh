#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds silc with its CUDA back ends and the trainer on a GPU machine: against the LibTorch inside its python3's
# torch, and against .deps/stage (tools/gpu/stage.sh, tools/gpu/pack.sh) where that lies, else what the machine has.
#   tools/gpu/build.sh TARGET...                    SILC_WITH_TORCH=OFF before it leaves the trainer and LibTorch out
# Four sources are compiled as one, since the headers take most of the time; SILC_UNITY=OFF before it compiles each alone, and
# so does a second try where the first fails. Where only silc and its trainer (programs) are asked for, tests are not configured.
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build
. tools/gpu/environment.sh
torch=
if [[ ${SILC_WITH_TORCH:=ON} == ON ]]; then
  torch=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)' 2>/dev/null) || {
    echo "tools/gpu/build.sh: python3 has no torch, whose LibTorch with CUDA the trainer is built against." >&2
    echo "  Install one, or leave the trainer out: SILC_WITH_TORCH=OFF tools/gpu/build.sh $*" >&2
    exit 1
  }
fi
tests=OFF
for target in "$@"; do
  [[ $target == silc || $target == silc-trainer || $target == programs ]] || tests=ON
done
cmake --preset cuda -DCMAKE_PREFIX_PATH="$torch${CMAKE_PREFIX_PATH:+;$CMAKE_PREFIX_PATH}" -DSILC_WITH_TORCH="$SILC_WITH_TORCH" \
  -DSILC_UNITY="${SILC_UNITY-ON}" -DCMAKE_UNITY_BUILD_BATCH_SIZE=4 -DSILC_WITH_TESTS=$tests ${SILC_ONNX_SCHEMA:+-DSILC_ONNX_SCHEMA=$SILC_ONNX_SCHEMA} \
  > build/gpu.log 2>&1 || { tail -30 build/gpu.log; exit 1; }
if cmake --build build/cuda -j --target "$@" >> build/gpu.log 2>&1; then exit; fi
grep -A12 -E 'error|FAILED' build/gpu.log | head -80
if [[ ${SILC_UNITY-ON} == ON ]]; then
  echo "tools/gpu/build.sh: tried again, each source alone" >&2
  SILC_UNITY=OFF exec tools/gpu/build.sh "$@"
fi
exit 1
