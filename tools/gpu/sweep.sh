#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A sweep on a GPU machine that is had for a while only, and that may be taken away between two commands: the sweep runs on
# by itself, and every call brings back all that there is by then.
#   tools/gpu/sweep.sh FOLDER SECONDS LIST [words for silc sweep, such as --jobs 5 --only g1_loco_silc_felt_800]
# A call builds silc where build/cuda has none, and starts `silc sweep LIST` unless it runs; what is done is not done twice. It
# waits SECONDS, or until the sweep ends, and then writes to FOLDER, in pieces of 15 MB:
#   policies.tgz.*     finished policies in float16, with their cards; of the others what was exported last
#   checkpoints.tgz.*  the newest checkpoint of every run, as far as ROOM bytes go (30 MB): the unfinished ones first
#   logs.tgz           settings, logs, every 25th line of the metrics
# STOP=1 before it ends the sweep first: every training ends after its iteration, with a checkpoint. To try it without a GPU:
# BACKEND=batch SILC=build/release/bin/silc.
set -euo pipefail
out=$(mkdir -p "${1:?usage: tools/gpu/sweep.sh FOLDER SECONDS LIST [words for silc sweep]}" && cd "$1" && pwd)
seconds=${2:?tools/gpu/sweep.sh: how many seconds may this call wait?}
list=${3:?tools/gpu/sweep.sh: name a list, such as configs/sweep.yaml}
shift 3
cd "$(dirname "$0")/../.."
. tools/gpu/environment.sh
silc=${SILC-build/cuda/bin/silc}
backend=${BACKEND-cuda}
end=$(($(date +%s) + seconds))
state=runs/gpu_$(basename "$list" .yaml)
mkdir -p "$state/mps"
[[ -x $silc ]] || tools/gpu/build.sh silc

alive() { [[ -e $state/pid ]] && kill -0 "$(cat "$state/pid")" 2>/dev/null; }

if ! alive && [[ -z ${STOP-} ]]; then
  # several trainings share the GPU through NVIDIA's MPS; a session of its own outlives this call
  export CUDA_MPS_PIPE_DIRECTORY=$PWD/$state/mps CUDA_MPS_LOG_DIRECTORY=$PWD/$state/mps OMP_NUM_THREADS=1
  nvidia-cuda-mps-control -d </dev/null >/dev/null 2>&1 || echo "no MPS here: trainings take turns" >&2
  setsid nohup "$silc" sweep "$list" --backend "$backend" --threads 2 "$@" >"$state/sweep.log" 2>&1 </dev/null &
  echo $! >"$state/pid"
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
fi
while alive && [[ $(date +%s) -lt $end ]]; do sleep 2; done
if [[ ${STOP-} ]] && alive; then
  kill -INT "$(cat "$state/pid")"
  for _ in $(seq 30); do if alive; then sleep 1; fi; done
fi
grep ': ' "$state/sweep.log" | tail -n 12 || true

folder=$(sed -n 's/^folder: *//p' "$list")
folder=${folder:-runs/sweep}
rm -rf "$state/bring"
mkdir -p "$state/bring/policies" "$state/bring/logs"
"$silc" sweep "$list" --backend "$backend" --threads 2 --list --collect "$state/bring/policies" >"$state/bring/logs/list.txt" 2>&1 || true
unfinished=() finished=()
for run in "$folder"/*-seed*/; do
  [[ -e $run/config.yaml ]] || continue
  name=$(basename "$run")
  mkdir -p "$state/bring/logs/$name"
  cp "$run"/*.yaml "$state/bring/logs/$name/"
  if [[ -e $run/metrics.jsonl ]]; then
    awk 'NR % 25 == 1 { print } { last = $0 } END { print last }' "$run/metrics.jsonl" >"$state/bring/logs/$name/metrics.jsonl"
  fi
  # other seeds, and rows that are unfinished or are not collected
  if [[ -e $run/policy.onnx && ! ( $name == *-seed1 && -e $state/bring/policies/${name%-seed1}.onnx ) ]]; then
    "$silc" export "$run/policy.onnx" "$state/bring/policies/$name.onnx" --half >/dev/null 2>&1 || true
  fi
  newest=$(ls -t "$run"/checkpoints/*.silc 2>/dev/null | head -n 1 || true)
  [[ -n $newest ]] || continue
  if grep -qE "^${name%-seed*} +${name##*-seed} .* done" "$state/bring/logs/list.txt"; then
    finished+=("$newest")
  else
    unfinished+=("$newest")
  fi
done
cp "$state/sweep.log" "$folder"/*.log "$state/bring/logs/" 2>/dev/null || true
tar -C "$state/bring" -czf "$out/logs.tgz" logs
tar -C "$state/bring" -czf - policies | split -b 15000000 - "$out/policies.tgz."
if [[ $((${#unfinished[@]} + ${#finished[@]})) -gt 0 ]]; then
  room=${ROOM-30000000}
  bring=()
  for file in "${unfinished[@]}" "${finished[@]}"; do
    size=$(stat -c %s "$file")
    if ((size <= room)); then bring+=("$file") room=$((room - size)); fi
  done
  [[ ${#bring[@]} -eq 0 ]] || tar -czf - "${bring[@]}" | split -b 15000000 - "$out/checkpoints.tgz."
fi
ls -l "$out"
if alive; then echo "the sweep runs on: call again"; else echo "the sweep is over"; fi
