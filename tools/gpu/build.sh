#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds silc with its CUDA back ends and the trainer on a GPU machine: against the LibTorch inside its python3's
# torch, and against .deps/stage (tools/gpu/stage.sh) where that lies, else what the machine has.
#   tools/gpu/build.sh TARGET...                    SILC_WITH_TORCH=OFF before it leaves the trainer and LibTorch out
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
cmake --preset cuda -DCMAKE_PREFIX_PATH="$torch${CMAKE_PREFIX_PATH:+;$CMAKE_PREFIX_PATH}" -DSILC_WITH_TORCH="$SILC_WITH_TORCH" \
  ${SILC_ONNX_SCHEMA:+-DSILC_ONNX_SCHEMA=$SILC_ONNX_SCHEMA} > build/gpu.log 2>&1 || { tail -30 build/gpu.log; exit 1; }
cmake --build build/cuda -j --target "$@" >> build/gpu.log 2>&1 || { grep -A12 -E 'error|FAILED' build/gpu.log | head -80; exit 1; }
