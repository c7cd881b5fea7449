# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""An installed Weft, and projects that are built with it and know nothing of the source tree."""

import os
import pathlib
import shutil
import subprocess

import pytest
from weft import native

ROOT = pathlib.Path(__file__).resolve().parents[2]


def build_folder():
    """The build that the extension modules under test came from."""
    library = pathlib.Path(native.load("_runtime").__file__).parent / "libweft.so"
    for cache in [*ROOT.glob("build/*/CMakeCache.txt"), *library.parent.parent.glob("CMakeCache.txt")]:
        wanted = f"WEFT_NATIVE_DIR:PATH={library.parent}"
        if wanted in cache.read_text() and (cache.parent / "cmake_install.cmake").exists():
            return cache.parent
    return None


def bare():
    """Nothing of this process's environment but what a sanitizer, if libweft.so has one, needs of it."""
    kept = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")
    return {"PATH": "/usr/bin:/bin"} | {name: os.environ[name] for name in kept if name in os.environ}


def run(*command, **options):
    """The output of a command, which must succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(place, components=("runtime", "compiler")):
    """Install the components of the build under test into a folder."""
    build = build_folder()
    if build is None:
        pytest.skip("the extension modules under test do not come from a build folder that can be installed from")
    for component in components:
        run("cmake", "--install", build, "--component", component, "--prefix", place)


def build_example(name, prefix, place):
    """Build examples/NAME, all warnings being errors, with the Weft installed in ``prefix``; returns the output folder.

    Of a copy, so that nothing beside the project's own files can be reached by a relative path.
    """
    project, out = place / f"project-{name}", place / f"out-{name}"
    shutil.copytree(ROOT / "examples" / name, project)
    compilers = {each: shutil.which(f"{each}-22") or default for each, default in (("clang++", "c++"), ("clang", "cc"))}
    strict = "-Wall -Wextra -Wpedantic -Werror"
    run(
        *("cmake", "-S", project, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}"),
        *(f"-DCMAKE_CXX_COMPILER={compilers['clang++']}", f"-DCMAKE_C_COMPILER={compilers['clang']}"),
        *(f"-DCMAKE_CXX_FLAGS={strict}", f"-DCMAKE_C_FLAGS={strict}", "--no-warn-unused-cli"),
    )
    run("cmake", "--build", out)
    return out
