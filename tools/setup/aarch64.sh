#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a robot computer runs (cmake --preset robot: base, stiffness, policy, deploy, the DDS link), compiled for ARM on
# another machine, in build/robot-aarch64. Debian's ARM packages are only unpacked, into FOLDER: lists and packages of this
# machine stay as they are.
#   tools/setup/aarch64.sh --fetch FOLDER    the ARM packages alone; fails where they cannot be had
#   tools/setup/aarch64.sh FOLDER            those, unless they are there, and the build
# Needs Debian 12 with g++-aarch64-linux-gnu, cyclonedds-tools (idlc) and libeigen3-dev. `./dev build aarch64` installs them.
set -euo pipefail
fetch_only=
if [[ ${1-} == --fetch ]]; then
  fetch_only=yes
  shift
fi
folder=${1:?tools/setup/aarch64.sh: name a folder for the ARM packages}
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
cd "$(dirname "$0")/../.."
packages=(cyclonedds-dev libddsc0debian libcycloneddsidl0 libiceoryx-binding-c-dev libiceoryx-binding-c2 libiceoryx-hoofs2
  libiceoryx-platform2 libiceoryx-posh2 libssl3 libacl1 libcap2 libatomic1)

if [[ ! -e "$folder/ready" ]]; then
  mkdir -p "$folder"/{root,packages,state/lists/partial,cache/archives/partial}
  touch "$folder/state/status"
  apt_arm() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$folder/state" \
      -o Dir::State::status="$folder/state/status" -o Dir::Cache="$folder/cache" -o Acquire::http::Timeout=30 "$@"
  }
  apt_arm update >/dev/null
  (cd "$folder/packages" && apt_arm download "${packages[@]}" >/dev/null)
  for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/root"; done
  rm -rf "$folder"/{packages,state,cache}
  touch "$folder/ready"  # last, so that a run cut short leaves nothing that looks complete
fi
[[ -z $fetch_only ]] || exit 0

library="$folder/root/usr/lib/aarch64-linux-gnu"
# Debian keeps some of Cyclone's headers by machine type
headers="-isystem $folder/root/usr/include/aarch64-linux-gnu"
cmake --preset robot -B build/robot-aarch64 --log-level=WARNING -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu "-DCMAKE_PREFIX_PATH=$folder/root/usr;/usr" \
  "-DCMAKE_C_FLAGS=$headers" "-DCMAKE_CXX_FLAGS=$headers" \
  "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,$library" -DSILC_UNITY=ON >/dev/null
# CMake leaves the link out where it finds no Cyclone; here that is an error
cmake --build build/robot-aarch64 --target all silc_deploy_dds
