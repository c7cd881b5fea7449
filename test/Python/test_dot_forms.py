# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Forms of ``dot`` that are made of matrix instructions' own: small sizes, batches, float32 in parts of bfloat16."""

import re

import numpy as np
import pytest
import torch
import weft
import weft.language as wl

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")

KINDS = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "int8": "i8", "float8_e4m3fn": "fp8e4nv"}


@weft.jit
def product(a, b, c, d, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, HOW: wl.constexpr, ADD: wl.constexpr):
    x = wl.load(a + wl.arange(0, M)[:, None] * K + wl.arange(0, K))
    y = wl.load(b + wl.arange(0, K)[:, None] * N + wl.arange(0, N))
    at = wl.arange(0, M)[:, None] * N + wl.arange(0, N)
    if ADD:
        wl.store(d + at, wl.dot(x, y, wl.load(c + at), input_precision=HOW))
    else:
        wl.store(d + at, wl.dot(x, y, input_precision=HOW))


def check(m, n, k, dtype, bound, how=None, add=True):
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    c, d = rng.standard_normal((m, n)).astype(np.float32), np.full((m, n), np.nan, np.float32)
    product[1,](a, b, c, d, M=m, N=n, K=k, HOW=how, ADD=add)
    exact = a.astype(float) @ b.astype(float) + add * c
    assert np.abs(d - exact).max() <= bound * np.abs(exact).max()


@pytest.mark.parametrize("shape", [(2, 16, 32), (16, 4, 32), (32, 32, 8), (1, 1, 16), (8, 8, 4)])
def test_sizes_below_those_of_the_machine(shape):
    check(*shape, np.float16, 1e-5)
    check(*shape, np.float32, 1e-5, "ieee", add=False)


@pytest.mark.parametrize(("how", "bound"), [("tf32", 2e-3), ("tf32x3", 2e-6), ("bf16x3", 1e-4), ("bf16x6", 2e-6)])
def test_float32_by_parts(how, bound):
    check(32, 32, 64, np.float32, bound, how)
    check(16, 16, 32, np.float32, bound, how, add=False)


@weft.jit
def matmul(a, b, c, K, M: wl.constexpr, N: wl.constexpr, BK: wl.constexpr, HOW: wl.constexpr):
    rows, columns, inner = wl.arange(0, M)[:, None], wl.arange(0, N), wl.arange(0, BK)
    acc = wl.zeros([M, N], wl.float32)
    for k in range(0, K, BK):
        x = wl.load(a + rows * K + k + inner)
        y = wl.load(b + (k + inner)[:, None] * N + columns)
        acc = wl.dot(x, y, acc, input_precision=HOW)
    wl.store(c + rows * N + columns, acc)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("shape", [(64, 64, 96, 32), (128, 128, 64, 32), (32, 32, 64, 32)])  # many sums, and few
@pytest.mark.parametrize("how", ["tf32x3", "bf16x6"])
def test_parts_of_infinities_and_of_no_numbers(how, shape, target, monkeypatch):
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    m, n, k, inner = shape
    a, b = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    for special in (False, True):
        if special:
            a[0, 3], a[1, 5], a[2, 7], b[7, 7], b[9, 9], b[3, 2] = np.inf, -np.inf, 1, np.nan, np.inf, 9000.7
        c = np.full((m, n), np.nan if not special else 5, np.float32)
        matmul[1,](a, b, c, k, M=m, N=n, BK=inner, HOW=how)
        with np.errstate(invalid="ignore"):
            exact = a.astype(float) @ b.astype(float)
        finite = np.isfinite(exact)
        assert np.array_equal(c[~finite], exact[~finite].astype(np.float32), equal_nan=True)
        assert np.abs(c[finite] - exact[finite]).max() <= 1e-6 * np.abs(exact[finite]).max()


