# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What packages of Triton kernels do with kernels, as FlagGems, vLLM and SGLang do: launchers and tuners of their own,
source that is pasted into generated modules, pointers that are no tensors, constants of every kind.
"""

import functools
import inspect
import subprocess
import sys
import types

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
import weft.triton as triton
import weft.triton.language as tl
from weft.compiler.diagnostics import CompilationError
from weft.triton.tools.ragged_tma import (
    atomic_add_ragged,
    create_ragged_descriptor,
    load_ragged,
    store_ragged,
)


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["y"])
def scaled(x, y, n, factor, BLOCK: tl.constexpr, SQUARE: tl.constexpr = False):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n)
    tl.store(y + at, factor * (v * v if SQUARE else v), at < n)


class Entry(triton.KernelInterface):
    """Compiles once for each key, and launches what it has then, with what is no constant."""

    def __init__(self, fn):
        self.fn, self.arg_names = fn, fn.arg_names
        while not isinstance(fn, triton.runtime.JITFunction):
            fn = fn.fn
        self.params, self.kept, self.compiled = fn.params, {}, 0

    def run(self, *args, grid, warmup, **kwargs):
        key = tuple(getattr(each, "dtype", each) for each in args) + tuple(kwargs.items())
        if key not in self.kept:
            self.compiled += 1
            self.kept[key] = self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)
            return self.kept[key]
        varying = [a for a, p in zip(args, self.params, strict=False) if not p.is_constexpr]
        return self.kept[key][grid({"n": args[2], "BLOCK": 64})](*varying)


def test_a_launcher_of_ones_own_around_a_kernel():
    entry = Entry(scaled)
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]), 1, 1)  # noqa: E731
    for _ in range(3):
        y[:] = 0
        entry[grid](x, y, 100, 3.0, 64, True)
        np.testing.assert_array_equal(y, 3 * x * x)
    assert entry.compiled == 1


def test_wrappers_stand_around_launchers():
    inside = Entry(scaled)
    kernel = triton.heuristics({"SQUARE": lambda args: args["n"] > 50})(inside)
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    kernel[(2,)](x, y, 100, 2.0, BLOCK=64)
    np.testing.assert_array_equal(y, 2 * x * x)
    assert inside.compiled == 1 and kernel.arg_names == scaled.arg_names


def test_what_derives_from_the_interface_must_run():
    class Nothing(triton.KernelInterface):
        pass

    with pytest.raises(NotImplementedError, match="expected Nothing to define 'run'"):
        Nothing()[(1,)](3)


class Slowest(triton.runtime.Autotuner):
    """A tuner with a rule of its own."""

    def run(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        times = {config: self._bench(*args, config=config, **kwargs)[0] for config in self.prune_configs(kwargs)}
        self.times, config = times, max(times, key=times.get)
        return self.fn.run(*args, **kwargs, **config.all_kwargs())


def test_a_tuner_of_ones_own():
    def early(configs, named, **kwargs):
        assert named["n"] == 100 and "grid" in kwargs
        return [config for config in configs if config.kwargs["BLOCK"] > 16]

    configs = [triton.Config({"BLOCK": block}, num_warps=1) for block in (16, 64, 128, 1 << 21)]
    kernel = Slowest(
        scaled, scaled.arg_names, configs, ["n"], None, None, prune_configs_by={"early_config_prune": early}
    )
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    run = functools.partial(kernel._bench, x, y, 100, 2.0, config=configs[1], grid=(2,))
    kernel.nargs = dict(zip(kernel.arg_names, (x, y, 100, 2.0), strict=False))
    assert run()[0] > 0 and (y == 1).all()  # memory is as it was
    kernel.configs = configs[:3]
    kernel[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, 100, 2.0)
    assert {config.kwargs["BLOCK"] for config in kernel.times} == {64, 128}
    np.testing.assert_array_equal(y, 2 * x)
    assert kernel._bench(x, y, 100, 2.0, config=configs[3], grid=(1,)) == [float("inf")] * 3  # too large a block


def test_warmup_of_a_tuner_by_run():
    kernel = triton.autotune([triton.Config({"BLOCK": 64})], key=[])(scaled)
    x = np.ones(100, np.float32)
    assert [each.name for each in kernel.run(x, x, 100, 3.0, grid=(2,), warmup=True)] == ["scaled"]
    assert (x == 1).all()


def test_parameters_and_source_as_libraries_read_them():
    numbers = {p.num: (p.name, p.is_constexpr, p.has_default) for p in scaled.params}
    assert numbers[2] == ("n", False, False) and numbers[5] == ("SQUARE", True, True)
    assert [p.name for p in scaled.params if p.do_not_specialize] == ["n"]
    assert [p.name for p in scaled.params if p.do_not_specialize_on_alignment] == ["y"]
    assert scaled.src.startswith("def scaled(x, y, n, factor") and scaled.src.endswith("at < n)\n")
    assert scaled.raw_src[0].startswith("@triton.jit(") and "".join(scaled.raw_src[1:]) == scaled.src
    lines, first = inspect.getsourcelines(scaling_by(1).fn)
    assert scaling_by(1).raw_src == lines and scaling_by(1).starting_line_number == first
    assert scaled.__globals__ is globals()


def scaling_by(factor):
    @triton.jit
    def inner(v):
        return v * factor

    return inner


TEXT = """def of_text(x, y, n, BLOCK: tl.constexpr):
    FACTOR: tl.constexpr = {factor}
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, inner(tl.load(x + at, at < n, other=0)) + FACTOR, at < n)
"""


def described(grid, kernel, arguments):
    return {"name": kernel.name}


def made_of_text(text, name, **scope):
    """As Triton's library of kernels makes them: an empty function with a scope, whose source is replaced."""

    def empty():
        pass

    exec(text, scope)
    function = types.FunctionType(empty.__code__, scope)
    function.__name__, function.__signature__ = name, inspect.signature(scope[name])
    options = list(inspect.signature(triton.JITFunction.__init__).parameters.values())[2:]
    attributes = {each.name: getattr(scaled, each.name, each.default) for each in options}
    attributes |= {"repr": lambda specialization: name + "_of_text", "launch_metadata": described}
    kernel = triton.JITFunction(function, **attributes)
    kernel._unsafe_update_src(text)
    return kernel


