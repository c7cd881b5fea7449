#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Sets up all that a build and its tests need on Debian 12: packages, and a Python environment in .venv with the package
# `weft` on its path and the command `weft`. Run again, it does only what is missing, and nothing in well under a second.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

packages=(
  build-essential ccache clang-22 clang-format-22 clang-tidy-22 cmake git libclang-rt-22-dev libfmt-dev libgmock-dev libgtest-dev
  libmd-dev libmlir-22-dev libzstd-dev lld-22 llvm-22-dev llvm-22-tools mlir-22-tools ninja-build nlohmann-json3-dev
  python3-dev python3-venv zlib1g-dev
)

# The packages of the list that are not installed, one a line.
missing_packages() {
  dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null | awk '$2 == "installed" { print $1 }' |
    sort | comm -13 - <(printf '%s\n' "${packages[@]}" | sort)
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
  cat > .venv/bin/weft <<END
#!$root/.venv/bin/python
import sys

from weft.cli.__main__ import main

sys.exit(main())
END
  chmod +x .venv/bin/weft
}

if ! command -v apt-get > /dev/null; then
  echo "setup: expected Debian 12 with apt-get; elsewhere install by hand: ${packages[*]}" >&2
  exit 1
fi
mapfile -t missing < <(missing_packages)
if [ "${#missing[@]}" -gt 0 ]; then
  install_packages "${missing[@]}"
fi

# The stamp names what the environment was made from, the folder included: paths in it are absolute.
wanted=$(cat tools/setup.sh tools/requirements.txt <(echo "$root") | sha256sum)
stamp=.venv/.weft-setup
if [ ! -x .venv/bin/python ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  make_environment
  echo "$wanted" > "$stamp"
fi
