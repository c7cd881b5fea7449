# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What code for Triton writes now and then: mixed signs in shifts, comprehensions, named tuples, pointers as numbers,
batches of several axes, constant pointers, 16-bit atomics at an array's end."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
import weft
import weft.triton.language as tl
from weft import triton
from weft.compiler.diagnostics import CompilationError

SIGNED, UNSIGNED = (np.int8, np.int16, np.int32, np.int64), (np.uint8, np.uint16, np.uint32, np.uint64)


@triton.jit
def shifted(x, y, z, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(z + at, tl.load(x + at) >> tl.load(y + at))


@pytest.mark.parametrize("left", SIGNED + UNSIGNED)
@pytest.mark.parametrize("right", UNSIGNED)
def test_a_shift_keeps_the_sign_of_what_is_shifted(left, right, seed):
    rng = np.random.default_rng(seed)
    bits = 8 * max(np.dtype(left).itemsize, np.dtype(right).itemsize)
    limits = np.iinfo(left)
    x = rng.integers(limits.min, limits.max, 128, dtype=left, endpoint=True)
    y = rng.integers(0, bits, 128).astype(right)
    z = np.zeros(128, f"int{bits}" if left in SIGNED else f"uint{bits}")
    shifted[1,](x, y, z, N=128)
    np.testing.assert_array_equal(z, x.astype(z.dtype) >> y.astype(z.dtype))


class View(NamedTuple):
    pointer: tl.tensor
    shape: tuple


@triton.jit
def grown(values, by):
    return [each + by for each in values if each is not None]


@triton.jit
def named(pointer, shape):
    return View(pointer=pointer, shape=shape)


@triton.jit
def described(view, y, N: tl.constexpr):
    inner = named(view.pointer, grown((view.shape[0], None, 1), 1))
    for _ in range(2):
        inner = View(inner.pointer + 1, inner.shape)
    at = tl.arange(0, N)
    tl.store(y + at, tl.load(inner.pointer + at, mask=at < inner.shape[0], other=-1.0))
    total = 0
    for row in [i * j for i in tl.static_range(3) for j in tl.static_range(3) if i != j]:
        total += row
    tl.store(y + N, total)


def test_named_tuples_and_comprehensions(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(20).astype(np.float32), np.zeros(17, np.float32)
    described[1,](View(x, (7,)), y, N=16)
    np.testing.assert_array_equal(y[:16], np.where(np.arange(16) < 8, x[2:18], -1.0))
    assert y[16] == sum(i * j for i in range(3) for j in range(3) if i != j)


@triton.jit
def comprehends(x, KIND: tl.constexpr):
    if KIND == 0:
        tl.store(x, tl.sum([2 * i for i in range(tl.load(x))]))
    else:
        tl.store(x, [2 * i for i in (1, 2) if tl.load(x) > i])


@pytest.mark.parametrize(("kind", "message"), [(0, "what is not known now"), (1, "'if' of a tensor")])
def test_comprehensions_of_unknown_length_are_refused(kind, message):
    with pytest.raises(CompilationError, match=message):
        comprehends[1,](np.ones(4, np.int32), KIND=kind)


@triton.jit
def addresses(x, y, z, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.where(at % 2 == 0, x + at, x))
    moved = tl.inline_asm_elementwise("add.u64 $0, $1, 4;", "=l,l", [x + at], dtype=tl.int64, is_pure=True, pack=1)
    tl.store(z + at, moved)
    tl.store(z, 1) if tl.program_id(0) > 0 else tl.store(z + N, 2)


def test_pointers_are_numbers_in_memory_and_in_ptx():
    x, y, z = np.zeros(32, np.float32), np.zeros(32, np.int64), np.zeros(33, np.int64)
    addresses[1,](x, y, z, N=32)
    at = np.arange(32)
    np.testing.assert_array_equal(np.diff(y), np.diff(np.where(at % 2 == 0, 4 * at, 0)))
    np.testing.assert_array_equal(z[:32] - y[0], 4 * at + 4)
    assert z[32] == 2


@triton.jit
def batches(a, b, c, d, B0: tl.constexpr, B1: tl.constexpr, M: tl.constexpr):
    i, j = tl.arange(0, B0)[:, None, None, None], tl.arange(0, B1)[None, :, None, None]
    at = ((i * B1 + j) * M + tl.arange(0, M)[None, None, :, None]) * M + tl.arange(0, M)[None, None, None, :]
    left, right = tl.load(a + at), tl.load(b + at)
    tl.store(c + at, tl.dot(left, right))
    tl.store(d + at, tl.dot(left, right, acc=left.to(tl.float32)))


@pytest.mark.parametrize("batch", [(2, 2), (1, 3)])
def test_products_of_several_batch_axes(batch, seed):
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((*batch, 16, 16)).astype(np.float16) for _ in range(2))
    c, d = np.full(a.shape, np.nan, np.float32), np.full(a.shape, np.nan, np.float32)
    batches[1,](a, b, c, d, B0=batch[0], B1=batch[1], M=16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(d, expected + a, rtol=1e-3, atol=1e-3)


@triton.jit
def copies(x: tl.const, y, out: "tl.const", N: tl.constexpr, BACK: tl.constexpr):
    at = tl.arange(0, N)
    tl.store((out if BACK else y) + at, tl.load(x + at))


def test_nothing_is_stored_through_a_constant_pointer(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(32).astype(np.float32), np.zeros(32, np.float32)
    copies[1,](x, y, y, N=32, BACK=False)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(CompilationError, match="const"):
        copies[1,](x, y, y, N=32, BACK=True)


@triton.jit
def added(x, at, v, N: tl.constexpr):
    i = tl.arange(0, N)
    old = tl.atomic_add(x + tl.load(at + i), tl.load(v + i), mask=i < N - 1)
    tl.store(v + i, old, mask=i < N - 1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [25, 1])
def test_16_bit_atomics_touch_their_element_alone(dtype, size, seed):
    torch.manual_seed(seed)
    x, v = torch.zeros(size, dtype=dtype), torch.ones(64, dtype=dtype)
    at = torch.randint(0, size, (64,), dtype=torch.int32)
    added[1,](x, at, v, N=64)
    assert torch.equal(x.float(), torch.bincount(at[:63], minlength=size).float())
    assert v[:63].float().sum() == sum(n * (n - 1) / 2 for n in x.float().tolist())


def test_a_function_alone_makes_a_kernel(seed):
    rng = np.random.default_rng(seed)
    kernel = triton.JITFunction(copies.fn)
    x, y = rng.standard_normal(32).astype(np.float32), np.zeros(32, np.float32)
    kernel[1,](x, y, y, N=32, BACK=False)
    np.testing.assert_array_equal(x, y)
    assert weft.jit is triton.jit


@triton.jit
def redescribed(x, y, M, N, T: tl.constexpr, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [B, B])
    target = tl.make_tensor_descriptor(y, [M, N], [N, 1], [B, B])
    i = 0
    for step in range(2 * T):
        if step == T:
            source = tl.make_tensor_descriptor(x + M * N, [M, N], [N, 1], [B, B])
            target = tl.make_tensor_descriptor(y + M * N, [M, N], [N, 1], [B, B])
            i = 0
        target.store([0, i * B], source.load([0, i * B]) + 1)
        i += 1


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_descriptors_made_anew_in_a_loop(target, seed, monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", target)
    x = np.random.default_rng(seed).standard_normal((2, 13, 48)).astype(np.float32)
    y = np.zeros_like(x)
    redescribed[1,](x, y, 13, 48, T=3, B=16)
    np.testing.assert_array_equal(y, x + 1)


@triton.jit
def chosen(x, y, z, which, N: tl.constexpr):
    if which > 0:
        source = tl.make_tensor_descriptor(x, [N], [1], [N])
    else:
        source = tl.make_tensor_descriptor(y, [N], [1], [N], padding_option="nan" if which is None else "zero")
    tl.store(z + tl.arange(0, N), source.load([0]))


@pytest.mark.parametrize("which", [0, 7])
def test_descriptors_chosen_by_a_branch(which, seed):
    x, y = np.random.default_rng(seed).standard_normal((2, 16)).astype(np.float32)
    z = np.zeros(16, np.float32)
    chosen[1,](x, y, z, which, N=16)
    np.testing.assert_array_equal(z, x if which else y)


@triton.jit
def of_some_vendor(x, y, OTHER: tl.constexpr):
    kind = tl.float8e4b8 if OTHER else tl.float8e5
    tl.store(y + tl.arange(0, 32), tl.load(x + tl.arange(0, 32)).to(kind).to(tl.float32))


def test_types_of_other_machines_are_names_to_choose_between(seed):
    x, y = np.random.default_rng(seed).standard_normal(32).astype(np.float32), np.zeros(32, np.float32)
    of_some_vendor[1,](x, y, OTHER=False)
    np.testing.assert_array_equal(y, torch.tensor(x).to(torch.float8_e5m2).float())
    with pytest.raises(CompilationError, match="fp8e4b8, which NVIDIA's machines have not"):
        of_some_vendor[1,](x, y, OTHER=True)


def test_options_of_other_machines_and_of_launches(seed):
    x, y = np.random.default_rng(seed).standard_normal(32).astype(np.float32), np.zeros(32, np.float32)
    advice = {"waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 2}
    copies[1,](x, y, y, N=32, BACK=False, **advice)
    np.testing.assert_array_equal(x, y)


@triton.jit
def multiplied_and_added(x, y, z, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(z + at, tl.load(x + at) * tl.load(y + at) + 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_products_are_rounded_before_sums_where_that_is_asked(dtype, target, seed, monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", target)
    x, y = np.random.default_rng(seed).standard_normal((2, 256)).astype(dtype)
    apart, fused = np.zeros(256, dtype), np.zeros(256, dtype)
    multiplied_and_added[1,](x, y, apart, N=256, enable_fp_fusion=False)
    made = multiplied_and_added[1,](x, y, fused, N=256)
    np.testing.assert_array_equal(apart, x * y + dtype(1))
    wide = x.astype(np.longdouble) * y.astype(np.longdouble) + 1
    if dtype is np.float32:
        np.testing.assert_array_equal(fused, wide.astype(np.float32))
    assert "fma.rn" in made.ptx and (fused != apart).any()
    assert "fma.rn" not in multiplied_and_added.warmup(x, y, apart, N=256, enable_fp_fusion=False).ptx


@triton.jit
def spread(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    columns = at[None, :]
    inside = (at[:, None] < n) & (columns < 5)
    a = tl.load(x + columns, inside, other=7)
    b = tl.load(x + columns, columns < 5, other=at[:, None])
    c = tl.load(x + columns, inside)
    tl.store(y + at[:, None] * BLOCK + columns, a + 100 * b + 10000 * c)


def test_loads_spread_pointers_over_the_mask():
    x, y = np.arange(1, 9, dtype=np.int32), np.zeros((8, 8), np.int32)
    spread[1,](x, y, 3, BLOCK=8)
    at = np.arange(8)
    inside = (at[:, None] < 3) & (at < 5)
    b = np.where(at < 5, x, at[:, None])
    np.testing.assert_array_equal(y, np.where(inside, x, 7) + 100 * b + 10000 * np.where(inside, x, 0))


@triton.jit
def axes_of_scalars(y):
    row, column = tl.program_id(0), tl.program_id(1)
    where = row[:, None] * 4 + column[None, :]
    tl.static_assert(where.shape == [1])
    tl.static_assert(row[None, None].shape == [1, 1])
    tl.store(y + where, row[:, None] + 10 * column[None, :], mask=(row[:, None] < 2) & (column[None, :] < 3))


def test_new_axes_of_scalars():
    """Whole axes of a scalar name none, as in Triton."""
    y = np.zeros((3, 4), np.int32)
    axes_of_scalars[3, 4](y)
    expected = np.arange(3)[:, None] + 10 * np.arange(4)
    expected[2:], expected[:, 3:] = 0, 0
    np.testing.assert_array_equal(y, expected)


@triton.jit
def says(x):
    print("holds", tl.load(x))
    print("is done")


def test_prints_of_python(capfd):
    says[2,](np.array([42], np.int32))
    lines = sorted(capfd.readouterr().out.splitlines())
    assert lines == [f"pid ({i}, 0, 0) {text}" for i in range(2) for text in ("holds: 42", "is done")]


@triton.jit
def summed(x, y, n):
    total = 0.0
    for i in tl.range(0, n, num_stages=0, loop_unroll_factor=0):
        total += tl.load(x + i)
    tl.store(y, total)


def test_no_iterations_ahead_are_one():
    x, y = np.arange(9, dtype=np.float32), np.zeros(1, np.float32)
    compiled = summed[1,](x, y, 9, num_stages=0)
    assert y[0] == x.sum() and compiled.options.num_stages == 1


@triton.jit
def running(x, sums, products, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.static_assert(tl.cumsum(v, 0).dtype == v.dtype)
    tl.store(sums + at, tl.cumsum(v, 0))
    tl.store(products + at, tl.cumprod((1 + v / 64).to(v.dtype), 0, reverse=True))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_running_sums_are_rounded_once(kind, seed):
    x = torch.rand(256, generator=torch.Generator().manual_seed(seed)).to(kind)
    sums, products = torch.empty_like(x), torch.empty_like(x)
    running[1,](x, sums, products, BLOCK=256)
    factors = (1 + x.float() / 64).to(kind).double()
    unit = torch.finfo(kind).eps / 2 * 1.01
    torch.testing.assert_close(sums.double(), x.double().cumsum(0), rtol=unit, atol=0)
    torch.testing.assert_close(products.double(), factors.flip(0).cumprod(0).flip(0), rtol=unit, atol=0)


@triton.jit
def guarded(x, y, n, HAS: tl.constexpr):
    v = tl.load(x)
    if v > 3 and HAS:
        v += tl.load(y)
    if v > 100 or not HAS or n < 0:
        v += 1
    else:
        v += tl.load(y)
    has = HAS
    w = tl.load(y) if n > 2 and (v > 0 and has) else 0
    tl.store(x, v + w)
    tl.static_assert((v > 0 and 0) == 0)
    tl.static_assert((v > 0 or 7) == 7)


@pytest.mark.parametrize(("y", "expected"), [(None, 6), (np.array([7], np.int32), 26)])
def test_constants_decide_after_what_is_computed(y, expected):
    x = np.array([5], np.int32)
    guarded[1,](x, y, 5, HAS=y is not None)
    assert x[0] == expected