def test_kernels_made_of_text():
    inner = scaling_by(tl.constexpr(4))
    assert inner.get_capture_scope()["factor"].value == 4 and inner.get_capture_scope()["np"] is np
    assert scaled.repr(None) == "scaled"
    x = np.arange(100, dtype=np.float32)
    for factor in (2, 5):
        kernel = made_of_text(TEXT.format(factor=factor), "of_text", tl=tl, inner=inner)
        assert f"constexpr = {factor}" in kernel.src and kernel.do_not_specialize == ["n"]
        assert kernel.repr(None) == "of_text_of_text" and kernel.launch_metadata is described
        assert "".join(kernel.raw_src) == kernel.src and kernel.starting_line_number == 1
        kernel.raw_src, kernel.starting_line_number = list(scaled.raw_src), 7  # where the text came from
        kernel.fn.__code__ = kernel.fn.__code__.replace(co_filename=__file__, co_firstlineno=factor)
        y = np.zeros(100, np.float32)
        kernel[(2,)](x, y, 100, BLOCK=64, arch=None, ptx_options=None, min_shared_mem=None)
        np.testing.assert_array_equal(y, 4 * x + factor)


def test_text_that_is_no_kernel():
    with pytest.raises(ValueError, match="expected a text that defines 'scaled', but got 'def other"):
        triton.JITFunction(scaled.fn)._unsafe_update_src("def other(x):\n    pass\n")
    kernel = made_of_text(TEXT.format(factor=2).replace("tl.load(", "tl.nothing("), "of_text", tl=tl, inner=scaled)
    with pytest.raises(CompilationError, match=r"<text \w+>:4:.*\n.*tl\.nothing"):
        kernel[(2,)](np.zeros(4, np.float32), np.zeros(4, np.float32), 4, BLOCK=4)


class Pointer:
    """All that Triton asks of a pointer."""

    def __init__(self, tensor, offset=0):
        self.tensor, self.offset, self.dtype = tensor, offset, tensor.dtype

    def data_ptr(self):
        return self.tensor.data_ptr() + self.offset * self.tensor.element_size()


@triton.jit
def backwards(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x - at, at < n), at < n)


@pytest.mark.parametrize("calls", [1, 3])
def test_pointers_that_are_no_tensors(calls):
    x, y = torch.arange(20.0), torch.zeros(20)
    for _ in range(calls):
        backwards[(1,)](Pointer(x, 19), Pointer(y), 20, BLOCK=32)
        assert torch.equal(y, x.flip(0))
        x += 1
    with pytest.raises(weft.Error, match="out-of-bounds"):
        backwards[(1,)](Pointer(x, 18), Pointer(y), 20, BLOCK=32)


@tl.constexpr
def accumulator(kind):
    return tl.float32 if kind.is_fp16() else kind


