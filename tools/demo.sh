#!/bin/bash
# demo.sh BUILD_DIR: a small cluster on this machine, explained: 1 scheduler, 2 servers and 3 workers as processes over
# mutual TLS run the linear regression of examples/, then the adder. Leaves nothing behind, however it ends.
set -euo pipefail
build=$(cd "$1" && pwd)
pscloud=$build/pscloud
example=$build/examples/linear_regression

bold="" dim="" plain=""
if [ -t 1 ] || [ -n "${FORCE_COLOR:-}" ]; then bold=$'\e[1;36m' dim=$'\e[2m' plain=$'\e[0m'; fi
step() { printf '\n%s== %s%s\n' "$bold" "$1" "$plain"; }
say() { printf '%s   %s%s\n' "$dim" "$1" "$plain"; }

folder=$(mktemp -d)
pids=()
clean_up() {
  local status=$?
  trap - EXIT
  [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  if [ $status -ne 0 ]; then
    printf 'demo: failed; the last lines of each node:\n' >&2
    tail -n 5 "$folder"/*.err >&2 2>/dev/null || true
  fi
  rm -rf "$folder"
  exit $status
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start NAME COMMAND...: in the background, with the certificate of NAME; stdout to NAME.out, stderr to NAME.err.
start() {
  local name=$1
  shift
  env PSCLOUD_TLS_DIR="$folder/tls/$name" "$@" >"$folder/$name.out" 2>"$folder/$name.err" </dev/null &
  pids+=($!)
}

# field NAME KEY: waits for the line of JSON that a node prints when it listens, and gives one field of it.
field() {
  python3 - "$folder/$1.out" "$2" <<'PYTHON'
import json, sys, time
path, key = sys.argv[1:]
deadline = time.monotonic() + 20
while time.monotonic() < deadline:
    line, end, _ = open(path).read().partition("\n")
    if end:
        print(json.loads(line)[key])
        sys.exit(0)
    time.sleep(0.02)
sys.exit(f"demo: nothing in {path} after 20 s")
PYTHON
}

# wait_for WHAT PID...: until they have ended, well.
wait_for() {
  local what=$1 pid
  shift
  for pid in "$@"; do
    wait "$pid" || { echo "demo: a $what ended with exit code $?" >&2; exit 1; }
  done
}

step "1. A certificate authority for this cluster"
"$pscloud" ca init "$folder/ca" --cluster demo >/dev/null
for name in scheduler-0 server-0 server-1 worker-0 worker-1 worker-2; do
  "$pscloud" ca issue "$folder/ca" --role "${name%-*}" --name "$name" --out "$folder/tls/$name" >/dev/null
done
say "6 certificates; each names its role. Who has none, or another cluster's, gets nothing."

step "2. One scheduler and two servers"
start scheduler-0 "$pscloud" node --role scheduler --scheduler 127.0.0.1:0 --servers 2 --workers 3 \
  --http 127.0.0.1:0 --json
scheduler=$(field scheduler-0 address)
http=$(field scheduler-0 http_address)
say "the scheduler listens on $scheduler; it took a free port"
export PSCLOUD_SCHEDULER=$scheduler
# The example brings an updater of its own, so its servers are the example's program too.
for rank in 0 1; do start "server-$rank" env PSCLOUD_ROLE=server "$example"; done
others=${#pids[@]}
say "no workers yet: nodes start in any order, and who comes early waits. http://$http/status says:"
python3 - "http://$http/status" <<'PYTHON'
import json, sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback needs no proxy
deadline = time.monotonic() + 20
while True:
    status = json.load(opener.open(sys.argv[1], timeout=5))
    # Until both servers have joined: this is to show them.
    if len(status["nodes"]) == 2 or time.monotonic() > deadline:
        break
    time.sleep(0.02)
print(f"   {status['phase']}, waits for {status['waiting_for']}")
for node in status["nodes"]:
    print(f"   {node['role']:9} {node['state']:9} {node['address']}")
PYTHON

step "3. Three workers: linear regression, examples/linear_regression.cc"
say "each has data of its own, made from the weights 2 -1 0.5 3 and noise; the servers update by the example's updater"
for rank in 0 1 2; do start "worker-$rank" env PSCLOUD_ROLE=worker "$example"; done
wait_for worker "${pids[@]:$others}"
sed 's/^/   /' "$folder"/worker-*.out  # the one of rank 0 tells
wait_for "server or scheduler" "${pids[@]:0:$others}"
pids=()
say "the workers were done, so servers and scheduler ended by themselves, all with exit code 0"

step "4. The adder: 2 workers push ones to 2 servers and pull the sums"
"$pscloud" bench adder --servers 2 --workers 2 --size-mb 10 --iters 20 | sed 's/^/   /'
say "every value was checked: iterations x workers"

step "Next"
say "make test          proves it, thousands of broken networks in a simulator among the rest"
say "README.md          how to write a worker"
