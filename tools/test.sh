#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Runs the three suites of a build one after another, lit, GoogleTest and pytest, on all cores, and ends with each runner's
# own summary. Usage: tools/test.sh BUILD [pytest arguments...]. Fails when any of them fails, after all have run.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
jobs=$(nproc)
logs=$build/test-logs
mkdir -p "$logs"
failed=0

# run NAME COMMAND...: the command's output goes to the terminal and to a log.
run() {
  local name=$1
  shift
  echo "== $name"
  "$@" 2>&1 | tee "$logs/$name.log" || failed=1
}

run lit .venv/bin/lit -j "$jobs" -s "$build/test"
run ctest ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error
# (A build with sanitizers cannot be loaded by an ordinary Python.)
if ! grep -q '^WEFT_SANITIZE:BOOL=ON' "$build/CMakeCache.txt"; then
  native=$(sed -n 's/^WEFT_NATIVE_DIR:PATH=//p' "$build/CMakeCache.txt")
  run pytest env WEFT_NATIVE_DIR="$native" .venv/bin/python -m pytest -n "$jobs" "$@"
fi

echo
echo "== summaries"
sed -n '/^Total Discovered Tests/,$p' "$logs/lit.log"
sed -n '/tests passed/,$p' "$logs/ctest.log"
[ -e "$logs/pytest.log" ] && grep -E '^=+ .* in [0-9.]+s.*=+$' "$logs/pytest.log" | tail -n 1
exit $failed
