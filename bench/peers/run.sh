#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# silc beside its peers on this machine, in one run: physics beside mujoco_warp, an update beside PyTorch's ways, whole
# iterations beside mjlab with rsl_rl. JSON lines. Needs a GPU, build/cuda (tools/gpu/build.sh silc) and the network once:
# the peers come from PyPI into .deps/peers-venv (6.6 GB).
#   bench/peers/run.sh OUT.jsonl                  PEERS_PYTHON=... before it takes a Python that has them already
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?bench/peers/run.sh: name the file for the results, such as out/peers.jsonl}
silc=${SILC:-build/cuda/bin/silc}
if [[ ! -x $silc ]]; then
  echo "bench/peers/run.sh: no $silc; tools/gpu/build.sh silc makes it" >&2
  exit 1
fi
python=${PEERS_PYTHON-}
if [[ -z $python ]]; then
  venv=.deps/peers-venv
  if ! cmp -s bench/peers/requirements.txt $venv/installed; then
    python3 -m venv $venv
    $venv/bin/pip install --quiet --disable-pip-version-check --requirement bench/peers/requirements.txt
    cp bench/peers/requirements.txt $venv/installed
  fi
  python=$venv/bin/python
fi
mkdir -p "$(dirname "$out")"
: >"$out"
measure() {
  echo "bench/peers/run.sh: $*" >&2
  "$@" >>"$out" || echo "bench/peers/run.sh: that failed; the rest goes on" >&2
}
measure "$silc" bench physics --backend cuda --envs 4096 16384 65536
measure "$python" bench/peers/warp_physics.py --envs 4096 16384 65536
measure "$silc" bench train g1-loco --backend cuda --method baseline,silc --envs 4096
measure "$silc" bench train g1-loco --backend cuda --method baseline,silc --envs 16384
measure "$python" bench/peers/mjlab_train.py --envs 4096 16384
measure "$silc" bench penalty --device cuda --python "$python"
python3 - "$out" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
wanted = ("physics.steps_per_s", "train.env_steps_per_s", "train.iteration_steps_per_s", "train.update_ms", "penalty.update_ms")
for row in rows:
    if row.get("name") in wanted:
        what = [str(row[key]) for key in ("who", "method", "way", "envs", "friction_loss") if key in row]
        value = row.get("error") if row.get("value") is None else f"{row['value']:,.4g}"
        print(f"{row['name']:30s} {value:>14s}  {'  '.join(what)}")
PY
