#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Tries the wheels of a folder where neither this tree nor LLVM can be seen: in a mount namespace in which empty folders hide
# both, with a new environment that has NumPy, and PyTorch for the parts that need it. Runs README's programs, the commands,
# and the examples in C and C++ from the wheel's own packages; prints sizes and times.
# Usage: tools/try_wheel.sh [FOLDER], dist/ by default. Needs root, or user namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
dist=$(realpath "${1:-dist}")

if [ "${WEFT_TRY_WHEEL:-}" != hidden ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/empty" "$work/venv-of-tree" "$work/dist" "$work/tools"
  cp -r README.md examples "$work"
  cp tools/try_wheel.* "$work/tools"
  cp test/Tools/lsp-server.test "$work"
  tag=$(/usr/bin/python3 -c 'import sys; print(f"cp3{sys.version_info.minor}")')
  cp "$dist"/weft_attention{,_runtime}-*-"$tag-$tag"-*.whl "$work/dist"
  user=()
  [ "$(id -u)" -eq 0 ] || user=(--map-root-user)
  WEFT_TRY_WHEEL=hidden unshare "${user[@]}" --mount bash -euo pipefail -c '
    mount --bind "$1/.venv" "$0/venv-of-tree"
    mount --bind "$0/empty" /usr/lib/llvm-22
    mount --bind "$0/empty" "$1"
    exec bash "$0/tools/try_wheel.sh"' "$work" "$root"
  exit
fi

# Here the tree is hidden; $PWD is the folder above, which was made for this.
work=$PWD
unset PYTHONPATH WEFT_NATIVE_DIR LD_LIBRARY_PATH
export WEFT_CACHE_DIR=$work/cache WEFT_DEVICE=simulator
say() { printf '\n== %s\n' "$*"; }
fail() { echo "try_wheel: $*" >&2; exit 1; }
bytes() { find "$1" -type f ! -name '*.pyc' -printf '%s\n' | awk '{ sum += $1 } END { printf "%.1f MB", sum / 1e6 }'; }
[ ! -e /usr/lib/llvm-22/lib ] || fail "expected LLVM to be hidden"

# environment NAME WHEEL: a new environment with the wheel, and with NumPy, which it asks for.
environment() {
  /usr/bin/python3 -m venv "$1"
  "$1/bin/python" -m pip install --disable-pip-version-check -q "$2"
}

say "sizes"
for wheel in dist/*.whl; do stat -c '%n: %s bytes' "$wheel"; done
environment whole "$(ls dist/weft_attention-*.whl)"
environment runtime "$(ls dist/weft_attention_runtime-*.whl)"
for each in whole runtime; do
  site=$(echo "$work/$each"/lib/python3*/site-packages)
  echo "$each installed: weft $(bytes "$site/weft"), with metadata $(bytes "$site")  (NumPy included in the latter)"
  ls "$site"/weft_attention*.dist-info/{licenses,sboms}
done
PATH=$work/whole/bin:/usr/bin:/bin

say "attention with NumPy alone, an empty cache each time: seconds"
python -c 'import weft' # so that .pyc files are there, as after the first use
for _ in 1 2 3 4 5; do
  rm -rf "$WEFT_CACHE_DIR"
  python tools/try_wheel.py
done

say "commands with NumPy alone"
weft --version
weft doctor
signature="x:*fp32:16, y:*fp32:16, z:*fp32:16, n:i32, BLOCK=1024"
weft compile examples/01_vector_add.py:vector_add --target sm_80,sm_90a -o libadd --signature "$signature"
weft inspect libadd
weft run libadd --grid 10 --arg "f32[10000]=random" --arg "f32[10000]=ones" --arg "f32[10000]=nan:z.npy" --arg i32=10000
ptx=$(ls libadd/*sm_80*.ptx)
entry=$(sed -n 's/^\.visible \.entry \(\w*\).*/\1/p' "$ptx")
weft sim "$ptx" --entry "$entry" --grid 1 --block 128 --arg "f32[1024]=ones" --arg "f32[1024]=ones" --arg "f32[1024]=nan" --arg i32=1024
weft cache info
python examples/01_vector_add.py

say "tools on IR"
weft-opt --help > help.txt # whole: a pipe that grep closes early ends the tool by a signal
grep -m 1 -e --attn-to-tile help.txt
weft explain examples/mechanisms/attention.py --stage python > attention.mlir
weft-opt --attn-apply-mixers --attn-to-tile attention.mlir --remarks-filter-missed=.* -o launches.mlir
weft-lsp-server --lit-test < lsp-server.test > answers.txt 2> /dev/null
grep -m 1 -o tile.load answers.txt
printf '#!/bin/sh\ngrep -q tile.dot "$1" && exit 1\nexit 0\n' > has-product.sh
chmod +x has-product.sh
weft-reduce launches.mlir --reduction-tree="traversal-mode=0 test=./has-product.sh" -o small.mlir

say "C and C++ with CMake and pkg-config"
for language in c cpp; do
  cmake -S "examples/$language" -B "out-$language" -DCMAKE_PREFIX_PATH="$(weft config cmake-prefix)" > cmake.log || fail "$(cat cmake.log)"
  cmake --build "out-$language" > cmake.log || fail "$(cat cmake.log)"
done
out-c/vector_add libadd simulator
out-c/compile simulator
out-cpp/vector_add libadd simulator
PKG_CONFIG_PATH=$(weft config pkg-config)
export PKG_CONFIG_PATH
# The flags are words.
# shellcheck disable=SC2046
cc -std=c11 examples/c/compile.c $(pkg-config --cflags --libs weft weft-compiler) -o compiled
./compiled simulator

say "the runtime's wheel"
runtime/bin/weft doctor
runtime/bin/weft run libadd --grid 10 --arg "f32[10000]=random" --arg "f32[10000]=ones" --arg "f32[10000]=nan:z.npy" --arg i32=10000
! runtime/bin/weft compile examples/01_vector_add.py:vector_add -o nothing --signature "$signature" 2> refused || fail "the runtime compiles"
grep "install weft-attention instead" refused

say "README and weft tune, with PyTorch"
echo "$work/venv-of-tree/lib/$(ls venv-of-tree/lib)/site-packages" > "$(echo whole/lib/python3*/site-packages)/torch.pth"
python - <<'END'
import pathlib, re
for i, text in enumerate(re.findall(r"^```python\n(.*?)^```$", pathlib.Path("README.md").read_text(), re.S | re.M)):
    pathlib.Path(f"readme{i}.py").write_text(text)
END
for each in readme*.py; do python "$each"; done
python tools/try_wheel.py # where PyTorch can be found, too
weft tune examples/mechanisms/attention.py --target sm_80 --sizes B=1,Hkv=1,N=64 --limit 2 --forward-only --jobs 1

say "all of it went well"
