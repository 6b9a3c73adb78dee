#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the GPU check of the physics, runs it and a memory check, and writes what they print to a folder.
#   tools/gpu/physics.sh FOLDER
set -euo pipefail
out=${1:?usage: tools/gpu/physics.sh FOLDER}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
export PATH=$PATH:/usr/local/cuda/bin
generator=$(command -v ninja >/dev/null && echo Ninja || echo "Unix Makefiles")
cmake -S "$root/tools/gpu" -B "$root/build/gpu" -G "$generator" > "$out/configure.txt" 2>&1 ||
  { tail -20 "$out/configure.txt"; exit 1; }
cmake --build "$root/build/gpu" -j > "$out/build.txt" 2>&1 || { tail -40 "$out/build.txt"; exit 1; }
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm --format=csv > "$out/gpu.txt" || true
status=0
"$root/build/gpu/gpu_check" | tee "$out/physics.txt" || status=$?
if command -v compute-sanitizer >/dev/null; then
  compute-sanitizer --error-exitcode 9 "$root/build/gpu/gpu_check" --no-bench --robots 64 \
    > "$out/sanitizer.txt" 2>&1 || status=$?
  tail -3 "$out/sanitizer.txt"
else
  echo "compute-sanitizer is not installed" | tee "$out/sanitizer.txt"
fi
exit $status
