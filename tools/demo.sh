#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `./dev demo` shows, after the build: a policy made on the spot, observed standing, pushed and measured; then a
# trained one that walks; one trained under a stiffness budget beside it; in the end the report, the paper's tables and
# figures beside ours.
set -euo pipefail
cd "$(dirname "$0")/.."
out=out/demo
mkdir -p "$out"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "1. A policy to look at: a standing regulator for the G1, written as ONNX"
build/release/examples/stand_policy "$out/stand.onnx" g1

say "2. How stiff does it make the robot? Five seconds in MuJoCo, every control step observed"
build/release/bin/silc observe "$out/stand.onnx" --robot g1 --rollout 5 --mode soft-hand \
  --json "$out/stand.json" --csv "$out/stand.csv" --plot "$out/stand.svg"

say "3. Is that true? Push the hand and measure"
build/release/bin/silc observe "$out/stand.onnx" --robot g1 --shake hand --forces 2,5,10 |
  sed -n '/^Shaking/,$p'

say "4. A trained policy, walking: five seconds at 0.5 m/s"
build/release/bin/silc observe policies/g1_loco_baseline.onnx --robot g1 --rollout 5 --command 0.5,0,0 \
  --json "$out/walk.json" --plot "$out/walk.svg"

say "5. Two trained policies stepping on the spot, one of them under a stiffness budget: does it hold?"
build/release/bin/silc eval budget --policy policies/g1_loco_silc_compliance.onnx policies/g1_loco_baseline.onnx \
  --mode compliance --hold-gravity --plot "$out/budget.svg"

say "6. The paper's experiments on the shipped policies, quickly: fewer robots than the paper's"
build/release/bin/silc report --quick --policies policies --out out/report

say "Open $PWD/out/report/index.html in a browser: the report. Beside it $out/stand.svg, $out/walk.svg and $out/budget.svg."
echo "Your own policy: build/release/bin/silc observe POLICY.onnx --help; the full report: build/release/bin/silc report"
