# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Triton kernels that torch.compile writes for tensors on the CPU, through ``weft.triton``: results and gradients
beside float64. What is needed of Triton for it is there by itself: sources, backends, drivers, kernels that are run.
"""

import hashlib
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import torch
import weft.triton as triton
import weft.triton.language as tl
from replaced import operator_errors
from weft.compiler.diagnostics import CompilationError
from weft.compiler.ptxas import find_tool
from weft.triton import backends, knobs
from weft.triton.compiler import ASTSource, CompiledKernel, make_backend
from weft.triton.runtime.driver import driver

SCRIPT = pathlib.Path(__file__).with_name("inductor_functions.py")


def are_right(part, folder, seed, most):
    """Whether each function of a part is within so many units of the last place, and in a kernel of Triton."""
    found = operator_errors(SCRIPT, folder, seed, WEFT_TEST_PART=part)
    assert len(found) >= 9
    for name, (kernels, *errors) in found:
        assert kernels >= 1, name
        assert max(errors) < most, (name, errors)


def test_functions_are_right(tmp_path, seed):
    are_right("quick", tmp_path, seed, 32)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["more", "configurations"])
def test_more_functions_are_right(tmp_path, seed, part):
    are_right(part, tmp_path, seed, 256)


@triton.jit
def scaled(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, factor * tl.load(x + at, at < n), at < n)


SIGNATURE = {"x": "*fp32", "y": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}


def test_a_source_is_compiled_and_run():
    source = ASTSource(scaled, SIGNATURE, {"BLOCK": 64}, {(0,): [["tt.divisibility", 16]], (2,): []})
    made = triton.compile(source, options={"num_warps": 2, "num_ctas": 1, "of_another_vendor": 3})
    assert isinstance(made, CompiledKernel) and made.metadata.num_warps == 2
    assert made.metadata.name == "scaled" and made.metadata._asdict()["shared"] == made.shared_bytes
    assert made.src.fn is scaled and made.src.signature == SIGNATURE
    assert made.src.attrs == {(0,): [["tt.divisibility", 16]]} and made.src.constants == {(4,): 64}
    x, y, z = np.arange(100, dtype=np.float32), np.zeros(100, np.float32), np.zeros(100, np.float32)
    given = (2, 1, 1, 0, made.function, made.packed_metadata, None, None, None)
    made.run(*given, x, y, 100, 3.0, 64)  # with its constants, and without
    made.run(*given, x, z, 100, 3.0)
    np.testing.assert_array_equal(y, 3 * x)
    np.testing.assert_array_equal(z, 3 * x)
    with pytest.raises(TypeError, match="expected an argument for each of its 5 parameters, or for the 4 that are no"):
        made.run(*given, x, y)
    with pytest.raises(ValueError, match="expected 'x' to be a multiple of 16, as the kernel was compiled for"):
        made.run(*given, x[1:], y, 99, 3.0)


def test_a_source_says_what_it_is_of():
    source = ASTSource(scaled, SIGNATURE, {(4,): 64})
    assert source.hash() == ASTSource(scaled, dict(SIGNATURE), {"BLOCK": 64}).hash()
    assert source.hash() != ASTSource(scaled, SIGNATURE, {"BLOCK": 128}).hash()
    with pytest.raises(CompilationError, match=r"expected one of the parameters of 'scaled' .*, but got 'SIZE'"):
        ASTSource(scaled, SIGNATURE, {"SIZE": 64})
    with pytest.raises(CompilationError, match="'n' of 'scaled': expected a type such as 'i32'"):
        ASTSource(scaled, {**SIGNATURE, "n": "int"}, {"BLOCK": 64}).wanted()
    with pytest.raises(CompilationError, match=r"expected a value for 'BLOCK' of 'scaled'"):
        triton.compile(ASTSource(scaled, SIGNATURE))
    with pytest.raises(TypeError, match=r"expected a function decorated with @triton.jit"):
        ASTSource(abs, {})


def test_targets_by_their_capability():
    source = ASTSource(scaled, SIGNATURE, {"BLOCK": 64})
    target = backends.compiler.GPUTarget("cuda", 90, 32)
    made = triton.compile(source, target=target)
    assert ".target sm_90" in made.asm["ptx"] and made.metadata.target.arch == 90
    assert hasattr(made, "n_regs") == bool(find_tool("ptxas"))
    simulated = triton.compile(source, target=backends.compiler.GPUTarget("cpu", "", 32))
    assert simulated.metadata.target.backend == "cpu" and not hasattr(simulated, "n_regs")
    assert made.hash != triton.compile(source).hash and len(made.hash) == len(hashlib.sha256().hexdigest())
    assert make_backend(target).hash() != make_backend(driver.active.get_current_target()).hash()
    with pytest.raises(ValueError, match="expected a target of backend 'cuda' or 'cpu', but got"):
        make_backend(backends.compiler.GPUTarget("hip", "gfx942", 64))
    with pytest.raises(ValueError, match=r"expected a compute capability among .*, but got 'gfx942'"):
        triton.compile(source, target=backends.compiler.GPUTarget("cuda", "gfx942", 64))


def test_hooks_of_a_run():
    made = triton.compile(ASTSource(scaled, SIGNATURE, {"BLOCK": 64}))
    x, seen = torch.ones(64), []
    knobs.runtime.launch_enter_hook.add(lambda metadata: seen.append(metadata.get()["name"]))
    try:
        told = made.launch_metadata((1, 1, 1), 0, x)
        own = (knobs.runtime.launch_enter_hook, lambda metadata: seen.append(metadata["grid"]))
        made.run(1, 1, 1, 0, made.function, made.packed_metadata, told, *own, x, x, 64, 3.0)
    finally:
        knobs.runtime.launch_enter_hook = None
    assert seen == ["scaled", (1, 1, 1)] and bool((x == 3).all())


def test_drivers_are_chosen():
    simulated = backends.backends["cpu"]
    default = type(driver.default)
    assert driver.active.get_current_target().warp_size == 32
    driver.set_active(simulated.driver())
    try:
        assert isinstance(driver.active, simulated.driver)
    finally:
        driver.reset_active()
    assert type(driver.active) is default and default.is_active()
    assert [each.driver.is_active() for each in backends.backends.values()].count(True) == 1
    with pytest.raises(TypeError, match=r"expected a driver of triton.backends.backends, but got 3"):
        driver.set_active(3)


def test_functions_marked_as_tritons_get_constants():
    @triton.jit
    def kernel(x, N: tl.constexpr):
        size: tl.constexpr = doubled(N)
        tl.store(x + tl.arange(0, size), kept(tl.full((size,), 2.0, tl.float32)))

    x = np.zeros(16, np.float32)
    kernel[(1,)](x, 4)
    np.testing.assert_array_equal(x, [2.0] * 8 + [0.0] * 8)


def doubled(n, *, _builder=None):
    assert isinstance(n, tl.constexpr)
    return tl.constexpr(2 * n.value)


def kept(value, _builder=None):
    return value


doubled.__triton_builtin__ = kept.__triton_builtin__ = True


def test_without_it_torch_writes_its_own_code():
    code = """
import torch
from torch._inductor import config, metrics
assert config.cpu_backend == "cpp" and config.compile_threads == 1
"""
    command = [sys.executable, "-c", f"from weft.triton.replace import replace; replace()\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
