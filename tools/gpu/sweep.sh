#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A sweep on a GPU machine that is had for a while only, and that may be taken away between two commands: the sweep runs on
# by itself, and every call brings back all that there is by then.
#   tools/gpu/sweep.sh FOLDER SECONDS LIST [words for silc sweep, such as --jobs 5 --only g1_loco_silc_felt_800]
# A call builds silc where build/cuda has none, and starts `silc sweep LIST` unless it runs; what is done is not done twice,
# and a training that fails is started once more. It waits SECONDS, or until the sweep ends. Every EVERY seconds (60) and at
# the end it writes to FOLDER, each file in place of the old one, so that a call that is cut has brought what there was:
#   policies.tgz.*     finished policies in float16, with their cards; of the others what was exported last
#   checkpoints.tgz.*  newest checkpoints: first of rows that others start from, then of unfinished runs, the farthest first,
#                      then of what tools/gpu/restore.sh put back, and of finished runs. As many as ROOM bytes (45 MB) take,
#                      and as FOLDER with all that lies in it stays within FILES files (8) and BYTES bytes (66 MB)
#   logs.tgz           settings, logs, every 25th line of the metrics
# in pieces of 15 MB. The last packing takes some seconds: leave it 30. The last line says how the sweep stands and what was
# left out. Exit code: 1 when a row failed, 2 when a sweep of other words runs, else 0.
# STOP=1 before it ends the sweep first: every training ends after its iteration, with a checkpoint. To try it without a GPU:
# BACKEND=batch SILC=build/release/bin/silc. A fresh machine goes on with tools/gpu/restore.sh.
set -euo pipefail
out=$(mkdir -p "${1:?usage: tools/gpu/sweep.sh FOLDER SECONDS LIST [words for silc sweep]}" && cd "$1" && pwd)
seconds=${2:?tools/gpu/sweep.sh: how many seconds may this call wait?}
list=${3:?tools/gpu/sweep.sh: name a list, such as configs/sweep.yaml}
shift 3
for word in "$@"; do
  case $word in
    --out | --out=* | --list | --collect | --collect=* | --slurm | --slurm=* | --backend | --backend=* | --threads | --threads=* | --retries | --retries=*)
      echo "tools/gpu/sweep.sh: $word: this script says that itself; the folder of the runs is the list's" >&2
      exit 2
      ;;
  esac
done
cd "$(dirname "$0")/../.."
. tools/gpu/environment.sh
silc=${SILC-build/cuda/bin/silc}
piece=15000000
every=${EVERY-60}
started=$(date +%s)
end=$((started + seconds))
state=runs/gpu_$(basename "$list" .yaml)
folder=$(sed -n 's/^folder: *//p' "$list")
folder=${folder:-runs/sweep}
command=("$silc" sweep "$list" --backend "${BACKEND-cuda}" --threads 2 "$@")
words=$(printf '%q ' "$list" "$@")
packed=() left=() status=0
mkdir -p "$state"
[[ -x $silc ]] || tools/gpu/build.sh programs

alive() { [[ -e $state/pid ]] && kill -0 "$(cat "$state/pid")" 2>/dev/null; }

# several trainings share the GPU through NVIDIA's MPS, whose daemon outlives the call
start_mps() {
  export CUDA_MPS_PIPE_DIRECTORY=$PWD/runs/gpu_mps CUDA_MPS_LOG_DIRECTORY=$PWD/runs/gpu_mps
  mkdir -p runs/gpu_mps
  if echo get_server_list | nvidia-cuda-mps-control >/dev/null 2>&1; then return; fi
  # its words go to a file: a daemon that held a pipe would keep this script waiting
  nvidia-cuda-mps-control -d </dev/null >runs/gpu_mps/start.txt 2>&1 ||
    grep -q 'already running' runs/gpu_mps/start.txt ||
    echo "no MPS here: trainings take turns ($(tail -n 1 runs/gpu_mps/start.txt))" >&2
}

