#!/bin/bash
# fuzz.sh BUILD_DIR SECONDS [NAME...]: runs each libFuzzer program of BUILD_DIR/fuzzers for SECONDS, or only the named
# ones. It starts from tests/fuzz/corpus/NAME; what it learns goes to BUILD_DIR/corpus/NAME, and a finding to
# BUILD_DIR/found/. Ends with how many inputs each tried; exit code 1 if there was a finding.
set -euo pipefail
build=$1 seconds=$2
shift 2
[ $# -gt 0 ] || set -- $(find "$build/fuzzers" -maxdepth 1 -type f -executable -printf '%f\n' | sort)
[ $# -gt 0 ] || { echo "fuzz: no fuzzers in $build/fuzzers; build them with: make fuzz" >&2; exit 2; }
mkdir -p "$build/found"

failed=0
summary=()
for name in "$@"; do
  echo "fuzz: $name for $seconds s"
  mkdir -p "$build/corpus/$name" "tests/fuzz/corpus/$name"
  log=$build/found/$name.log
  if "$build/fuzzers/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="$build/found/$name-" \
    "$build/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    verdict="no finding"
  else
    verdict="FOUND something: see $log and $build/found/$name-*"
    failed=1
    tail -n 40 "$log"
  fi
  tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  summary+=("$(printf '  %-24s %12s inputs  %s' "$name" "${tried:-?}" "$verdict")")
done
echo "fuzz: done"
printf '%s\n' "${summary[@]}"
exit $failed
