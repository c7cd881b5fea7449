#!/usr/bin/env bash
# Part of Weft. SPDX-License-Identifier: Apache-2.0
# Makes the wheels weft-attention and weft-attention-runtime in dist/ for every CPython from 3.11 on that is found, on PATH or
# among pyenv's, or for those that are named; auditwheel says whether they are manylinux_2_34. All of them share one build
# folder, so that a CPython more costs its extension modules. Usage: tools/wheel.sh [PYTHON...]
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

# Whether a Python can build extension modules; a name on PATH may be a stub that runs nothing, as pyenv's are.
usable() {
  "$1" -c 'import sys, sysconfig, pathlib, venv, ensurepip
assert sys.implementation.name == "cpython" and sys.version_info >= (3, 11)
assert (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists()' 2> /dev/null
}

# One Python for each version, those on PATH first.
found_pythons() {
  local each tag
  declare -A known
  for each in /usr/bin/python3 python3.1{1,2,3,4,5} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
    if usable "$each"; then
      tag=$("$each" -c 'import sys; print(sys.implementation.cache_tag)')
      [ -n "${known[$tag]:-}" ] || echo "$each"
      known[$tag]=$each
    fi
  done
}

# The build's own tools, all but deflate of Python alone, in one folder for every CPython: scikit-build-core configures anew where it
# lies in another folder than before, as it does where pip isolates a build, and all would be compiled again.
tools=$root/build/wheel/tools
pins=$(grep -E '^(deflate|scikit-build-core|pybind11)==' tools/requirements.txt | sed 's/ *#.*//')
if [ "$(cat "$tools/pins" 2> /dev/null)" != "$pins" ]; then
  rm -rf "$tools"
  xargs .venv/bin/python -m pip install --disable-pip-version-check -q --target "$tools" <<< "$pins"
  echo "$pins" > "$tools/pins"
fi

pythons=("$@")
[ "${#pythons[@]}" -gt 0 ] || mapfile -t pythons < <(found_pythons)
mkdir -p dist
for python in "${pythons[@]}"; do
  tag=$("$python" -c 'import sys; print(sys.implementation.cache_tag)')
  echo "wheel: $("$python" --version), $python"
  # Debian's own Python has no pip outside of an environment.
  [ -x "build/wheel/$tag/bin/pip" ] || "$python" -m venv --clear "build/wheel/$tag"
  for project in . packaging/runtime; do
    rm -rf build/wheel/{raw,repaired}
    PYTHONPATH=$tools "build/wheel/$tag/bin/python" -m pip wheel --disable-pip-version-check -q --no-deps --no-build-isolation \
      -w build/wheel/raw "./$project"
    PATH="$root/.venv/bin:$PATH" .venv/bin/auditwheel repair --plat manylinux_2_34_x86_64 \
      -w build/wheel/repaired build/wheel/raw/*.whl
    PYTHONPATH=$tools .venv/bin/python tools/repack.py build/wheel/repaired/*.whl dist
    # Every extension module finds what it takes of the libraries beside it.
    rm -rf build/wheel/tried
    .venv/bin/python -m zipfile -e build/wheel/repaired/*.whl build/wheel/tried
    (cd build/wheel/tried && "../$tag/bin/python" -c 'import importlib, pathlib
for each in pathlib.Path("weft/_native").glob("_*.so"):
    importlib.import_module("weft._native." + each.name.split(".")[0])')
  done
done
ls -l dist/*.whl
