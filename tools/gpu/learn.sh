#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a GPU machine: builds silc with its trainer, runs the tests that need a GPU, the benchmarks of training with PyTorch's
# own ways beside ours, and then a sweep; what they print, the finished policies and their logs go to a folder.
#   tools/gpu/learn.sh FOLDER [words for silc sweep configs/sweep.yaml, such as --only g1_loco_lcp --jobs 5 --max-seconds 500]
# Several trainings share the GPU through NVIDIA's MPS, a third faster together than one after the other.
set -euo pipefail
out=$(mkdir -p "${1:?usage: tools/gpu/learn.sh FOLDER [words for silc sweep]}" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
. tools/gpu/environment.sh
tools/gpu/build.sh silc learn_gpu_tests task_cuda_tests
status=0
for test in learn/learn_gpu_tests task/task_cuda_tests; do
  build/cuda/silc/$test > "$out/$(basename $test).txt" 2>&1 || status=$?
  echo "$(basename $test): $(tail -n 1 "$out/$(basename $test).txt")"
done
silc=build/cuda/bin/silc
$silc bench train g1-loco --backend cuda --method baseline,silc | tee "$out/bench_train.jsonl"
$silc bench penalty --device cuda | tee "$out/bench_penalty.jsonl"
[[ $# -gt 0 ]] || exit $status

export CUDA_MPS_PIPE_DIRECTORY=$out/mps CUDA_MPS_LOG_DIRECTORY=$out/mps OMP_NUM_THREADS=1
mkdir -p "$out/mps"
nvidia-cuda-mps-control -d && trap 'echo quit | nvidia-cuda-mps-control; rm -rf "$out/mps"' EXIT
$silc sweep configs/sweep.yaml --backend cuda --threads 2 --collect "$out/policies" "$@" || status=$?
tar -C runs/sweep -czf "$out/logs.tgz" --exclude=checkpoints .
exit $status
