# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit floats: by instructions for them where the target has these (those of warpgroups take operands
along K), their sums promoted to float32 as ``max_num_imprecise_acc`` says; converted to float16 elsewhere. Against
float64.
"""

import math

import float8_sums
import numpy as np
import pytest
import torch
import weft
import weft.language as wl
import weft.simulator
from test_boxes import boxed
from test_warpgroups import TARGET

KINDS = {"fp8e4nv": (torch.float8_e4m3fn, "e4m3"), "fp8e5": (torch.float8_e5m2, "e5m2")}


@weft.jit
def product(
    a, b, c, M, N, K, sam, sbk, sbn, scm,
    BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, RUN: wl.constexpr,
):  # fmt: skip
    m = wl.program_id(0) * BM + wl.arange(0, BM)
    n = wl.program_id(1) * BN + wl.arange(0, BN)
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for start in range(0, K, BK):
        k = start + wl.arange(0, BK)
        left = wl.load(a + m[:, None] * sam + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = wl.load(b + k[:, None] * sbk + n[None, :] * sbn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = wl.dot(left, right, acc, max_num_imprecise_acc=RUN)
    wl.store(c + m[:, None] * scm + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


TILE = (64, 64, 64)


def text_of(kind, along="k", run=None, tile=TILE, c=16):
    unit = "sbk=1, sbn:i32:16" if along == "k" else "sbk:i32:16, sbn=1"
    BM, BN, BK = tile
    return (
        f"a:*{kind}:16, b:*{kind}:16, c:*fp32:{c}, M:i32:16, N:i32:16, K:i32:16, sam:i32:16, {unit}, scm:i32:16, "
        f"BM={BM}, BN={BN}, BK={BK}, RUN={run}"
    )


def judge(kernel, kind, along="k", sizes=(80, 96, 176), tile=TILE, seeds=2, own=None, step=float8_sums.STEP):
    """Products of two 8-bit floats are float32's, and so are exact; float32 sums of K numbers are wrong by K ulps of
    the sum of magnitudes at most. Instructions for such floats have sums of fewer bits, which are known exactly:
    ``own`` is along how much of K they run, ``step`` how many they add at once."""
    seed = torch.seed()
    print("seed", seed)
    M, N, K = sizes
    dtype = KINDS[kind][0]
    for each in range(seeds):
        a, b = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype)
        a64, b64 = a.double().numpy(), b.double().numpy()
        stored = b.view(torch.uint8).numpy()
        stored = np.ascontiguousarray(stored.T if along == "k" else stored)
        c = np.full((M, N), np.nan, np.float32)
        scalars = [np.int32(x) for x in (M, N, K, K, stored.shape[1], N)]
        report = weft.simulator.launch(
            kernel.ptx, kernel.name, (math.ceil(M / tile[0]), math.ceil(N / tile[1])), (32 * kernel.num_warps,),
            [a.view(torch.uint8).numpy(), stored, c, *scalars], shared=kernel.shared_bytes, seed=each,
        )  # fmt: skip
        assert report.findings == []
        if own is None:
            bound = K * 2.0**-23 * (np.abs(a64) @ np.abs(b64))
            assert (np.abs(c - a64 @ b64) <= bound).all()
        else:
            np.testing.assert_array_equal(c, float8_sums.product(a, b.T, own, step).numpy())
    return report


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("run", [None, 64, 2**30])
def test_instructions_of_their_own(kind, run):
    """Copied by boxes and by threads; promoted after each product, or not at all."""
    short = KINDS[kind][1]
    for kernel in (
        boxed(product, text_of(kind, run=run), 4, 3),
        product.compile(text_of(kind, run=run), target=TARGET, num_warps=4, num_stages=3),
    ):
        assert f"k32.f32.{short}.{short}" in kernel.ptx and "cvt.rn.f16x2" not in kernel.ptx
        assert (kernel.ptx.count("add.rn.f32") + kernel.ptx.count("add.f32") >= 32) == (run != 2**30)
        report = judge(kernel, kind, own=TILE[2] if run != 2**30 else 2**30)
        assert report.counters["wgmma"] > 0


def test_boxes():
    kernel = boxed(product, text_of("fp8e4nv"), 4, 3)
    assert "cp.async.bulk.tensor" in kernel.ptx and "cp.async.cg" not in kernel.ptx
    assert "type=u8" in kernel.ptx


@pytest.mark.parametrize("tile, warps", [((64, 32, 32), 4), ((128, 128, 128), 8), ((64, 64, 256), 4)])
def test_lines_and_panels(tile, warps):
    """Lines of 32 and 128 bytes, and panels of them."""
    kernel = boxed(product, text_of("fp8e4nv", tile=tile), warps, 2)
    assert "cp.async.bulk.tensor" in kernel.ptx
    judge(kernel, "fp8e4nv", tile=tile, sizes=(144, 160, 304), seeds=1, own=tile[2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("along", ["k", "n"])
@pytest.mark.parametrize("run", [None, 2**30])
@pytest.mark.parametrize("target", ["sm_89", "sm_120"])
def test_instructions_of_warps(kind, target, run, along):
    """Operands along either axis. sm_89 promotes after each product, or not at all; sm_120 keeps float32's sums."""
    short = KINDS[kind][1]
    kernel = product.compile(text_of(kind, along, run), target=target, num_warps=4, num_stages=2)
    assert f"m16n8k32.row.col.f32.{short}.{short}.f32" in kernel.ptx and ".f16" not in kernel.ptx
    promotes = kernel.ptx.count("add.rn.f32") + kernel.ptx.count("add.f32") >= 32
    assert promotes == (target == "sm_89" and run is None)
    own = (TILE[2] if run is None else 2**30) if target == "sm_89" else None
    judge(kernel, kind, along, seeds=1, own=own, step=16)


