#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Runs the three suites of a build one after another, lit, GoogleTest and pytest, on all cores, and ends with each runner's
# own summary. Usage: tools/test.sh BUILD [--ecosystem] [pytest arguments...]. With --ecosystem the tests beside other
# libraries come after, those that are not slow, once they are installed. Fails when any of them fails, after all have run.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
ecosystem=
if [ "${1:-}" = --ecosystem ]; then
  ecosystem=1
  shift
fi
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

# Of a build with sanitizers every process has their options, and Python their runtime. What a process finds goes to a file
# of its own: a test may keep a process's output, or expect it to fail. The cache of compiled kernels is the run's own: what
# an earlier run left there would not be compiled.
reports=$PWD/$logs/reports
rm -rf "$reports" "$logs/cache"
if grep -q '^WEFT_SANITIZER_RUNTIME:[A-Z]*=.' "$build/CMakeCache.txt"; then
  mkdir -p "$reports"
  export ASAN_OPTIONS="log_path=$reports/report${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
  export UBSAN_OPTIONS="log_path=$reports/report${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
  export TSAN_OPTIONS="log_path=$reports/report${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
  export WEFT_CACHE_DIR=$PWD/$logs/cache
fi

run lit tools/sanitized.sh "$build" .venv/bin/lit -j "$jobs" -s "$build/test"
run ctest tools/sanitized.sh "$build" ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error
run pytest tools/sanitized.sh "$build" .venv/bin/python -m pytest -n "$jobs" --dist worksteal "$@"
if [ -n "$ecosystem" ]; then
  rm -f "$logs/ecosystem.log"
  run ecosystem make --no-print-directory test-ecosystem PRESET="${build##*/}" ECOSYSTEM_TESTS="ecosystem and not slow"
fi

echo
echo "== summaries"
sed -n '/^Total Discovered Tests/,$p' "$logs/lit.log"
sed -n '/tests passed/,$p' "$logs/ctest.log"
for suite in pytest ${ecosystem:+ecosystem}; do
  [ -e "$logs/$suite.log" ] && grep -E '^=+ .* in [0-9.]+s.*=+$' "$logs/$suite.log" | tail -n 1
done
for report in "$reports"/*; do
  [ -e "$report" ] || continue
  echo "== a sanitizer's report: $report"
  head -n 40 "$report"
  failed=1
done
exit $failed
