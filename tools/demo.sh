#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `./dev demo` shows, after the build. Each step prints what it does, the numbers that matter
# and where picture and tables are; what silc itself prints goes to out/demo/*.txt.
#   tools/demo.sh [--train]   --train: the two policies of step 4 are trained here and now, some
#                             seven minutes on two cores
set -euo pipefail
cd "$(dirname "$0")/.."
out=out/demo
mkdir -p "$out"
silc=build/release/bin/silc

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# quietly FILE COMMAND...: the command's output goes to FILE, and to the terminal if it fails
quietly() {
  local file=$1
  shift
  "$@" >"$file" || {
    cat "$file"
    echo "failed: $*" >&2
    exit 1
  }
}

numbers() { python3 tools/demo_numbers.py "$@"; }

say "1. A policy to look at: a standing regulator for the G1, written as ONNX"
quietly "$out/policy.txt" build/release/examples/stand_policy "$out/stand.onnx" g1
sed 's/^/   /' "$out/policy.txt"

say "2. How stiff does it make the robot? Five seconds in MuJoCo, every control step observed"
quietly "$out/stand.txt" $silc observe "$out/stand.onnx" --robot g1 --rollout 5 --mode soft-hand \
  --json "$out/stand.json" --csv "$out/stand.csv" --plot "$out/stand.svg"
numbers observe "$out/stand.json"
echo "   picture $out/stand.svg, tables $out/stand.txt"

say "3. Is that true? Push the left hand and measure"
quietly "$out/push.txt" $silc observe "$out/stand.onnx" --robot g1 --shake left-hand --forces 2,5,10 \
  --json "$out/push.json"
numbers shake "$out/push.json"
echo "   tables $out/push.txt"

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
say "4. Trained in minutes, under a budget and without: 100 robots, pushed from all sides for 20 s"
quietly "$out/pushes.txt" $silc eval stand --observe-every 20 --json "$out/pushes.jsonl" \
  --policy "$quick/g1_stand_silc.onnx" "$quick/g1_stand_baseline.onnx"
numbers stand "$out/pushes.jsonl"
echo "   tables $out/pushes.txt"

say "5. A policy trained without a bound, walking: five seconds at 0.5 m/s"
quietly "$out/walk.txt" $silc observe policies/g1_loco_baseline.onnx --robot g1 --rollout 5 \
  --command 0.5,0,0 --json "$out/walk.json" --plot "$out/walk.svg"
numbers observe "$out/walk.json"
echo "   picture $out/walk.svg, tables $out/walk.txt"

say "6. Two that walk, stepping on the spot, the first trained under the budget: does it hold?"
quietly "$out/budget.txt" $silc eval budget --json "$out/budget.jsonl" --plot "$out/budget.svg" \
  --policy policies/g1_loco_silc_compliance.onnx policies/g1_loco_baseline.onnx
numbers budget "$out/budget.jsonl"
echo "   picture $out/budget.svg, tables $out/budget.txt"

say "7. The paper's experiments on the shipped policies, with fewer robots than the paper's"
quietly "$out/report.txt" $silc report --quick --policies policies --out out/report
tail -n 2 "$out/report.txt" | sed 's/^/   /'

say "Open $PWD/out/report/index.html in a browser, and the pictures of $out beside it."
echo "Train the two of step 4 yourself: ./dev demo --train. Where to go from here: README.md."
# a build without Boost or three.js has no viewer
if $silc view --help >/dev/null 2>&1; then
  echo "Push the robots yourself, in a browser: this prints an address, open it."
  echo "  $silc view"
fi
