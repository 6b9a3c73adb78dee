#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A commanded policy of silc and SoftMimic's released one, swept the same way, in one figure.
#   tools/peer/beside_softmimic.sh CLONE POLICY.onnx OUT.svg [OPTIONS OF silc eval knob]
#     CLONE    folder of robodreamer/softmimic
#     SILC     the program [build/release/bin/silc]; PYTHON with PyTorch and silc's package [python3]
# Both results stay beside the figure, as OUT.silc.json and OUT.softmimic.json.
set -euo pipefail
usage='tools/peer/beside_softmimic.sh CLONE POLICY.onnx OUT.svg [OPTIONS OF silc eval knob]'
clone=${1:?$usage} policy=${2:?$usage} out=${3:?$usage}
shift 3
here="$(cd "$(dirname "$0")" && pwd)"
silc=${SILC:-$here/../../build/release/bin/silc} python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# their policy as silc takes it, and the robot with the joint friction that it was trained with
"$python" "$here/softmimic.py" "$clone" "$work/stand.onnx" --robot "$work/g1_friction"
"$silc" export "$work/stand.onnx" "$work/softmimic.onnx" --mode "$here/softmimic_budget.yaml"
base=${out%.svg}
# each on the robot of its own training
"$silc" eval knob --policy "$policy" --json "$base.silc.json" "$@"
"$silc" eval knob --policy "$work/softmimic.onnx" --robot "$work/g1_friction/robot.yaml" --json "$base.softmimic.json" "$@"
"$python" "$here/knob_figure.py" "$base.silc.json" "$base.softmimic.json" \
  --labels "silc (told a bound),SoftMimic (told a target)" --out "$out"
