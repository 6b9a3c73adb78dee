#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a GPU machine: builds silc with its trainer, runs the tests that need a GPU, the benchmarks of training with PyTorch's
# own ways beside ours, and then a sweep; what they print, the finished policies and their logs go to a folder.
#   tools/gpu/learn.sh FOLDER [words for tools/gpu/sweep.sh behind the folder, such as 400 configs/sweep.yaml --jobs 5]
set -euo pipefail
out=$(mkdir -p "${1:?usage: tools/gpu/learn.sh FOLDER [words for silc sweep]}" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
. tools/gpu/environment.sh
tools/gpu/build.sh programs learn_gpu_tests task_cuda_tests
status=0
for test in learn/learn_gpu_tests task/task_cuda_tests; do
  build/cuda/silc/$test > "$out/$(basename $test).txt" 2>&1 || status=$?
  echo "$(basename $test): $(tail -n 1 "$out/$(basename $test).txt")"
done
silc=build/cuda/bin/silc
$silc bench train g1-loco --backend cuda --method baseline,silc | tee "$out/bench_train.jsonl"
$silc bench penalty --device cuda | tee "$out/bench_penalty.jsonl"
[[ $# -eq 0 ]] || tools/gpu/sweep.sh "$out" "$@" || status=$?
exit $status
