#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the GPU check of the physics, runs it with its benchmark, under compute-sanitizer and, if
# asked, under a profiler, and writes what they print to a folder.
#   tools/gpu/physics.sh FOLDER [--profile]
set -euo pipefail
out=${1:?usage: tools/gpu/physics.sh FOLDER [--profile]}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
(cd "$root" && . tools/gpu/environment.sh)  # unpacks what tools/gpu/pack.sh gathered
export PATH=$PATH:/usr/local/cuda/bin
build=$root/build/gpu
check=$build/gpu_check
generator=$(command -v ninja >/dev/null && echo Ninja || echo "Unix Makefiles")
cmake -S "$root/tools/gpu" -B "$build" -G "$generator" > "$out/configure.txt" 2>&1 ||
  { tail -20 "$out/configure.txt"; exit 1; }
cmake --build "$build" -j "$(nproc)" > "$out/build.txt" 2>&1 || { tail -40 "$out/build.txt"; exit 1; }
# registers, stack frame and spills of each kernel
grep -E "entry function|registers|stack frame" "$out/build.txt" > "$out/ptxas.txt" || true
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.sm --format=csv > "$out/gpu.txt" || true
status=0
"$check" | tee "$out/physics.txt" || status=$?

if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    compute-sanitizer --tool $tool --error-exitcode 9 "$check" --no-bench --robots 64 \
      > "$out/sanitizer_$tool.txt" 2>&1 || status=$?
    echo "compute-sanitizer $tool: $(tail -n 1 "$out/sanitizer_$tool.txt")"
  done
else
  echo "compute-sanitizer is not installed"
fi

if [[ ${2:-} == --profile ]] && command -v ncu >/dev/null; then
  for robots in 4096 65536; do
    ncu --clock-control none --kernel-name regex:AdvanceKernel --launch-skip 5 --launch-count 1 \
      --section SpeedOfLight --section MemoryWorkloadAnalysis --section WarpStateStats --section Occupancy \
      --section SchedulerStats --section InstructionStats --section LaunchStats --section SourceCounters \
      --export "$out/ncu_$robots" --force-overwrite "$check" --spin $robots > "$out/ncu_$robots.log" 2>&1 ||
      { echo "ncu failed: $(tail -n 1 "$out/ncu_$robots.log")"; continue; }
    ncu --import "$out/ncu_$robots.ncu-rep" --page details > "$out/ncu_$robots.txt" 2>&1 || true
    # samples per instruction, with the source line each came from
    ncu --import "$out/ncu_$robots.ncu-rep" --page source --csv --print-source cuda,sass 2>&1 |
      gzip > "$out/ncu_$robots.csv.gz" || true
  done
fi
exit $status
