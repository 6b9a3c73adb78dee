# SPDX-License-Identifier: Apache-2.0
# Sourced: paths to CUDA's tools and to what tools/gpu/stage.sh gathered.
export PATH=$PATH:/usr/local/cuda/bin
stage=$PWD/.deps/stage
if [[ -d $stage ]]; then
  export CMAKE_PREFIX_PATH=$stage/usr
  export LD_LIBRARY_PATH=$stage/usr/lib/x86_64-linux-gnu:$stage/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export PATH=$stage/usr/bin:$PATH
  export SILC_ONNX_SCHEMA=$stage/usr/include/onnx/onnx.proto
fi