# a process that outlives this call; a later call reads its exit code
start_sweep() {
  rm -f "$state/pid" "$state/exit"
  echo "$words" >"$state/words"
  (
    start_mps
    export OMP_NUM_THREADS=1
    # shellcheck disable=SC2016
    exec setsid nohup bash -c '"${@:2}" & echo $! >"$1/pid"; wait $!; echo $? >"$1/exit"' sweep "$state" \
      "${command[@]}" --retries 1 >"$state/sweep.log" 2>&1 </dev/null
  ) &
  for _ in $(seq 100); do if [[ -s $state/pid ]]; then break; fi; sleep 0.1; done
}

# The files of $state/pack that match take the place of FOLDER's, each at once.
replace() {
  local file names=()
  for file in "$state"/pack/$1; do
    [[ ! -e $file ]] || names+=("${file##*/}")
  done
  # renamed on one disk; from another copied beside it first
  for file in "${names[@]}"; do
    if [[ $(stat -c %d "$state/pack") == $(stat -c %d "$out") ]]; then
      mv -f "$state/pack/$file" "$out/$file"
    else
      cp "$state/pack/$file" "$out/.part" && mv -f "$out/.part" "$out/$file"
    fi
  done
  for file in "$out"/$1; do
    [[ " ${names[*]} " == *" ${file##*/} "* ]] || rm -f "$file"
  done
}

count_files() { find "$@" -type f 2>/dev/null | wc -l; }
count_bytes() { find "$@" -type f -printf '%s\n' 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }'; }

