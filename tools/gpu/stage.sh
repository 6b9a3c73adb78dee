#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gathers, under .deps/stage, the headers, CMake packages and shared libraries of the Debian packages silc builds
# against, for a GPU machine that has a compiler, CMake and CUDA but not these, and on which nothing can be installed.
# Copy the tree there with .deps/stage and .deps/mujoco-*, then
#   cmake --preset cuda -DCMAKE_PREFIX_PATH=$PWD/.deps/stage/usr    everything; run with
#                                                                   LD_LIBRARY_PATH=.deps/stage/usr/lib/x86_64-linux-gnu
#   tools/gpu/physics.sh FOLDER                                     the physics alone: of the stage it takes Eigen
set -euo pipefail
cd "$(dirname "$0")/../.."
stage=$PWD/.deps/stage
rm -rf "$stage"
mkdir -p "$stage"
packages=(libeigen3-dev libfmt-dev libfmt9 libspdlog-dev libspdlog1.10 libyaml-cpp-dev libyaml-cpp0.7 nlohmann-json3-dev
  libcli11-dev libgtest-dev libstb-dev zlib1g zlib1g-dev libprotobuf-dev libprotobuf-lite32 libprotobuf32 libprotoc32
  protobuf-compiler)
# what a build reads: headers, CMake packages, shared libraries, GoogleTest's archives, protoc
dpkg -L "${packages[@]}" |
  grep -E '^(/usr/include/.*|/usr/(lib|share)/.*cmake.*|.*/lib(gtest|gmock)[^/]*\.a|.*\.so(\.[0-9.]*)?|/usr/bin/protoc.*)$' |
  grep -v '^/usr/include/eigen3/unsupported/Eigen/CXX11/' |
  while read -r file; do if [[ ! -d $file || -L $file ]]; then echo "${file#/}"; fi; done |
  tar -C / -cf - -T - | tar -C "$stage" -xf -
# links that point out of the stage (libz's) are made to point into it
find "$stage" -type l -lname '/*' | while read -r link; do
  ln -sfn "$(realpath --relative-to="$(dirname "$link")" "$stage$(readlink "$link")" -m)" "$link"
done
mkdir -p "$stage/usr/include/onnx"
cp /usr/include/onnx/onnx.proto "$stage/usr/include/onnx/"
du -sh "$stage"
