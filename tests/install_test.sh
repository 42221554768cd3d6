#!/bin/bash
# Installs the build of $PSCLOUD_BUILD into a temporary folder and uses it from there, as a user would: the binary
# answers, and a program of ten lines of CMake finds the package, builds and runs.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$PSCLOUD_BUILD" --prefix "$folder/prefix" >/dev/null
"$folder/prefix/bin/pscloud" version
[ "$(readlink "$folder/prefix/bin/psd_run")" = pscloud ] || { echo "psd_run is no link to pscloud"; exit 1; }
"$folder/prefix/bin/psd_run" -h | grep -q 'cluster_config' || { echo "psd_run does not know itself"; exit 1; }
# A copy, so that nothing of the repository is found by accident.
cp -r "$source/tests/install" "$folder/consumer"
cmake -S "$folder/consumer" -B "$folder/build" -G Ninja -DCMAKE_PREFIX_PATH="$folder/prefix" --log-level=NOTICE
cmake --build "$folder/build"
said=$("$folder/build/consumer")
[ "$said" = "1 2" ] || { echo "the consumer said '$said', not '1 2'"; exit 1; }
echo "install: ok"