@triton.jit
def of_constants(x, y, n, BLOCK: tl.constexpr, KIND: tl.constexpr):
    T: tl.constexpr = accumulator(x.type.element_ty)
    step: tl.constexpr = BLOCK * n  # no constant, and accepted
    times: tl.constexpr
    if KIND.value is tl.float16:  # noqa: SIM108
        times = 2
    else:
        times = 3
    at = tl.arange(0, BLOCK)
    ones = tl.full((times,), 1, tl.dtype(f"int{tl.int32.primitive_bitwidth}"))
    largest = tl.maximum(tl.float32(-float("inf")), tl.sum(ones))
    p = tl.make_block_ptr(y, (n,), (1,), (0,), (BLOCK,), (0,))
    v = tl.core.add(tl.load(x + at, at < n).to(T), step, sanitize_overflow=False)
    tl.store(p, (v * largest).to(p.type.element_ty), boundary_check=(0,))


@pytest.mark.parametrize(("kind", "times"), [(tl.float16, 2), (tl.float32, 3)])
def test_constants_of_every_kind(kind, times):
    x, y = np.arange(10).astype(np.float16), np.zeros(10, np.float32)
    of_constants[(1,)](x, y, 10, BLOCK=16, KIND=kind)
    np.testing.assert_array_equal(y, times * (x.astype(np.float32) + 160))


@triton.jit
def two_names_of_a_constant(x):
    size: tl.constexpr
    number = size = 4
    at = tl.arange(0, size)
    tl.store(x + at, at + number)


def test_a_declared_constant_beside_a_variable():
    x = np.zeros(4, np.int32)
    two_names_of_a_constant[(1,)](x)
    assert x.tolist() == [4, 5, 6, 7]


@triton.jit
def rows_in_turn(x, y, rows, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, step=tl.num_programs(0), num_stages=2):
        tl.atomic_add(y + row * BLOCK + at, tl.load(x + row * BLOCK + at))


def test_steps_of_loops_by_name():
    """Triton leaves the name out and steps by one, so that each program takes rows of the others."""
    x, y = np.arange(7 * 32, dtype=np.float32), np.zeros(7 * 32, np.float32)
    rows_in_turn[(3,)](x, y, 7, BLOCK=32)
    np.testing.assert_array_equal(y, x)


@triton.jit
def a_loop_of_other_names(x, rows):
    for row in range(0, rows, stride=2):
        tl.store(x + row, row)


def test_names_that_loops_do_not_have():
    with pytest.raises(CompilationError, match=r"unexpected keyword argument 'stride' \[WL607\]"):
        a_loop_of_other_names[(1,)](np.zeros(4, np.int32), 4)


@triton.jit
def scaled_rows(x, scales, y, rows, BLOCK: tl.constexpr, PAGES: tl.constexpr):
    at = tl.arange(0, BLOCK)
    scale_at = None if scales is None else scales
    factor: tl.constexpr = 3
    kind = None
    for row in range(rows):
        if PAGES > 0 and row > 2:
            factor = row
            kind = at
        if scales is not None:
            scale_at = scales + row
        v = tl.load(x + row * BLOCK + at)
        v = v if scale_at is None else v * tl.load(scale_at)
        tl.store(y + row * BLOCK + at, v * factor if kind is None else v)


@pytest.mark.parametrize("has_scales", [False, True])
def test_what_branches_assign_that_are_not_taken_is_kept(has_scales):
    x, scales = np.arange(4 * 32, dtype=np.float32), np.arange(4, dtype=np.float32) + 2
    y = np.zeros_like(x)
    scaled_rows[(1,)](x, scales if has_scales else None, y, 4, BLOCK=32, PAGES=0)
    np.testing.assert_array_equal(y, 3 * x * (np.repeat(scales, 32) if has_scales else 1))


@triton.jit
def a_constant_that_changes(x, rows, PAGES: tl.constexpr):
    kind = None
    for row in range(rows):
        tl.store(x + row, 0 if kind is None else 1)
        if PAGES > 0:
            kind = row


def test_what_branches_assign_that_are_taken_is_refused():
    with pytest.raises(CompilationError, match=r"'kind' may have no value here.*assigned inside of it"):
        a_constant_that_changes[(1,)](np.zeros(4, np.int32), 4, PAGES=1)


@triton.jit
def twice_a_constant(x, n):
    A: tl.constexpr = 3
    A: tl.constexpr = 4
    tl.store(x, A)


@triton.jit
def identical_tensors(x, n):
    a = tl.load(x)
    if a is n:
        tl.store(x, a)


def test_constants_that_are_refused():
    x = np.zeros(1, np.int32)
    with pytest.raises(CompilationError, match="'A'"):
        twice_a_constant[(1,)](x, 3)
    with pytest.raises(CompilationError, match="'is' of a tensor"):
        identical_tensors[(1,)](x, 3)


