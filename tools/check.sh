#!/bin/bash
# check.sh [JOBS]: all that can be said of the sources without running them. Goes through every check before it ends,
# so that one call shows all there is to fix. Needs build/lint to be configured (make check does that).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
jobs=${1:-$(nproc)}
failed=()

# check NAME COMMAND...
check() {
  local name=$1 start=$SECONDS
  shift
  if "$@"; then
    echo "check: $name ok ($((SECONDS - start)) s)"
  else
    echo "check: $name FAILED"
    failed+=("$name")
  fi
}

# Files that git knows or would know: not those that it ignores.
files() {
  git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do
    [ ! -f "$file" ] || echo "$file"
  done
}

format() { files '*.cc' '*.h' | xargs -r clang-format-16 --dry-run -Werror; }
shell_syntax() {
  local file status=0
  while read -r file; do
    bash -n "$file" || status=1
  done < <(files '*.sh' .ci/run)
  return $status
}
python_syntax() {
  local out
  out=$(mktemp -d)
  files '*.py' | PYTHONPYCACHEPREFIX=$out xargs -r python3 -m py_compile
  local status=$?
  rm -rf "$out"
  return $status
}

check "format (make format mends it)" format
check "shell scripts" shell_syntax
check "python scripts" python_syntax
check tidy python3 tests/tidy.py
check "config reference" tools/config_reference.py --check
check lint python3 tools/lint.py build/lint "$jobs"

if [ ${#failed[@]} -gt 0 ]; then
  echo "check: failed: ${failed[*]}"
  exit 1
fi
