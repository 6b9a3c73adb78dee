#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gathers in FOLDER, which git must ignore, what a GPU machine needs besides the tracked files: the Debian packages that silc
# builds against (stage.tar.xz, of tools/gpu/stage.sh), MuJoCo (mujoco.tar.xz) and, where BROUGHT is named, the checkpoints
# and settings that an earlier tools/gpu/sweep.sh wrote there (FOLDER/brought).
#   tools/gpu/pack.sh FOLDER [BROUGHT]      such as out/pack; elsewhere PACK=FOLDER tells the scripts there where it lies
# On the GPU machine tools/gpu/build.sh and the others unpack it into .deps; tools/gpu/restore.sh FOLDER/brought does the rest.
# It prints what all of it weighs, tracked files included, and fails where that is more than LIMIT bytes (64 MiB). The shipped
# policies are most of the tracked files; neither building nor training reads them:
#   git switch -c carry && git rm -rq policies && git commit -qm 'policies stay at home'
set -euo pipefail
out=$(mkdir -p "${1:?usage: tools/gpu/pack.sh FOLDER [BROUGHT]}" && cd "$1" && pwd)
brought=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/../.."
if [[ $out == "$PWD"/* ]] && ! git check-ignore -q "$out/stage.tar.xz"; then
  echo "tools/gpu/pack.sh: git does not ignore $out: it would be carried twice; out/pack is ignored" >&2
  exit 2
fi
mujoco=mujoco-$(head -n 1 tools/setup/mujoco.version)
if [[ ! -e .deps/$mujoco ]]; then
  echo "tools/gpu/pack.sh: no .deps/$mujoco; ./dev setup fetches it" >&2
  exit 1
fi
[[ -d .deps/stage ]] || tools/gpu/stage.sh >/dev/null
tar -C .deps -cf - stage | xz -T0 >"$out/stage.tar.xz"
tar -C .deps --dereference -cf - "$mujoco" | xz -T0 >"$out/mujoco.tar.xz"
rm -rf "$out/brought"
if [[ $brought ]]; then
  mkdir "$out/brought"
  cp "$brought"/checkpoints.tgz.* "$brought/logs.tgz" "$out/brought/"
fi

# bytes of the files that git would hand over: tracked, or new and not ignored
weigh() { git ls-files -z --cached --others --exclude-standard -- "$@" | xargs -0r stat -c %s 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }'; }
tree=$(weigh .) policies=$(weigh policies) packed=$(find "$out" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')
sum=$((tree + packed)) limit=${LIMIT-67108864}
awk -v tree="$tree" -v policies="$policies" -v packed="$packed" -v sum="$sum" -v limit="$limit" 'BEGIN {
  printf "tree %.1f MB, of them policies %.1f MB; packed %.1f MB; together %.1f of %.1f MB\n",
    tree / 1e6, policies / 1e6, packed / 1e6, sum / 1e6, limit / 1e6 }'
if ((sum > limit)); then
  echo "tools/gpu/pack.sh: more than the limit (LIMIT); this file says how to leave policies/ out" >&2
  exit 1
fi