@triton.jit
def of_subarrays(x, y, total, starts, BLOCK: tl.constexpr, AXIS: tl.constexpr):
    part = tl.program_id(0)
    first = tl.load(starts + part)
    size = tl.load(starts + part + 1) - first
    for row in range(0, size, BLOCK):
        at = [row, 0] if AXIS == 0 else [0, row]
        v = load_ragged(x, first, size, at, AXIS)
        store_ragged(y, first, size, at, v * (part + 1), AXIS)
        atomic_add_ragged(total, first, size, at, v, AXIS)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_descriptors_of_subarrays(axis):
    x = torch.arange(40.0 * 16).reshape(40, 16)
    along = axis % 2
    x = x if along == 0 else x.T.contiguous()
    y, total = torch.full_like(x, float("nan")), torch.ones_like(x)
    starts = torch.tensor([2, 7, 7, 24, 40], dtype=torch.int32)
    block = [8, 16] if along == 0 else [16, 8]
    made = [create_ragged_descriptor(each, block, axis) for each in (x, y, total)]
    of_subarrays[(4,)](*made, starts, BLOCK=8, AXIS=along)
    factors = torch.repeat_interleave(torch.arange(1.0, 5), starts.diff())
    expected = x.narrow(along, 2, 38) * (factors[:, None] if along == 0 else factors)
    assert torch.equal(y.narrow(along, 2, 38), expected) and y.narrow(along, 0, 2).isnan().all()
    assert torch.equal(total.narrow(along, 2, 38), x.narrow(along, 2, 38) + 1)
    with pytest.raises(ValueError, match="axis of 2, but got 2"):
        create_ragged_descriptor(x, block, 2)


def test_rates_of_the_device():
    assert triton.testing.get_dram_gbps() > 500
    clock = 1e6 * weft.targets.gpu_named("A100").clock
    assert triton.testing.get_max_tensorcore_tflops(torch.bfloat16, clock) > 100
    assert triton.testing.get_max_simd_tflops(torch.float32, clock) > 10
    with pytest.raises(ValueError, match=r"but got torch\.int32"):
        triton.testing.get_max_simd_tflops(torch.int32, clock)


@triton.autotune([triton.Config({}, num_warps=warps) for warps in (1, 2)], key=[], cache_results=False)
@triton.jit
def reads_what_is_masked(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, wl.load(x + at, at < n))  # the language's own, which Triton's fills with 0


@triton.jit
def sums_of_rows(x, tables, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < n
    total = tl.sum(tl.load(x + at, mask=inside).to(tl.float32), 0)
    edge = tl.sum(tl.load(tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,)), boundary_check=(0,)).to(tl.float32))
    row = tl.load(tables + at, inside).to(tl.pointer_type(tl.int32))
    tl.store(y, total)
    tl.store(y + 1, edge + tl.sum(tl.load(row, inside), 0))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.int64])
def test_what_a_mask_leaves_out_is_zero(kind, seed):
    """Triton's code for NVIDIA's GPUs has 0 there, and kernels add it up."""
    x = torch.from_numpy(np.random.default_rng(seed).integers(-9, 9, 50).astype(kind))
    row, y = torch.arange(50, dtype=torch.int32), torch.full((2,), torch.nan)
    sums_of_rows[(1,)](x, row.data_ptr() + 4 * torch.arange(50), y, 50, BLOCK=64)
    assert y.tolist() == [x.sum(), x.sum() + row.sum()]


def test_a_trial_keeps_to_the_checks_that_were_chosen(monkeypatch):
    x, y = np.ones(64, np.float32), np.zeros(64, np.float32)
    trial = functools.partial(reads_what_is_masked._bench, x, y, 60, BLOCK=64, config=triton.Config({}), grid=(1,))
    assert trial()[0] == float("inf")
    monkeypatch.setenv("WEFT_SIMULATOR_CHECKS", "races")
    assert 0 < trial()[0] < 1


GLUON = """
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
import triton.language as tl
import torch

COUNT = gl.constexpr(3)
barrier = getattr(gl, "thread_barrier", None) or gl.barrier

@gluon.constexpr_function
def layout_of(warps):
    return gl.BlockedLayout([1, 8], [4, 8], [warps, 1], [1, 0])

@triton.jit
def three(y):
    tl.store(y, COUNT)

y = torch.zeros(1)
three[(1,)](y)
assert y == 3 and gl.float32 is tl.float32
try:
    @gluon.jit
    def copy(x, y, layout: gl.constexpr = layout_of(4)):
        gl.store(y, gl.load(x))
except ImportError as error:
    assert isinstance(error, triton.TritonError)
    print(error)
"""


def test_names_of_gluon_are_imported_and_a_declaration_is_an_import_error(tmp_path):
    (tmp_path / "script.py").write_text(GLUON)
    command = [sys.executable, "-m", "weft.triton", str(tmp_path / "script.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("expected kernels of the tile language, but 'copy' of __main__ is Gluon's")
