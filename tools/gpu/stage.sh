#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gathers, under .deps/stage, the headers and shared libraries silc builds against, for a GPU machine on which
# nothing can be installed: copy the tree with .deps/stage and .deps/mujoco-* there and run tools/gpu/physics.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
stage=$PWD/.deps/stage
rm -rf "$stage"
mkdir -p "$stage"
packages=(libfmt-dev libfmt9 libspdlog-dev libspdlog1.10 libyaml-cpp-dev libyaml-cpp0.7 nlohmann-json3-dev
  libcli11-dev libgtest-dev zlib1g zlib1g-dev libprotobuf-dev libprotobuf-lite32 libprotobuf32 libprotoc32
  protobuf-compiler)
# what a build reads: headers, CMake packages, shared libraries, GoogleTest's archives, protoc
dpkg -L "${packages[@]}" |
  grep -E '^(/usr/include/.*|/usr/(lib|share)/.*cmake.*|.*/lib(gtest|gmock)[^/]*\.a|.*\.so(\.[0-9.]*)?|/usr/bin/protoc.*)$' |
  while read -r file; do if [[ ! -d $file || -L $file ]]; then echo "${file#/}"; fi; done |
  tar -C / -cf - -T - | tar -C "$stage" -xf -
# links that point out of the stage (libz's) are made to point into it
find "$stage" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath --relative-to="$(dirname "$link")" "$stage$(readlink "$link")" -m)" "$link"
done
mkdir -p "$stage/usr/include/onnx"
cp /usr/include/onnx/onnx.proto "$stage/usr/include/onnx/"
du -sh "$stage"
