#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the GPU check of the physics, runs it, a memory check and a profiler, and writes what they print to a
# folder.
#   tools/gpu/physics.sh FOLDER
set -euo pipefail
out=${1:?usage: tools/gpu/physics.sh FOLDER}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
export PATH=$PATH:/usr/local/cuda/bin
build=$root/build/gpu
check=$build/gpu_check
generator=$(command -v ninja >/dev/null && echo Ninja || echo "Unix Makefiles")
cmake -S "$root/tools/gpu" -B "$build" -G "$generator" > "$out/configure.txt" 2>&1 ||
  { tail -20 "$out/configure.txt"; exit 1; }
# -k/--keep-going is the generator's; a variant that fails to build fails the run
cmake --build "$build" -j "$(nproc)" --target gpu_check > "$out/build.txt" 2>&1 ||
  { tail -40 "$out/build.txt"; exit 1; }
# registers, stack frame and spills of each kernel
grep -E "entry function|registers|stack frame" "$out/build.txt" > "$out/ptxas.txt" || true
nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.sm --format=csv > "$out/gpu.txt" || true
status=0
"$check" > "$out/physics.txt" 2>&1 || status=$?

if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    timeout 60 compute-sanitizer --tool $tool --error-exitcode 9 "$check" --no-bench --robots 64 \
      --kernel "$(sed -n 's/^# \([a-z0-9_]*\), friction.*/\1/p' "$out/physics.txt" | head -1)" \
      > "$out/sanitizer_$tool.txt" 2>&1 || status=$?
    echo "compute-sanitizer $tool: $(tail -1 "$out/sanitizer_$tool.txt")"
  done
else
  echo "compute-sanitizer is not installed"
fi

if command -v ncu >/dev/null; then
  for kernel in ${SILC_NCU_KERNELS-team4 team4_b4}; do
    for robots in 4096 65536; do
      timeout 60 ncu --clock-control none --kernel-name regex:AdvanceKernel --launch-skip 5 --launch-count 1 \
        --section SpeedOfLight --section MemoryWorkloadAnalysis --section MemoryWorkloadAnalysis_Tables \
        --section WarpStateStats --section Occupancy --section SchedulerStats --section InstructionStats \
        --section LaunchStats --section SourceCounters \
        --export "$out/ncu_${kernel}_$robots" --force-overwrite \
        "$check" --kernel "$kernel" --spin $robots > "$out/ncu_${kernel}_$robots.log" 2>&1 ||
        { echo "ncu failed: $(tail -1 "$out/ncu_${kernel}_$robots.log")"; continue; }
      ncu --import "$out/ncu_${kernel}_$robots.ncu-rep" --page details > "$out/ncu_${kernel}_$robots.txt" 2>&1 || true
      # samples per instruction, with the source line each came from
      ncu --import "$out/ncu_${kernel}_$robots.ncu-rep" --page source --csv --print-source cuda,sass \
        > "$out/ncu_${kernel}_$robots.csv" 2>&1 ||
        ncu --import "$out/ncu_${kernel}_$robots.ncu-rep" --page source --csv \
          > "$out/ncu_${kernel}_$robots.csv" 2>&1 || true
    done
  done
fi

if command -v cuobjdump >/dev/null; then
  cuobjdump -sass "$(find "$build" -path '*team4.dir*' -name '*.o' | head -1)" > "$out/team4.sass" 2>&1 || true
  gzip -f "$out/team4.sass"
fi
gzip -f "$out"/*.csv 2>/dev/null || true

# a short table: kernel, friction loss, refinement, M steps/s by number of robots
python3 - "$out/physics.txt" <<'PYTHON' | tee "$out/table.txt"
import json, sys
rows, carveout = {}, ""
for line in open(sys.argv[1]):
    if line.startswith('{"name":"physics.steps_per_s"'):
        r = json.loads(line)
        rows.setdefault((r["kernel"], r["friction_loss"], r["refine"], carveout), []).append(
            "%6.1f%s" % (r["value"] / 1e6, "!" if r["faults"] else " "))
    elif "carve-out" in line:
        carveout = line.split("carve-out")[1].strip()
    elif line.startswith("# "):
        carveout = ""
    elif '":false' in line:
        print(line.strip())
for key, values in rows.items():
    print("%-16s loss %.1f refine %d %-5s %s" % (*key, " ".join(values)))
PYTHON
exit $status
