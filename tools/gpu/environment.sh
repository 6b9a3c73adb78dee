# SPDX-License-Identifier: Apache-2.0
# Sourced in the repository's root: unpacks what tools/gpu/pack.sh gathered (in PACK, out/pack) where .deps lacks it, and sets
# the paths to CUDA's tools and to what tools/gpu/stage.sh gathered.
unpack() {  # ARCHIVE FOLDER-IN-DEPS
  if [[ ! -e $1 || -e .deps/$2 ]]; then return; fi
  rm -rf .deps/unpack
  mkdir -p .deps/unpack
  # Python reads xz where there is no such program
  tar -C .deps/unpack -xJf "$1" 2>/dev/null || python3 -m tarfile -e "$1" .deps/unpack
  mv ".deps/unpack/$2" ".deps/$2"  # last, so that a command cut short leaves nothing that looks complete
  rmdir .deps/unpack
}
unpack "${PACK-out/pack}/stage.tar.xz" stage
unpack "${PACK-out/pack}/mujoco.tar.xz" "mujoco-$(head -n 1 tools/setup/mujoco.version)"
unset -f unpack
export PATH=$PATH:/usr/local/cuda/bin
stage=$PWD/.deps/stage
if [[ -d $stage ]]; then
  export CMAKE_PREFIX_PATH=$stage/usr
  export LD_LIBRARY_PATH=$stage/usr/lib/x86_64-linux-gnu:$stage/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export PATH=$stage/usr/bin:$PATH
  export SILC_ONNX_SCHEMA=$stage/usr/include/onnx/onnx.proto
fi
