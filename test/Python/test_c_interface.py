# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The C interfaces as others see them: the functions that are exported, listed and declared are the same; CMake and
pkg-config find what is installed, by component, wherever the prefix went; C11 projects build and run."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest
from installed import ROOT, bare, build_example, install, run
from runtime_samples import write_vector_add
from weft import native

INTERFACES = [
    ("libweft.so", ROOT / "runtime" / "CAPI" / "weft.h", "WEFT_API", "weft_"),
    ("libweft-compiler.so", ROOT / "compiler" / "CAPI" / "weft-compiler.h", "WEFTC_API", "weftc_"),
]


NATIVE = pathlib.Path(native.load("_runtime").__file__).parent


@pytest.fixture(scope="session")
def prefix(once):
    return once("prefix", install)


@pytest.fixture(scope="session")
def programs(once, prefix):
    return once("c", lambda place: build_example("c", prefix, place)) / "out-c"


def exported(library):
    """The functions that a shared library gives to others."""
    names = run("nm", "--dynamic", "--defined-only", "--format=posix", library).splitlines()
    return sorted(line.split()[0] for line in names)


@pytest.mark.parametrize(("library", "header", "mark", "start"), INTERFACES, ids=["runtime", "compiler"])
def test_what_is_exported_is_listed_and_declared(library, header, mark, start):
    """A function joins the list, NAME.symbols, with its declaration; one that goes or changes raises the number of the
    interface, ..._ABI_VERSION in the header."""
    names = [each for each in exported(NATIVE / library) if not each.startswith("_Z")]
    listed = header.with_suffix(".symbols").read_text().split()
    declared = re.findall(rf"^{mark}\s[^;]*?\b({start}\w+)\(", header.read_text(), re.MULTILINE)
    assert listed == sorted(set(listed))
    assert names == listed, f"expected what {header.stem}.symbols lists"
    assert sorted(declared) == listed


def test_what_is_exported_besides_is_what_the_simulators_module_takes():
    """The extension module _simulator has no simulator of its own; libweft gives it what it calls, and no more."""
    (module,) = NATIVE.glob("_simulator*.so")
    wanted = {
        line.split()[0] for line in run("nm", "--dynamic", "--undefined-only", "--format=posix", module).splitlines()
    }
    # Constructors and destructors have two names each, of which the compiler takes one.
    given, taken = (
        {line for line in run("c++filt", *sorted(names)).splitlines() if line.startswith("weft::")}
        for names in ([each for each in exported(NATIVE / "libweft.so") if each.startswith("_Z")], wanted)
    )
    assert given == taken and len(given) > 10
    assert [each for each in exported(NATIVE / "libweft-compiler.so") if each.startswith("_Z")] == []
    assert module.stat().st_size < 1_000_000


def test_the_number_of_the_interface(prefix):
    """It is the soname's."""
    number = re.search(r"^#define WEFT_ABI_VERSION (\d+)$", INTERFACES[0][1].read_text(), re.MULTILINE)[1]
    (library,) = prefix.glob("lib*/**/libweft.so")
    assert f"[libweft.so.{number}]" in run("readelf", "-d", library)


def test_no_path_of_the_build_is_installed(prefix):
    for library in prefix.glob("lib*/**/libweft*.so"):
        paths = re.findall(r"(?:RUNPATH|RPATH)\).*\[(.*)\]", run("readelf", "-d", library))
        assert not any(str(ROOT) in path for path in paths), paths
    for file in [*prefix.rglob("*.cmake"), *prefix.rglob("*.pc")]:
        assert str(ROOT) not in file.read_text() and str(prefix) not in file.read_text(), file


def test_c_runs_a_library(programs, tmp_path):
    write_vector_add(tmp_path / "libadd")
    said = run(programs / "vector_add", tmp_path / "libadd", "simulator", env=bare())
    assert said.count("right, bit for bit") == 3
    assert not re.search("python|cuda|LLVM|MLIR", run("ldd", programs / "vector_add"))
    done = subprocess.run([programs / "vector_add", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "vector_add: " in done.stderr and "cannot open the library" in done.stderr


def test_c_compiles_and_runs(programs):
    said = run(programs / "compile", "simulator", env=bare())
    assert "n = 1000 on simulator: right, bit for bit" in said


def find(prefix, place, components):
    """What CMake says to a project that asks for these components."""
    place.mkdir()
    (place / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES C)\nfind_package(Weft {components} REQUIRED)\n"
        "foreach(each weft compiler)\nif(TARGET Weft::${each})\nmessage(STATUS has-${each})\nendif()\nendforeach()\n"
    )
    command = ["cmake", "-S", place, "-B", place / "out", f"-DCMAKE_PREFIX_PATH={prefix}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return " ".join((done.stdout + done.stderr).split())


def test_components(prefix, tmp_path):
    runtime = tmp_path / "moved"
    install(tmp_path / "runtime", ("runtime",))
    shutil.move(tmp_path / "runtime", runtime)
    for components in ("", "COMPONENTS runtime", "0.1 COMPONENTS runtime OPTIONAL_COMPONENTS compiler"):
        said = find(runtime, tmp_path / f"r{len(components)}", components)
        assert "has-weft" in said and "has-compiler" not in said, said
    both = find(prefix, tmp_path / "both", "COMPONENTS runtime compiler")
    assert "has-weft" in both and "has-compiler" in both, both
    assert "expected Weft with the component 'compiler'" in find(runtime, tmp_path / "none", "COMPONENTS compiler")
    wrong = find(prefix, tmp_path / "wrong", "COMPONENTS linker")
    assert "has-weft" not in wrong and "'runtime' and 'compiler', but got 'linker'" in wrong, wrong


def test_pkg_config(prefix, tmp_path):
    """A C program is built by what pkg-config says, and runs."""
    if shutil.which("pkg-config") is None:
        pytest.skip("there is no pkg-config")
    (folder,) = {path.parent for path in prefix.rglob("*.pc")}
    environment = bare() | {"PKG_CONFIG_PATH": os.fspath(folder)}
    flags = run("pkg-config", "--cflags", "--libs", "weft", "weft-compiler", env=environment).split()
    source = ROOT / "examples" / "c" / "compile.c"
    run(shutil.which("clang-22") or "cc", "-std=c11", source, *flags, "-o", tmp_path / "compile")
    (library,) = prefix.glob("lib*/**/libweft.so")
    said = run(tmp_path / "compile", "simulator", env=bare() | {"LD_LIBRARY_PATH": os.fspath(library.parent)})
    assert "right, bit for bit" in said
    version = run("pkg-config", "--modversion", "weft", env=environment).strip()
    assert version == native.load("_runtime").version


STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror", "-fsyntax-only")


@pytest.mark.parametrize("compiler", ["gcc", "g++", "clang-22", "clang++-22"])
def test_headers_alone(compiler, tmp_path):
    """Each header by itself, twice, under all standards that it is for, whatever a project warns of."""
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    cpp = compiler.startswith(("g++", "clang++"))
    folders = [ROOT / "runtime" / "CAPI", ROOT / "compiler" / "CAPI"]
    names = ["weft.h", "weft-compiler.h", *(["weft.hpp"] if cpp else [])]
    for standard in ("c++17", "c++20", "c++23") if cpp else ("c11", "c17", "c2x"):
        for name in names:
            source = tmp_path / ("alone.cpp" if cpp else "alone.c")
            source.write_text(f"#include <{name}>\n#include <{name}>\nint main(void) {{ return 0; }}\n")
            run(compiler, f"-std={standard}", *STRICT, *(f"-I{folder}" for folder in folders), source)
