#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# sweep.sh and restore.sh with stand-ins for silc and for NVIDIA's MPS: what is brought back, in which order, what is said.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'kill $(cat "$scratch"/*/runs/gpu_list/pid 2>/dev/null) 2>/dev/null || true; rm -rf "$scratch"' EXIT
export POLL=0.1 EVERY=1

# A tree with the scripts, a list and stand-ins; the test goes on in it.
tree() {
  mkdir -p "$scratch/$1/tools/gpu" "$scratch/$1/tools/setup" "$scratch/$1/bin"
  cd "$scratch/$1"
  cp "$source"/{sweep,restore,environment}.sh tools/gpu/
  cp "$source/../setup/mujoco.version" tools/setup/
  cat >list.yaml <<'LIST'
folder: runs/mine
rows:
  - {name: start}
  - {name: a, seeds: [1, 2], from: start}
  - {name: b, from: start}
LIST
  # It "trains" until it is asked to stop: every run in the file `runs` has a checkpoint at its iteration, of 100.
  cat >bin/silc <<'SILC'
#!/usr/bin/env bash
echo "$*" >>asked
if [[ $1 == export ]]; then
  cp "$2" "$3"
elif [[ $* == *--list* ]]; then
  echo 'row   seed  method  budget  iteration  of  reward  state'
  while read -r row seed iteration state; do
    echo "$row  $seed  silc  compliance  $iteration  100  0.1  ${state//_/ }"
    if [[ $state == done && $row != start && $seed == 1 ]]; then
      echo "$row" >"${*: -1}/$row.onnx"
      collected+="$row-seed$seed: ${*: -1}/$row.onnx, 1.90 MB"$'\n'
    fi
  done <runs.txt
  echo -n "${collected-}"
else
  trap 'echo "   0 min 02 s  stopping"; kill $!; exit 0' TERM
  while read -r row seed iteration state; do
    run=runs/mine/$row-seed$seed
    if [[ -e $run ]]; then continue; fi
    mkdir -p "$run/checkpoints"
    printf 'task: g1-loco\nlearn:\n  iterations: 100\n' >"$run/config.yaml"
    echo "commit: x" >"$run/run.yaml"
    head -c 1000 /dev/urandom >"$run/checkpoints/checkpoint_$(printf %08d "$iteration").silc"
    echo older >"$run/checkpoints/checkpoint_$(printf %08d $((iteration - 10))).silc"
    for i in {1..60}; do echo "{\"iteration\": $i}"; done >"$run/metrics.jsonl"
    echo "$row" >"$run/policy.onnx"
    if [[ $state == failed* ]]; then echo "   0 min 01 s  $row-seed$seed: failed: out of memory ($run.log)"; fi
  done <runs.txt
  touch runs/mine/trained
  sleep 60 &
  wait $!
fi
SILC
  # MPS whose daemon runs already, but does not answer questions
  printf '#!/usr/bin/env bash\n[[ ${1-} == -d ]] && echo "An instance of this daemon is already running"\nexit 1\n' >bin/nvidia-cuda-mps-control
  chmod +x bin/*
  PATH=$scratch/$1/bin:$PATH
}
sweep() { SILC=bin/silc BACKEND=batch tools/gpu/sweep.sh "$@" >said 2>&1; }
fail() {
  echo "sweep_test.sh: $*" >&2
  echo "--- said:" >&2
  cat said >&2
  exit 1
}
expect() { grep -qF -- "$1" said || fail "'$1' was not said"; }
until_there() { for _ in $(seq 300); do if [[ -e $1 ]]; then return; fi; sleep 0.1; done; fail "$1 did not come"; }
names() { cat "$1"/"$2".tgz* | tar -tzf - | sed -n 's|^\./||; /[^/]$/p' | sort | paste -sd ' '; }

tree first
printf '%s\n' 'start 1 100 done' 'a 1 40 somebody_else_trains_it' 'a 2 100 done' 'b 1 60 somebody_else_trains_it' >runs.txt

# what tools/gpu/pack.sh gathered is unpacked once, wherever a script of a GPU machine begins
mujoco=mujoco-$(head -n 1 tools/setup/mujoco.version)
mkdir -p out/pack gathered/stage/usr/bin "gathered/$mujoco"
echo new >"gathered/$mujoco/libmujoco.so"
tar -C gathered -cJf out/pack/stage.tar.xz stage
tar -C gathered -cJf out/pack/mujoco.tar.xz "$mujoco"

# what others start from, then the farthest that is unfinished; the rest is named; the words reach --list, too
sweep out/one 0 list.yaml --jobs 5 learn.x=1 || fail "exit code $?"
[[ -d .deps/stage/usr/bin && $(cat ".deps/$mujoco/libmujoco.so") == new && ! -e .deps/unpack ]] || fail "not unpacked: $(find .deps)"
grep -q 'no MPS' said && fail "MPS was there"
until_there runs/mine/trained
ROOM=2500 sweep out/one 0 list.yaml --jobs 5 learn.x=1 || fail "exit code $?"
expect "2 of 4 done"
expect "checkpoints of: start-seed1 b-seed1; left out: a-seed1 a-seed2; the sweep runs on: call again"
grep -qF 'sweep list.yaml --backend batch --threads 2 --jobs 5 learn.x=1 --retries 1' asked || fail "started otherwise: $(cat asked)"
grep -qF 'sweep list.yaml --backend batch --threads 2 --jobs 5 learn.x=1 --list --collect' asked || fail "listed otherwise: $(cat asked)"
got=$(names out/one checkpoints)
[[ $got == "runs/mine/b-seed1/checkpoints/checkpoint_00000060.silc runs/mine/start-seed1/checkpoints/checkpoint_00000100.silc" ]] || fail "checkpoints: $got"
got=$(names out/one policies)
[[ $got == "policies/a-seed1.onnx policies/a-seed2.onnx policies/b-seed1.onnx policies/start-seed1.onnx" ]] || fail "policies: $got"
[[ $(tar -xzOf out/one/logs.tgz logs/a-seed1/metrics.jsonl | wc -l) == 4 ]] || fail "every 25th line of 60, and the last"

# other words are refused while it runs
sweep out/one 1 list.yaml --jobs 4 && fail "other words were taken"
expect "a sweep of other words runs: list.yaml --jobs 5 learn.x=1"

# a call that is cut has brought what there was; a row that is done replaces what was exported of it
sed -i 's/^a 1 .*/a 1 100 done/' runs.txt
SILC=bin/silc BACKEND=batch tools/gpu/sweep.sh out/cut 60 list.yaml --jobs 5 learn.x=1 >said 2>&1 &
cut=$!
until_there out/cut/checkpoints.tgz.aa
kill -KILL $cut
wait $cut 2>/dev/null || true
[[ $(names out/cut policies) == *"policies/a.onnx policies/b-seed1.onnx"* ]] || fail "policies of the cut call: $(names out/cut policies)"
[[ $(names out/cut checkpoints | wc -w) == 4 ]] || fail "checkpoints of the cut call"

# no more files than may come back, those of others counted
mkdir -p out/full
touch out/full/{1,2}.txt
FILES=4 sweep out/full 0 list.yaml --jobs 5 learn.x=1 || fail "exit code $?"
expect "in 4 files, checkpoints of: none; left out: start-seed1 b-seed1 a-seed1 a-seed2"

# STOP ends it
STOP=1 sweep out/one 20 list.yaml --jobs 5 learn.x=1 || fail "exit code $?"
expect "the sweep is over"

# a fresh machine goes on with what was brought, and brings first what is new
brought=$scratch/first/out/one
STOP=1 ROOM=2500 sweep out/one 20 list.yaml --jobs 5 learn.x=1
tree second
tools/gpu/restore.sh "$brought" list.yaml >said 2>&1 || fail "restore: exit code $?"
expect "put back: b-seed1 start-seed1; there already: none; without a checkpoint: a-seed1 a-seed2"
[[ $(cd runs/mine && find . -type f | sort | paste -sd ' ') == "./b-seed1/checkpoints/checkpoint_00000060.silc ./b-seed1/config.yaml ./b-seed1/restored ./b-seed1/run.yaml ./start-seed1/checkpoints/checkpoint_00000100.silc ./start-seed1/config.yaml ./start-seed1/restored ./start-seed1/run.yaml" ]] || fail "$(find runs)"
cmp runs/mine/b-seed1/checkpoints/*.silc "$scratch"/first/runs/mine/b-seed1/checkpoints/checkpoint_00000060.silc
echo mine >runs/mine/b-seed1/config.yaml
tools/gpu/restore.sh "$brought" list.yaml >said 2>&1 || fail "restore: exit code $?"
expect "put back: none; there already: b-seed1 start-seed1;"
[[ $(cat runs/mine/b-seed1/config.yaml) == mine ]] || fail "a run that was there was changed"
printf '%s\n' 'start 1 100 done' 'a 1 40 failed,_see_a.log' 'b 1 60 stopped' >runs.txt
sweep out 0 list.yaml || true
until_there runs/mine/trained
ROOM=1500 sweep out 0 list.yaml && fail "a row failed, and the exit code is 0"
expect "FAILED: a-seed1"
expect "checkpoints of: a-seed1; left out: start-seed1 b-seed1"
tools/gpu/restore.sh "$scratch/second" list.yaml >said 2>&1 && fail "nothing to put back"
expect "has no logs.tgz"
head -c 500 "$brought/checkpoints.tgz.aa" >out/checkpoints.tgz.aa
tools/gpu/restore.sh out list.yaml >said 2>&1 && fail "an archive that is cut was taken"
expect "cannot be unpacked; nothing was put back"
[[ $(find runs/mine -name '.restore*' | wc -l) == 0 ]] || fail "scratch is left"
STOP=1 sweep out 20 list.yaml || true
expect "the sweep is over"
echo "sweep_test.sh: passed"
