#!/bin/bash
# demo.sh BUILD_DIR: makes up a click log, trains a model of it with two servers and two workers, and tries that on
# clicks it has not seen. Leaves nothing behind, however it ends.
set -euo pipefail
pscloud=$(cd "$1" && pwd)/pscloud
cd "$(dirname "$0")/.."
examples=$PWD/examples/linear/clicks
count=${DEMO_EXAMPLES:-1000000}  # a test takes few

bold="" dim="" plain=""
if [ -t 1 ] || [ -n "${FORCE_COLOR:-}" ]; then bold=$'\e[1;36m' dim=$'\e[2m' plain=$'\e[0m'; fi
step() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
say() { printf '%s   %s%s\n' "$dim" "$1" "$plain"; }
# run COMMAND...: shows it, then what it says.
run() {
  printf '   $ pscloud %s\n' "$*"
  "$pscloud" "$@" | sed 's/^/   /'
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$folder"

step "1. A click log"
say "who clicks is drawn by a model that is known, so the best possible result is known too"
run data generate train --examples "$count" --keys 1e5 --files 4
run data generate test --examples $((count / 10)) --keys 1e5 --seed 2

step "2. What to train: examples/linear/clicks/train.conf"
cp "$examples/train.conf" "$examples/test.conf" .
sed 's/^/   /' train.conf

step "3. Two servers hold the weights, two workers share the files"
run train train.conf --servers 2 --workers 2
say "each example was scored before the model learned from it: the columns are honest"

step "4. The model on clicks it has not seen"
run evaluate test.conf
best=$("$pscloud" data generate test --examples $((count / 10)) --keys 1e5 --seed 2 --json)
ours=$("$pscloud" evaluate test.conf --json)
python3 - "$best" "$ours" <<'PYTHON'
import json, sys
best, ours = map(json.loads, sys.argv[1:])
print(f"   {'':10} {'ours':>8} {'best possible':>14}")
for name, digits in (("auc", 4), ("logloss", 4)):
    print(f"   {name:10} {ours[name]:8.{digits}f} {best['best_' + name]:14.{digits}f}")
PYTHON

step "5. The adder: 2 workers push ones to 2 servers and pull the sums"
run bench adder --servers 2 --workers 2 --size-mb 10 --iters 20
say "every value was checked: iterations x workers"

step "Next"
say "pscloud train --help   more about training"
say "make test              proves it, thousands of broken networks in a simulator among the rest"
say "README.md              how to write a worker"
