#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Puts back, on a fresh GPU machine, the runs that an earlier call of tools/gpu/sweep.sh brought, so that the sweep goes on:
# their settings (logs.tgz) and newest checkpoints (checkpoints.tgz.*). A run that is there already stays as it is. Of a run
# whose checkpoint was not brought nothing is put back: it begins anew.
#   tools/gpu/restore.sh FOLDER [LIST]      LIST says where runs lie: configs/sweep.yaml if it is not named
set -euo pipefail
from=$(cd "${1:?usage: tools/gpu/restore.sh FOLDER [LIST]}" && pwd)
cd "$(dirname "$0")/../.."
list=${2-configs/sweep.yaml}
folder=$(sed -n 's/^folder: *//p' "$list")
folder=${folder:-runs/sweep}
for file in logs.tgz checkpoints.tgz.aa; do
  if [[ ! -e $from/$file ]]; then
    echo "tools/gpu/restore.sh: $from has no $file, which tools/gpu/sweep.sh writes" >&2
    exit 1
  fi
done
mkdir -p "$folder"
scratch=$(mktemp -d "$folder/.restore.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
if ! cat "$from"/checkpoints.tgz.* | tar -C "$scratch" -xzf - || ! tar -C "$scratch" -xzf "$from/logs.tgz"; then
  echo "tools/gpu/restore.sh: $from: cannot be unpacked; nothing was put back" >&2
  exit 1
fi
restored=() there=() without=()
for run in "$scratch"/logs/*-seed*/; do
  name=$(basename "$run")
  checkpoint=$(find "$scratch" -path "*/$name/checkpoints/checkpoint_*.silc" | sort | tail -n 1)
  if [[ ! -e $run/config.yaml || -z $checkpoint ]]; then
    without+=("$name")
  elif [[ -e $folder/$name/config.yaml || -d $folder/$name/checkpoints ]]; then
    there+=("$name")
  else
    mkdir -p "$folder/$name/checkpoints"
    mv "$checkpoint" "$folder/$name/checkpoints/"
    # what sweep.sh need not bring again before anything else
    basename "$checkpoint" >"$folder/$name/restored"
    # config.yaml, which makes the folder a run, comes last
    find "$run" -name '*.yaml' ! -name config.yaml -exec mv {} "$folder/$name/" \;
    mv "$run/config.yaml" "$folder/$name/"
    restored+=("$name")
  fi
done
echo "tools/gpu/restore.sh: put back: ${restored[*]:-none}; there already: ${there[*]:-none}; without a checkpoint: ${without[*]:-none}"