# Puts the newest checkpoints in order, as many as fit, into checkpoints.tgz.*. Sets `packed` and `left`, names of runs.
pack_checkpoints() {
  packed=() left=()
  local run name newest iteration wanted rank room pieces size
  for run in "$folder"/*-seed*/; do
    name=$(basename "$run")
    newest=$(find "$run/checkpoints" -maxdepth 1 -name 'checkpoint_*.silc' 2>/dev/null | sort | tail -n 1)
    [[ -n $newest && -e $run/config.yaml ]] || continue
    iteration=$(basename "$newest" .silc)
    iteration=$((10#${iteration#checkpoint_}))
    wanted=$(sed -n 's/^ *iterations: *//p' "$run/config.yaml" | head -n 1)
    rank=1
    if ((iteration >= ${wanted:-0})); then rank=3; fi
    if grep -qE "from: *${name%-seed*} *([,}#]|$)" "$list"; then rank=0; fi
    # what an earlier call brought and this one has not changed
    if [[ -e $run/restored && $(cat "$run/restored") == "$(basename "$newest")" ]]; then rank=2; fi
    echo "$rank $((100000000 - iteration)) $name $newest"
  done | sort -n >"$state/checkpoints.txt"
  pieces=$((${FILES-8} - $(count_files "$out" ! -name 'checkpoints.tgz.*')))
  room=$((${BYTES-66000000} - $(count_bytes "$out" ! -name 'checkpoints.tgz.*')))
  if ((room > ${ROOM-45000000})); then room=${ROOM-45000000}; fi
  if ((room > pieces * piece)); then room=$((pieces * piece)); fi
  rm -rf "$state/checkpoints"
  while read -r _ _ name newest; do
    size=$(stat -c %s "$newest" 2>/dev/null) || continue
    if ((size <= room)); then
      # a link of its own: the training deletes old checkpoints
      mkdir -p "$state/checkpoints/$(dirname "$newest")"
      cp -l "$newest" "$state/checkpoints/$newest" 2>/dev/null || cp "$newest" "$state/checkpoints/$newest" || continue
      room=$((room - size))
      packed+=("$name")
    else
      left+=("$name")
    fi
  done <"$state/checkpoints.txt"
  if [[ ${#packed[@]} -gt 0 ]]; then
    tar -C "$state/checkpoints" -cf - . | gzip -1 | split -b $piece - "$state/pack/checkpoints.tgz."
    replace 'checkpoints.tgz.*'
  fi
}

# Everything there is by now, to FOLDER.
bring() {
  local logs=$state/logs policies=$state/policies run name file
  rm -rf "$state/pack" "$logs"
  mkdir -p "$state/pack" "$logs/logs" "$policies/policies"
  "${command[@]}" --list --collect "$policies/policies" >"$logs/logs/list.txt" 2>&1 || true
  cp "$logs/logs/list.txt" "$state/list.txt"
  for run in "$folder"/*-seed*/; do
    [[ -e $run/config.yaml ]] || continue
    name=$(basename "$run")
    mkdir -p "$logs/logs/$name"
    cp "$run"/*.yaml "$logs/logs/$name/" || true
    if [[ -e $run/metrics.jsonl ]]; then
      awk 'NR % 25 == 1 { print } { last = $0 } END { print last }' "$run/metrics.jsonl" >"$logs/logs/$name/metrics.jsonl" || true
    fi
    # other seeds, and rows that are unfinished or are not collected
    file=$policies/policies/$name.onnx
    if grep -qE "^$name: .*\.onnx, " "$state/list.txt"; then
      rm -f "$file"
    elif [[ -e $run/policy.onnx && (! -e $file || $run/policy.onnx -nt $file) ]]; then
      "$silc" export "$run/policy.onnx" "$file" --half >/dev/null 2>&1 || true
    fi
  done
  cp "$state/sweep.log" "$folder"/*.log "$logs/logs/" 2>/dev/null || true
  tar -C "$logs" -czf "$state/pack/logs.tgz" logs
  replace logs.tgz
  if [[ $(count_files "$policies") -gt 0 ]]; then
    tar -C "$policies" -cf - policies | gzip -1 | split -b $piece - "$state/pack/policies.tgz."
    replace 'policies.tgz.*'
  fi
  pack_checkpoints
}

if alive && [[ $(cat "$state/words" 2>/dev/null) != "$words" ]]; then
  echo "tools/gpu/sweep.sh: a sweep of other words runs: $(cat "$state/words")" >&2
  echo "  This call said: $words" >&2
  echo "  Call with the same words, or end that sweep first: STOP=1 tools/gpu/sweep.sh $out 60 $(cat "$state/words")" >&2
  exit 2
fi
if [[ ${STOP-} ]]; then
  if alive; then kill "$(cat "$state/pid")"; fi
elif ! alive; then
  start_sweep
fi
next=$((started + every))
while alive && [[ $(date +%s) -lt $end ]]; do
  sleep "${POLL-2}"
  now=$(date +%s)
  # near the end the last packing does it
  if ((now >= next && end - now > every / 4)); then
    bring || echo "tools/gpu/sweep.sh: packing failed; tried again in $every s" >&2
    next=$(($(date +%s) + every))
  fi
done
# what has just ended says so a moment later
if ! alive; then for _ in 1 2 3 4 5 6 7 8 9 10; do [[ -e $state/exit ]] || sleep 0.2; done; fi
bring || { echo "tools/gpu/sweep.sh: packing failed" >&2 && status=1; }
touch "$state/sweep.log"
grep ': ' "$state/sweep.log" | tail -n 12 || true
ls -l "$out"

# the last line
failed=$(sed -nE 's/^.* ([^ ]+-seed[0-9]+): failed: .*/\1/p' "$state/sweep.log")
failed+=" $(sed -nE 's/^([^ ]+) +([0-9]+) .* broken: .*/\1-seed\2/p' "$state/list.txt")"
failed=$(tr -s ' \n' '\n' <<<"$failed" | sort -u | tr '\n' ' ')
rows=$(grep -cE '^[^ ]+ +[0-9]+ ' "$state/list.txt" || true)
finished=$(grep -cE '^[^ ]+ +[0-9]+ .* done(,.*)?$' "$state/list.txt" || true)
text="$finished of $rows done"
if [[ $failed == *[^\ ]* ]]; then text+="; FAILED: $(echo $failed)" status=1; fi
text+="; brought $(count_bytes "$out" | awk '{ printf "%.1f", $1 / 1e6 }') MB in $(count_files "$out") files"
text+=", checkpoints of: ${packed[*]:-none}; left out: ${left[*]:-none}"
if alive; then
  text+="; the sweep runs on: call again"
elif [[ ! -e $state/words ]]; then
  text+="; no sweep was started here"
else
  code=$(cat "$state/exit" 2>/dev/null || echo unknown)
  text+="; the sweep is over"
  if [[ $code != 0 ]]; then text+=" with exit code $code: $(tail -n 1 "$state/sweep.log")" status=1; fi
fi
echo "tools/gpu/sweep.sh: $text"
exit $status
