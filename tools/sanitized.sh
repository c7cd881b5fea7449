#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Runs a command with what a build with sanitizers needs around it. Usage: tools/sanitized.sh BUILD COMMAND...
#   tools/sanitized.sh build/asan .venv/bin/python -m pytest -x test/Python/test_sema.py
# Python itself is built without them, so the sanitizer's runtime is preloaded; the extension modules are the build's. Of a
# build without sanitizers only the modules are taken. Options of yours in ASAN_OPTIONS and the like come after these.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$1
shift
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
native=$(cached WEFT_NATIVE_DIR)
export WEFT_NATIVE_DIR=$native
runtime=$(cached WEFT_SANITIZER_RUNTIME)
if [ -n "$runtime" ]; then
  WEFT_SANITIZED=$(cached WEFT_SANITIZE) # tests that measure time leave themselves out
  export WEFT_SANITIZED
  # libstdc++ comes along, or the runtime finds no `__cxa_throw` to stand before: Python loads it later.
  preloaded="$runtime $(${CXX:-clang++-22} -print-file-name=libstdc++.so.6)"
  # CPython and PyTorch keep what they allocate until the process ends, so leaks are not looked for here:
  # benchmarks/memory.py measures them. MLIR's and LLVM's libraries are built without sanitizers but share inline
  # allocators with our files, which mark the memory that they hand out: marks that only one side makes are wrong.
  # An assertion that fails (this build has those of LLVM's and MLIR's headers) is a report, too, with its stack.
  export ASAN_OPTIONS="detect_leaks=0:allow_user_poisoning=0:detect_container_overflow=0:allocator_may_return_null=1:abort_on_error=1:handle_abort=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
  export UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:abort_on_error=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
  export TSAN_OPTIONS="suppressions=$root/tools/tsan.supp:ignore_noninstrumented_modules=1:exitcode=66${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
  exec env LD_PRELOAD="$preloaded" "$@"
fi
exec "$@"
