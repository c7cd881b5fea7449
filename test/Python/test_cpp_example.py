# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""An installed Weft serves a C++ project that knows nothing of the source tree, and no Python is in its process."""

import os
import shutil
import subprocess
import sys

import pytest
from installed import ROOT, bare, build_example, install, run
from runtime_samples import write_vector_add


@pytest.fixture(scope="session")
def program(once):
    def make(place):
        install(place / "prefix", ("runtime",))
        build_example("cpp", place / "prefix", place)

    return once("cpp", make) / "out-cpp" / "vector_add"


def test_adds_without_python(program, tmp_path):
    write_vector_add(tmp_path / "libadd")
    said = run(program, tmp_path / "libadd", env=bare() | {"WEFT_LIBCUDA": "/nonexistent"})
    assert "add(x: *fp32, y: *fp32, z: *fp32, n: i32)" in said
    assert said.count("right, bit for bit") == 3
    needs = run("ldd", program)
    assert "libweft.so" in needs
    assert not any(word in needs for word in ("python", "cuda", "LLVM", "MLIR")), needs


def test_runs_a_program_without_python(program, tmp_path):
    signature = "q:fp32[B,H,N,64], k:fp32[B,H,M,64], v:fp32[B,H,M,64]"
    example = ROOT / "examples" / "patterns" / "causal.py"
    weft_compile = [sys.executable, "-m", "weft.cli", "compile", example, "--signature", signature, "--forward-only"]
    run(*weft_compile, "-o", tmp_path / "libcausal", env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    said = run(program.parent / "attention", tmp_path / "libcausal", "simulator", env=bare())
    assert "q: fp32[B, H, N, 64]" in said
    assert said.count("largest error") == 3


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_runs_all_mechanisms_without_python(target, program, mechanism_library):
    """Forward and backward, against float64 and within the rule's bounds."""
    arguments = (mechanism_library.path, mechanism_library.vectors, f"simulator:{target}")
    said = run(program.parent / "mechanisms", *arguments, env=bare())
    count = len(list(mechanism_library.vectors.glob("*.txt")))
    assert count >= len(list((ROOT / "examples" / "mechanisms").glob("*.py")))
    assert f"{count} of {count} mechanisms right" in said
    assert said.count(f" for {target} on simulator") == count
    assert all(f"  d_{name} " in said for name in ("q", "k", "v", "lepe", "kappa_q"))


def test_finds_a_wrong_result(program, mechanism_library, tmp_path):
    for path in mechanism_library.vectors.glob("sema.*"):
        shutil.copy(path, tmp_path)
    expected = bytearray((tmp_path / "sema.d_k").read_bytes())
    expected[3] ^= 0x40  # the first number's exponent
    (tmp_path / "sema.d_k").write_bytes(expected)
    command = [program.parent / "mechanisms", mechanism_library.path, tmp_path, "simulator"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "0 of 1 mechanisms right" in done.stdout


def test_refuses_with_a_message(program, tmp_path):
    write_vector_add(tmp_path / "libadd")
    (tmp_path / "libadd" / "add.sm_80.ptx").write_text("altered")
    done = subprocess.run([program, tmp_path / "libadd", "simulator"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "vector_add: corrupt: cannot open the library" in done.stderr
    assert "add.sm_80.ptx: cut short" in done.stderr
