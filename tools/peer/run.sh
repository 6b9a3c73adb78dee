#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `silc deploy` against the peer of tools/peer/setup.sh, on a network of their own: a loopback interface with multicast,
# which the bridge needs, that nobody else sees. Prints what both say. Then `silc observe` looks at the log, and its
# stiffness is held against the one observed on-line. Fails when the robot is stopped by a fault, or the two differ by more
# than 1e-6.
#   SCRIPT="..." DT=0.005 LENGTH=20 tools/peer/run.sh FOLDER POLICY [OPTIONS OF silc deploy]
#     SCRIPT   what happens when, see tools/peer/bridge.py [stand up, walk, a push, stop]
#     DT       physics step of the bridge [0.002 s; theirs is 0.005 s, see README.md]
#     LENGTH   of the run [s]
#     LOG      folder for the log, new [one that is removed at the end]
set -euo pipefail
folder=${1:?tools/peer/run.sh FOLDER POLICY} policy=${2:?tools/peer/run.sh FOLDER POLICY}
shift 2
silc=${SILC:-$(cd "$(dirname "$0")/../.." && pwd)/build/release/bin/silc}
here="$(cd "$(dirname "$0")" && pwd)"
bridge="$here/bridge.py"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=${LOG:-$scratch/log}
script=${SCRIPT:-"2 press B; 2.5 press start; 4.6 band 1.2; 6 press A; 6.5 release; 9 stick ly 0.7; 13 push 60 0 0 0.2; 15 stick ly 0;
  18 press B"}
length=${LENGTH:-19}
own_network=(unshare --net)
[[ $EUID -eq 0 ]] || own_network+=(--map-root-user)
# on a busy computer both have to come first: the bridge, which computes the motors' torques in Python when a command
# comes, and the threads of Cyclone inside silc deploy, which bring the states
first=()
chrt --rr 30 true 2>/dev/null && first=(chrt --rr 30)

# options that silc observe has to be told, too
shared=() known=' --robot --layout --mode --budget --gains '
for ((i = 1; i <= $#; ++i)); do
  option=${!i}
  if [[ $option == --*=* && $known == *" ${option%%=*} "* ]]; then
    shared+=("$option")
  elif [[ $option == --* && $known == *" $option "* ]]; then
    next=$((i + 1))
    shared+=("$option" "${!next}")
  fi
done

# The bridge begins to count when it runs, so silc deploy is to be ready: this is the rehearsal, it needs none before.
"${own_network[@]}" bash -c '
  ip link set lo up multicast on
  $5 "$1/venv/bin/python" "$2" "$1" --script "$3; $6 end" --dt "$4" &
  bridge=$! first=$5
  shift 6
  status=0
  $first "$@" </dev/null || status=$?
  kill $bridge 2>/dev/null || true
  wait $bridge 2>/dev/null || true
  exit $status' _ "$folder" "$bridge" "$script" "${DT:-0.002}" "${first[*]}" "$((${length%.*} + 5))" \
  "$silc" deploy "$policy" --network lo --domain 1 --no-crc --no-tick --no-machine-mode --no-keys --preflight 0 --wait 30 \
  --seconds "$length" --log "$log" "$@"

"$silc" observe "$policy" --states "$log" --json "$scratch/observed.json" ${shared[@]+"${shared[@]}"} >"$scratch/words" || {
  cat "$scratch/words"
  exit 1
}
"$folder/venv/bin/python" "$here/compare_log.py" "$log" "$scratch/observed.json"
