#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `./dev demo` shows, after the build: a policy made on the spot, observed standing, pushed and measured.
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

say "Open $out/stand.svg in a browser. Your own policy: build/release/bin/silc observe POLICY.onnx --help"
