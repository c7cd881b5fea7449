#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Sets up all that a build and its tests need on Debian 12: packages, and a Python environment in .venv with the package
# `weft` on its path and its commands. Run again, it does only what is missing, and nothing in well under a second.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

packages=(
  build-essential ccache clang-22 clang-format-22 clang-tidy-22 cmake git libclang-rt-22-dev libfmt-dev libgmock-dev libgtest-dev
  libmd-dev libmlir-22-dev libzstd-dev lld-22 llvm-22-dev llvm-22-tools mlir-22-tools ninja-build nlohmann-json3-dev
  pkgconf python3-dev python3-venv zlib1g-dev
)

# The packages of the list that are not installed, one a line.
missing_packages() {
  dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null | awk '$2 == "installed" { print $1 }' |
    sort | comm -13 - <(printf '%s\n' "${packages[@]}" | sort)
}

# What the packages hold and is not there, one a line. It is looked for as the build does, under /usr.
missing_things() {
  local file name
  for name in c++ ccache cmake git ld ninja pkg-config; do
    command -v "$name" > /dev/null || echo "the command $name"
  done
  for name in clang++ clang-format clang-tidy ld.lld llvm-config mlir-tblgen FileCheck; do
    [ -x "/usr/lib/llvm-22/bin/$name" ] || echo "LLVM 22's /usr/lib/llvm-22/bin/$name"
  done
  for file in lib/llvm-22/lib/cmake/mlir/MLIRConfig.cmake include/fmt/format.h include/gmock/gmock.h include/gtest/gtest.h \
    include/sha2.h include/zstd.h include/zlib.h include/nlohmann/json.hpp; do
    [ -e "/usr/$file" ] || echo "the file /usr/$file"
  done
  ls /usr/lib/llvm-22/lib/clang/22/lib/*/*asan* > /dev/null 2>&1 || echo "LLVM 22's sanitizers (compiler-rt)"
  [ -x /usr/bin/python3 ] || echo "/usr/bin/python3"
  /usr/bin/python3 -c 'import ensurepip, sysconfig, os; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' \
    2> /dev/null || echo "Python's headers and its venv module, of /usr/bin/python3"
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_packages() {
  echo "setup: installing $*"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

# The environment's Python is Debian's own: the extension modules are built against its headers.
make_environment() {
  [ -x .venv/bin/python ] || /usr/bin/python3 -m venv .venv
  echo "setup: installing tools/requirements.txt into .venv"
  .venv/bin/python -m pip install --disable-pip-version-check -q -r tools/requirements.txt
  local site
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$root/python" > "$site/weft.pth"
  # A script whose first line names the interpreter breaks where the folder's name has a space in it.
  cat > .venv/bin/weft <<'END'
#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/python" -P -m weft.cli "$@"
END
  local tool
  for tool in weft-opt weft-lsp-server weft-reduce; do
    cat > ".venv/bin/$tool" <<END
#!/bin/sh
exec "\$(dirname "\$(readlink -f "\$0")")/python" -P -m weft.cli.tools $tool "\$@"
END
  done
  chmod +x .venv/bin/weft{,-opt,-lsp-server,-reduce}
}

# Without apt-get, packages are somebody else's work: what they hold is looked for, and what is not found is said.
if command -v apt-get > /dev/null && command -v dpkg-query > /dev/null; then
  mapfile -t missing < <(missing_packages)
  if [ "${#missing[@]}" -gt 0 ]; then
    install_packages "${missing[@]}"
  fi
else
  mapfile -t missing < <(missing_things)
  if [ "${#missing[@]}" -gt 0 ]; then
    printf 'setup: expected, since there is no apt-get to install it: %s\n' "${missing[@]}" >&2
    exit 1
  fi
fi

# The stamp names what the environment was made from, the folder included: paths in it are absolute.
wanted=$(cat tools/setup.sh tools/requirements.txt <(echo "$root") | sha256sum)
stamp=.venv/.weft-setup
if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  make_environment
  echo "$wanted" > "$stamp"
fi