@weft.jit
def product_in_halves(a, b, c, BM: wl.constexpr, BN: wl.constexpr, K: wl.constexpr, BK: wl.constexpr):
    m, n, k = wl.arange(0, BM), wl.arange(0, BN), wl.arange(0, BK)
    acc = wl.zeros((BM, BN), dtype=wl.float16)
    for start in range(0, K, BK):
        left = wl.load(a + m[:, None] * K + (start + k)[None, :])
        right = wl.load(b + n[None, :] * K + (start + k)[:, None])
        acc = wl.dot(left, right, acc, out_dtype=wl.float16)
    wl.store(c + m[:, None] * BN + n[None, :], acc)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_120"])
def test_sums_of_float16(kind, target, seed):
    """By instructions of single warps where the target has them. Each of the K / 16 sums of an instruction is off by
    its 14 bits and float16's rounding."""
    M, N, K = 64, 32, 128
    text = f"a:*{kind}:16, b:*{kind}:16, c:*fp16:16, BM={M}, BN={N}, K={K}, BK=64"
    kernel = product_in_halves.compile(text, target=target, num_warps=4, num_stages=2)
    short = KINDS[kind][1]
    has = target in ("sm_89", "sm_120")
    assert (f"m16n8k32.row.col.f16.{short}.{short}.f16" in kernel.ptx) == has
    torch.manual_seed(seed)
    a, b = (torch.randn(size, K).to(KINDS[kind][0]) for size in (M, N))
    c = np.full((M, N), np.nan, np.float16)
    arguments = [*(x.view(torch.uint8).numpy() for x in (a, b)), c]
    report = weft.simulator.launch(kernel.ptx, kernel.name, 1, (128,), arguments, shared=kernel.shared_bytes)
    assert report.findings == []
    size = (a.double().abs() @ b.double().abs().T).numpy()
    assert (np.abs(c - (a.double() @ b.double().T).numpy()) <= K // 16 * size * (2.0**-11 + 17 * 2.0**-13)).all()


@weft.jit
def converted(x, y, N: wl.constexpr):
    i = wl.arange(0, N)
    wl.store(y + i, wl.load(x + i).to(wl.float16))


def test_versions():
    """PTX of sm_89 is of the version that has what is in it: older drivers take what needs none of it."""

    def version(kernel, text, target):
        ptx = kernel.compile(text, target=target, num_warps=4).ptx
        return ptx[ptx.index(".version ") + 9 :].split()[0]

    assert version(converted, "x:*fp32, y:*fp16, N=128", "sm_89") == "8.0"
    assert version(converted, "x:*fp8e4nv, y:*fp16, N=128", "sm_89") == "8.1"
    assert version(product, text_of("fp8e5"), "sm_89") == "8.4"
    halves = "a:*fp8e5:16, b:*fp8e5:16, c:*fp16:16, BM=64, BN=32, K=128, BK=64"
    assert version(product_in_halves, halves, "sm_89") == "8.7"
    assert version(product, text_of("fp8e5"), "sm_90a") == "8.0"
    assert version(converted, "x:*fp32, y:*fp16, N=128", "sm_120") == "8.7"


def test_a_step_of_one_and_a_half_instructions():
    kernel = product.compile(text_of("fp8e4nv", tile=(64, 64, 48)), target="sm_120", num_warps=4, num_stages=2)
    assert ".e4m3.e4m3" in kernel.ptx
    judge(kernel, "fp8e4nv", tile=(64, 64, 48), seeds=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "target, along, run", [(TARGET, "n", None), (TARGET, "k", 32), ("sm_80", "k", None), ("sm_80", "n", 2**30)]
)
def test_converted(kind, target, along, run):
    """Along N, with fewer inexact sums than K asked for, and on targets without such instructions."""
    kernel = product.compile(text_of(kind, along, run), target=target, num_warps=4, num_stages=2)
    assert ".f32.e" not in kernel.ptx and ".f16" in kernel.ptx
    judge(kernel, kind, along, seeds=1)


@weft.jit
def scores_and_values(q, k, v, o, BM: wl.constexpr, BN: wl.constexpr, D: wl.constexpr):
    """softmax(q · kᵀ) in e4m3 · v, v along the keys."""
    i, j, d = wl.arange(0, BM), wl.arange(0, BN), wl.arange(0, D)
    scores = wl.dot(wl.load(q + i[:, None] * D + d[None, :]), wl.load(k + j[None, :] * D + d[:, None]))
    p = wl.exp(scores - wl.max(scores, 1)[:, None])
    values = wl.load(v + j[:, None] + d[None, :] * BN)
    out = wl.dot(p.to(q.dtype.element_ty), values) / wl.sum(p, 1)[:, None]
    wl.store(o + i[:, None] * D + d[None, :], out)


def test_a_computed_operand():
    """What was converted to 8 bits is an operand too, in a chain of such products."""
    BM, BN, D = 64, 64, 64
    kernel = scores_and_values.compile(
        f"q:*fp8e4nv:16, k:*fp8e4nv:16, v:*fp8e4nv:16, o:*fp32:16, BM={BM}, BN={BN}, D={D}", target=TARGET, num_warps=4
    )
    assert kernel.ptx.count("k32.f32.e4m3.e4m3") == 4
    print("seed", torch.seed())
    q, k, v = ((torch.randn(64, 64) * 0.5).to(torch.float8_e4m3fn) for _ in range(3))
    o = np.full((BM, D), np.nan, np.float32)
    report = weft.simulator.launch(
        kernel.ptx, kernel.name, (1,), (128,), [*(x.view(torch.uint8).numpy() for x in (q, k, v)), o],
        shared=kernel.shared_bytes,
    )  # fmt: skip
    assert report.findings == []
    scores = q.double() @ k.double().T
    p = torch.exp(scores - scores.amax(1, keepdim=True))
    wanted, size = (p @ v.double().T) / p.sum(1, keepdim=True), (p @ v.double().T.abs()) / p.sum(1, keepdim=True)
    # e4m3 rounds each of p by 2⁻⁴ of itself at most, and by 2⁻¹⁰ where it is subnormal.
    least = 2.0**-10 * v.double().T.abs().sum(0) / p.sum(1, keepdim=True)
    assert (np.abs(o - wanted.numpy()) <= (1.001 * (size / 16 + least)).numpy() + 1e-6).all()


@pytest.mark.parametrize("run", [-1, True, 1.5])
def test_a_wrong_number(run):
    with pytest.raises(weft.Error, match="'max_num_imprecise_acc' to be one of None and the integers from 0 on"):
        product.compile(text_of("fp8e4nv", run=run), target=TARGET)