def nearest_tf32(values, to_even):
    """The nearest numbers of TF32, as 64-bit floats: of two as near the even one, or the one that is farther from 0."""
    bits = values.view(np.uint32)
    half = np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1)) if to_even else np.uint32(0x1000)
    return (bits + half & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_120"])
@pytest.mark.parametrize("warps", [1, 4])
def test_tf32_is_rounded_or_truncated(target, warps, monkeypatch):
    """Where one instruction rounds, ties go to even; elsewhere, away from zero. A quarter of the operands are ties."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    for each in (a, b):
        ties = rng.random(each.shape) < 0.25
        each[ties] = ((each[ties].view(np.uint32) & np.uint32(0xFFFFE000)) | np.uint32(0x1000)).view(np.float32)
    c, found = np.zeros((64, 64), np.float32), {}
    for how in ("tf32", "tf32rz"):
        found[how] = np.full((64, 64), np.nan, np.float32)
        product[1,](a, b, c, found[how], M=64, N=64, K=64, HOW=how, ADD=False, num_warps=warps)
    cut = [(v.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64) for v in (a, b)]
    near = [nearest_tf32(v, target in ("sm_90a", "sm_120")) for v in (a, b)]
    assert np.abs(found["tf32rz"] - cut[0] @ cut[1]).max() < 2e-5
    assert np.abs(found["tf32"] - near[0] @ near[1]).max() < 2e-5
    exact = a.astype(np.float64) @ b
    assert np.abs(found["tf32"] - exact).mean() < 0.7 * np.abs(found["tf32rz"] - exact).mean()


@weft.jit
def widened(a, b, c, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, HOW: wl.constexpr):
    x = wl.load(a + wl.arange(0, M)[:, None] * K + wl.arange(0, K)).to(wl.float32)
    y = wl.load(b + wl.arange(0, N)[:, None] * K + wl.arange(0, K)).to(wl.float32)
    positive = wl.where(y > 0, y, 0.0)
    wl.store(c + wl.arange(0, M)[:, None] * N + wl.arange(0, N), wl.dot(x, wl.trans(positive), input_precision=HOW))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("left", "right", "made"),
    [
        ("float16", "float16", "f16"),
        ("bfloat16", "bfloat16", "bf16"),
        ("float16", "int8", "f16"),
        ("bfloat16", "float8_e4m3fn", "bf16"),
        ("float16", "bfloat16", "tf32"),
        ("float16", "float32", "tf32"),
    ],
)
@pytest.mark.parametrize("how", ["tf32", "tf32x3", "ieee"])
def test_products_of_what_was_widened(left, right, made, how, target, seed, monkeypatch):
    """They are those of 16 bits where both operands were of one kind; and exact, but of operands with more bits."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    torch.manual_seed(seed)
    M, N, K = 64, 32, 64
    a, b = torch.randn(M, K).to(getattr(torch, left)), (torch.randn(N, K) * 4).to(getattr(torch, right))
    a[0, 0], a[1, 1] = 6e-8, -65504.0  # a subnormal of float16, and its lowest number
    c = torch.full((M, N), torch.nan)
    widened[1,](a, b, c, M=M, N=N, K=K, HOW=how, num_warps=4)
    exact = a.double() @ b.double().clamp(min=0).T
    size = a.double().abs() @ b.double().abs().T
    assert ((c - exact).abs() <= (2e-6 if made != "tf32" or how != "tf32" else 1e-3) * size).all()
    signature = ", ".join(f"{n}: *{KINDS[t]}:16" for n, t in (("a", left), ("b", right), ("c", "float32")))
    ptx = widened.compile(signature, {"M": M, "N": N, "K": K, "HOW": how}, target, num_warps=4).ptx
    products = set(re.findall(r"mma[\w.:]*\.f32\.(\w+)\.\w+", ptx))
    assert products == (set() if how == "ieee" else {made})


def test_parts_of_what_is_infinite():
    a, b = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)
    a[0, 0], a[1, 0], a[2, 0] = np.inf, -np.inf, np.nan
    c, d = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    product[1,](a, b, c, d, M=16, N=16, K=16, HOW="bf16x3", ADD=True)
    np.testing.assert_array_equal(d, a @ b)


@weft.jit
def batch(a, b, c, d, B: wl.constexpr, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, HOW: wl.constexpr = None):
    i = wl.arange(0, B)[:, None, None]
    x = wl.load(a + (i * M + wl.arange(0, M)[None, :, None]) * K + wl.arange(0, K)[None, None, :])
    y = wl.load(b + (i * K + wl.arange(0, K)[None, :, None]) * N + wl.arange(0, N)[None, None, :])
    at = (i * M + wl.arange(0, M)[None, :, None]) * N + wl.arange(0, N)[None, None, :]
    wl.store(d + at, wl.dot(x, y, wl.load(c + at), input_precision=HOW))


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_batches(count):
    a, b = (
        rng.standard_normal((count, 16, 32)).astype(np.float16),
        rng.standard_normal((count, 32, 16)).astype(np.float16),
    )
    c, d = rng.standard_normal((count, 16, 16)).astype(np.float32), np.full((count, 16, 16), np.nan, np.float32)
    batch[1,](a, b, c, d, B=count, M=16, N=16, K=32)
    exact = a.astype(float) @ b.astype(float) + c
    assert np.abs(d - exact).max() <= 1e-5 * np.abs(exact).max()


