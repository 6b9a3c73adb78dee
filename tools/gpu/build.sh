#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds silc with its CUDA back ends and the trainer on a GPU machine: against the LibTorch inside its python3's
# torch, and against .deps/stage (tools/gpu/stage.sh) where that lies, else what the machine has.
#   tools/gpu/build.sh TARGET...
set -euo pipefail
cd "$(dirname "$0")/../.."
mkdir -p build
. tools/gpu/environment.sh
torch=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')
cmake --preset cuda -DCMAKE_PREFIX_PATH="$torch${CMAKE_PREFIX_PATH:+;$CMAKE_PREFIX_PATH}" \
  ${SILC_ONNX_SCHEMA:+-DSILC_ONNX_SCHEMA=$SILC_ONNX_SCHEMA} > build/gpu.log 2>&1 || { tail -30 build/gpu.log; exit 1; }
cmake --build build/cuda -j --target "$@" >> build/gpu.log 2>&1 || { grep -A12 -E 'error|FAILED' build/gpu.log | head -80; exit 1; }
