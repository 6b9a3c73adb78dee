#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `./dev demo` shows, after the build: a policy made on the spot, observed standing, pushed and measured; two that
# were trained in minutes, one of them under a stiffness budget, side by side; one that walks, and one that walks under
# a budget; in the end the report, the paper's tables and figures beside ours.
#   tools/demo.sh [--train]   --train: the two of the quick start are trained here and now, some seven minutes on two cores
set -euo pipefail
cd "$(dirname "$0")/.."
out=out/demo
mkdir -p "$out"
silc=build/release/bin/silc

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "1. A policy to look at: a standing regulator for the G1, written as ONNX"
build/release/examples/stand_policy "$out/stand.onnx" g1

say "2. How stiff does it make the robot? Five seconds in MuJoCo, every control step observed"
$silc observe "$out/stand.onnx" --robot g1 --rollout 5 --mode soft-hand \
  --json "$out/stand.json" --csv "$out/stand.csv" --plot "$out/stand.svg"

say "3. Is that true? Push the hand and measure"
$silc observe "$out/stand.onnx" --robot g1 --shake hand --forces 2,5,10 |
  sed -n '/^Shaking/,$p'

quick=policies/quick
if [[ ${1:-} == --train ]]; then
  quick=$out/quick
  mkdir -p "$quick"
  for method in baseline silc; do
    say "   Training: silc train g1-stand --preset quick --method $method"
    rm -rf "$out/runs/$method"
    $silc train g1-stand --preset quick --method "$method" --out "$out/runs/$method"
    cp "$out/runs/$method/policy.onnx" "$quick/g1_stand_$method.onnx"
  done
fi
say "4. Trained in minutes on two cores, without a bound and under one: who stands through pushes, who keeps the budget?"
$silc eval stand --policy "$quick/g1_stand_silc.onnx" "$quick/g1_stand_baseline.onnx" --observe-every 20

say "5. A trained policy, walking: five seconds at 0.5 m/s"
$silc observe policies/g1_loco_baseline.onnx --robot g1 --rollout 5 --command 0.5,0,0 \
  --json "$out/walk.json" --plot "$out/walk.svg"

say "6. Two that walk, stepping on the spot, one of them under a stiffness budget: does it hold?"
$silc eval budget --policy policies/g1_loco_silc_compliance.onnx policies/g1_loco_baseline.onnx \
  --plot "$out/budget.svg"

say "7. The paper's experiments on the shipped policies, quickly: fewer robots than the paper's"
$silc report --quick --policies policies --out out/report

say "Open $PWD/out/report/index.html in a browser: the report. Beside it $out/stand.svg, $out/walk.svg and $out/budget.svg."
echo "Train the two of step 4 yourself: ./dev demo --train. Your own policy: $silc observe POLICY.onnx --help; the full report: $silc report"
