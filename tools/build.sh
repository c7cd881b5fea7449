#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Builds a target of a configured build directory, and says beforehand how much there is to do and afterwards how long it
# took. Usage: tools/build.sh BUILD TARGET
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 target=$2

# A dry run prints its steps as [n/m]. A first build takes five seconds a step on one core; a step whose
# result the compiler cache has takes hundredths.
steps=$(ninja -C "$build" -n "$target" | sed -n 's|^\[1/\([0-9]*\)\].*|\1|p')
if [ -z "$steps" ]; then
  exit 0
fi
echo "build: $steps steps to $build; a first build takes about $(((steps * 5 / $(nproc) + 59) / 60)) minutes on $(nproc) cores"
started=$SECONDS
NINJA_STATUS="[%f/%t, %es] " cmake --build "$build" --target "$target"
echo "build: done in $((SECONDS - started)) s"
