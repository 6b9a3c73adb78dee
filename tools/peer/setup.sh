#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Unitree's public MuJoCo bridge as a peer for `silc deploy`, in FOLDER: their two repositories at the commits below and a
# Python environment for them. What is there already is kept. Nothing of theirs becomes part of this project.
#   tools/peer/setup.sh FOLDER
# Needs git, python3 with its headers, a C compiler, and Debian's cyclonedds-dev and cyclonedds-tools 0.10.2: the Python
# binding of that version has no wheel for Python 3.11 and is built against Debian's library.
set -euo pipefail
folder=${1:?tools/peer/setup.sh: name a folder outside the project}
bridge_commit=c598f103acb87a5fd3de7c9037f4dab6aa7f232b
sdk_commit=37116c521f1588482e238d8450e471ba78ab9863
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"

# checkout NAME COMMIT PATH...: those paths of one repository
checkout() {
  local name=$1 commit=$2
  shift 2
  [[ -d "$folder/$name" ]] && return
  git clone --quiet --filter=blob:none --no-checkout "https://github.com/unitreerobotics/$name.git" "$folder/$name"
  git -C "$folder/$name" sparse-checkout set "$@"
  git -C "$folder/$name" checkout --quiet "$commit"
}
checkout unitree_mujoco $bridge_commit simulate_python unitree_robots/g1
checkout unitree_sdk2_python $sdk_commit unitree_sdk2py

if [[ ! -e "$folder/venv/ready" ]]; then
  # the binding looks for an installation of its own: one made of links
  library="/usr/lib/$(gcc -print-multiarch)"
  rm -rf "$folder/cyclone" "$folder/venv"
  mkdir -p "$folder/cyclone/lib" "$folder/cyclone/bin"
  ln -s /usr/include "$folder/cyclone/include"
  ln -s "$library"/libddsc.so* "$library"/libcycloneddsidl.so* "$folder/cyclone/lib"
  ln -s "$(command -v idlc)" "$folder/cyclone/bin"
  python3 -m venv "$folder/venv"
  CYCLONEDDS_HOME="$folder/cyclone" "$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    cyclonedds==0.10.2 mujoco==3.17.0 numpy pygame setuptools wheel
  # without its dependencies: OpenCV is for cameras
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    "$folder/unitree_sdk2_python"
  touch "$folder/venv/ready"
fi
echo "$folder is ready: tools/peer/run.sh $folder POLICY"
