# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products of 8-bit elements that are neighbours along M or N in memory: `ldmatrix` turns them in pairs."""

import math

import pytest
import torch
import weft
import weft.language as wl


@weft.jit
def product(
    a, b, s, c, K,
    am, ak, bk, bn,
    M: wl.constexpr, N: wl.constexpr, BK: wl.constexpr, SUM: wl.constexpr, EPILOGUE: wl.constexpr,
):  # fmt: skip
    m, n, k = wl.arange(0, M), wl.arange(0, N), wl.arange(0, BK)
    left = a + m[:, None] * am + k[None, :] * ak
    right = b + k[:, None] * bk + n[None, :] * bn
    acc = wl.zeros((M, N), SUM)
    for _ in range(0, K, BK):
        acc = wl.dot(wl.load(left), wl.load(right), acc, out_dtype=SUM)
        left += BK * ak
        right += BK * bk
    if EPILOGUE == "scaled":
        acc = acc.to(wl.float32) * wl.load(s + n)[None, :]
    elif EPILOGUE == "summed":
        acc = acc.to(wl.float32) + wl.sum(acc, 1).to(wl.float32)[:, None]
    wl.store(c + m[:, None] * N + n[None, :], acc.to(wl.float32))


TYPES = {"int8": torch.int8, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def drawn(dtype, shape, generator):
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(-128, 128, shape, generator=generator).to(dtype)


def run(monkeypatch, target, kind, turned, sizes, warps, epilogue, seed):
    """The kernel's result, the exact one, and its PTX. turned: whether a, and b, are neighbours along M, and N."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    generator = torch.Generator().manual_seed(seed)
    M, N, BK = sizes
    K, dtype = 3 * BK, TYPES[kind]
    a, b = drawn(dtype, (M, K), generator), drawn(dtype, (K, N), generator)
    wide_a, wide_b = a.double(), b.double()
    a = a.mT.contiguous().mT if turned[0] else a
    b = b if turned[1] else b.mT.contiguous().mT
    s = torch.rand(N, generator=generator)
    c = torch.full((M, N), torch.nan)
    total = wl.float32 if dtype.is_floating_point else wl.int32
    made = product[(1,)](
        a, b, s, c, K, *a.stride(), *b.stride(),
        M=M, N=N, BK=BK, SUM=total, EPILOGUE=epilogue, num_warps=warps, num_stages=3,
    )  # fmt: skip
    exact = wide_a @ wide_b
    exact = {"scaled": exact * s.double(), "summed": exact + exact.sum(1, keepdim=True)}.get(epilogue, exact)
    return c.double(), exact, made.ptx


def single_bytes(ptx):
    return ptx.count("ld.shared.b8") + ptx.count("ld.shared.u8") + ptx.count("ld.shared.s8")


@pytest.mark.parametrize("epilogue", ["", "scaled", "summed"])
@pytest.mark.parametrize("turned", [(False, True), (True, False), (True, True)], ids=["b", "a", "both"])
@pytest.mark.parametrize("warps", [1, 4, 8])
def test_integers(monkeypatch, turned, warps, epilogue, seed):
    """Sums of int8 are exact."""
    got, exact, ptx = run(monkeypatch, "sm_80", "int8", turned, (64, 128, 64), warps, epilogue, seed)
    tolerance = 0 if not epilogue else 2e-6 * exact.abs().max()
    assert (got - exact).abs().max() <= tolerance
    assert single_bytes(ptx) == 0 and ".trans.shared.b16" in ptx


@pytest.mark.parametrize("sizes", [(16, 16, 32), (32, 32, 32), (128, 64, 128), (16, 256, 64), (256, 16, 32)])
def test_sizes(monkeypatch, sizes, seed):
    for turned in ((False, True), (True, True)):
        got, exact, _ = run(monkeypatch, "sm_80", "int8", turned, sizes, 4, "", seed)
        assert (got - exact).abs().max() == 0


@pytest.mark.parametrize("target", ["sm_89", "sm_90a", "sm_120"])
@pytest.mark.parametrize("kind", TYPES)
def test_targets(monkeypatch, kind, target, seed):
    """Sums of 8-bit floats keep fewer bits (docs/Language.md)."""
    for turned in ((False, True), (True, False), (True, True)):
        got, exact, ptx = run(monkeypatch, target, kind, turned, (64, 64, 64), 4, "scaled", seed)
        off = (got - exact).abs().max() / exact.abs().max()
        assert off <= (2**-11 if TYPES[kind].is_floating_point else 1e-6)
        assert single_bytes(ptx) == 0


@weft.jit
def attention(q, k, v, o, KEYS, D: wl.constexpr, BLOCK: wl.constexpr):
    m, n, d = wl.arange(0, BLOCK), wl.arange(0, BLOCK), wl.arange(0, D)
    queries = wl.load(q + m[:, None] * D + d[None, :])
    most = wl.full((BLOCK,), float("-inf"), wl.float32)
    total = wl.zeros((BLOCK,), wl.float32)
    acc = wl.zeros((BLOCK, D), wl.float32)
    for first in range(0, KEYS, BLOCK):
        scores = wl.dot(queries, wl.trans(wl.load(k + (first + n)[:, None] * D + d[None, :])))
        least = wl.maximum(most, wl.max(scores, 1))
        weights = wl.exp2(scores - least[:, None])
        shrunk = wl.exp2(most - least)
        total = total * shrunk + wl.sum(weights, 1)
        values = wl.load(v + (first + n)[:, None] * D + d[None, :])
        acc = wl.dot(weights.to(values.dtype), values, acc * shrunk[:, None])
        most = least
    wl.store(o + m[:, None] * D + d[None, :], acc / total[:, None])


@pytest.mark.parametrize("target", ["sm_89", "sm_120"])
def test_values_of_attention(monkeypatch, target, seed):
    """The second of two products in a chain: its columns are its own."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    torch.manual_seed(seed)
    q, k, v = ((torch.randn(n, 64) * 0.3).to(torch.float8_e4m3fn) for n in (64, 256, 256))
    o = torch.full((64, 64), torch.nan)
    made = attention[(1,)](q, k, v, o, 256, D=64, BLOCK=64, num_warps=4, num_stages=3)
    exact = torch.softmax(q.double() @ k.double().mT * math.log(2), 1) @ v.double()
    # a weight of e4m3 is off by a sixteenth at most, their errors cancel
    assert (o - exact).norm() / exact.norm() < 0.04
    assert single_bytes(made.ptx) == 0