PRECISE = {None: 2e-3, "tf32x3": 2e-6, "bf16x3": 1e-4, "ieee": 2e-6}


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize(
    ("count", "m", "n", "k"),
    [
        (2, 16, 16, 16),
        (4, 16, 32, 16),
        (8, 32, 16, 32),
        (2, 64, 64, 32),
        (16, 16, 16, 16),
        (2, 32, 128, 16),
        (4, 8, 16, 16),
    ],
)
def test_products_side_by_side(count, m, n, k, warps):
    """Of each type, by more and by fewer warps than products."""
    for dtype, how in [("float16", None), ("bfloat16", None), *(("float32", how) for how in PRECISE)]:
        a, b = (torch.from_numpy(rng.standard_normal((count, *size))) for size in ((m, k), (k, n)))
        a, b = a.to(getattr(torch, dtype)), b.to(getattr(torch, dtype))
        c, d = torch.from_numpy(rng.standard_normal((count, m, n))).float(), torch.full((count, m, n), torch.nan)
        batch[1,](a, b, c, d, B=count, M=m, N=n, K=k, HOW=how, num_warps=warps)
        exact = a.double() @ b.double() + c
        error = (d - exact).abs().max() / exact.abs().max()
        assert error <= (PRECISE[how] if dtype == "float32" else 1e-5), (dtype, how)


@weft.jit
def batches_in_a_loop(
    a, b, d, T, B: wl.constexpr, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, ADD: wl.constexpr
):
    i = wl.arange(0, B)[:, None, None]
    left = a + (i * M + wl.arange(0, M)[None, :, None]) * T * K + wl.arange(0, K)[None, None, :]
    right = b + (i * T * K + wl.arange(0, K)[None, :, None]) * N + wl.arange(0, N)[None, None, :]
    sums = wl.zeros((B, M, N), wl.float32)
    for t in range(T):
        if ADD:
            sums += wl.dot(wl.load(left + t * K), wl.load(right + t * K * N))
        else:
            sums = wl.dot(wl.load(left + t * K), wl.load(right + t * K * N), sums)
    wl.store(d + (i * M + wl.arange(0, M)[None, :, None]) * N + wl.arange(0, N)[None, None, :], sums)


@pytest.mark.parametrize("add", [False, True])
def test_side_by_side_in_a_loop(add):
    """Each product's matrix instructions are made once, by its own warps, and begin with the sums so far."""
    count, m, n, k, turns = 4, 16, 32, 32, 3
    a = rng.standard_normal((count, m, turns * k)).astype(np.float16)
    b = rng.standard_normal((count, turns * k, n)).astype(np.float16)
    d = np.full((count, m, n), np.nan, np.float32)
    kernel = batches_in_a_loop[1,](a, b, d, turns, B=count, M=m, N=n, K=k, ADD=add)
    assert "add.f32" not in kernel.ptx
    exact = a.astype(float) @ b.astype(float)
    assert np.abs(d - exact).max() <= 1e-5 * np.abs(exact).max()
    report = weft.simulator.launch(
        kernel.ptx, kernel.name, 1, 128, [a, b, d, np.int32(turns)], shared=kernel.shared_bytes
    )
    assert report.findings == []
    assert report.counters["mma_macs"] == count * m * n * turns * k


def test_batches_must_be_of_one_size():
    @weft.jit
    def kernel(x):
        wl.store(x, wl.sum(wl.dot(wl.zeros((2, 16, 16), wl.float16), wl.zeros((4, 16, 16), wl.float16))))

    with pytest.raises(weft.CompilationError, match="for 'dot', but got"):
        kernel.compile("x:*fp32")


@weft.jit
def integers(a, b, c, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, BY_COLUMNS: wl.constexpr):
    if BY_COLUMNS:
        x = wl.load(a + wl.arange(0, K)[:, None] * M + wl.arange(0, M)).T
        y = wl.load(b + wl.arange(0, K)[:, None] + wl.arange(0, N) * K)
    else:
        x = wl.load(a + wl.arange(0, M)[:, None] * K + wl.arange(0, K))
        y = wl.load(b + wl.arange(0, K)[:, None] * N + wl.arange(0, N))
    wl.store(c + wl.arange(0, M)[:, None] * N + wl.arange(0, N), wl.dot(x, y))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("shape", [(16, 16, 32), (64, 32, 64), (8, 16, 16), (16, 16, 16)])
def test_products_of_int8(shape, by_columns):
    m, n, k = shape
    a, b = (rng.integers(-128, 128, size).astype(np.int8) for size in ((m, k), (k, n)))
    c = np.full((m, n), -7, np.int32)
    stored = [np.ascontiguousarray(v.T) for v in (a, b)] if by_columns else [a, b]
    integers[1,](*stored, c, M=m, N=n, K=k, BY_COLUMNS=by_columns)
    np.testing.assert_array_equal(c, a.astype(int) @ b.astype(int))
