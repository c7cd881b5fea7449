# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products of 16 bits whose operands were loaded as 8 bits, neighbours along K: a thread has four of them, of both
operands. All numbers and sums of these tests are exact."""

import itertools

import numpy as np
import pytest
import torch
import weft
import weft.language as wl


@weft.jit
def product(
    a, b, c, M, N, K, bk, bn,
    TURNED: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, KIND: wl.constexpr,
):  # fmt: skip
    m, n = wl.program_id(0) * BM + wl.arange(0, BM), wl.program_id(1) * BN + wl.arange(0, BN)
    acc = wl.zeros((BM, BN), wl.float32)
    for start in range(0, K, BK):
        k = start + wl.arange(0, BK)
        left = wl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        if TURNED:
            at, mask = n[:, None] * bn + k[None, :] * bk, (n[:, None] < N) & (k[None, :] < K)
            right = wl.trans(wl.load(b + at, mask=mask, other=0).to(KIND))
        else:
            at, mask = k[:, None] * bk + n[None, :] * bn, (n[None, :] < N) & (k[:, None] < K)
            right = wl.load(b + at, mask=mask, other=0).to(KIND)
        acc = wl.dot(left.to(KIND), right, acc)
    wl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


TYPES = {"int8": torch.int8, "uint8": torch.uint8, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
WIDE = {"f16": (torch.float16, wl.float16), "bf16": (torch.bfloat16, wl.bfloat16)}


def drawn(dtype, shape, rng):
    least = 0 if dtype == torch.uint8 else -8
    return torch.from_numpy(rng.integers(least, 9, shape).astype(np.float32)).to(dtype)


def run(monkeypatch, target, kinds, wide, sizes, tile, warps, turned, rng, along_k=True, stages=3):
    """Compares the kernel's result with float64's, and gives its PTX."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    (M, N, K), (BM, BN, BK) = sizes, tile
    of_a, of_b = (TYPES.get(kind, WIDE[wide][0]) for kind in kinds)
    a, b = drawn(of_a, (M, K), rng), drawn(of_b, (K, N), rng)
    exact = a.double() @ b.double()
    b = b.mT.contiguous().mT if along_k else b
    c = torch.full((M, N), torch.nan)
    made = product[(-(-M // BM), -(-N // BN))](
        a, b, c, M, N, K, *b.stride(),
        TURNED=turned, BM=BM, BN=BN, BK=BK, KIND=WIDE[wide][1], num_warps=warps, num_stages=stages,
    )  # fmt: skip
    assert torch.equal(c.double(), exact)
    return made.ptx


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("kinds", list(itertools.product([*TYPES, ""], repeat=2)), ids=str)
def test_kinds(monkeypatch, kinds, wide, target, seed):
    """An empty name stands for an operand that was always wide."""
    rng = np.random.default_rng(seed)
    for turned in (False, True):
        run(monkeypatch, target, kinds, wide, (40, 80, 160), (16, 64, 32), 4, turned, rng)


@pytest.mark.parametrize("tile", [(16, 16, 16), (16, 128, 64), (64, 64, 128), (128, 16, 32), (32, 32, 64)])
def test_tiles(monkeypatch, tile, seed):
    rng = np.random.default_rng(seed)
    for warps, stages, along_k in itertools.product((1, 4, 8), (1, 3), (True, False)):
        sizes = tuple(int(rng.integers(1, 2 * size + 1)) for size in tile)
        kinds = (["e4m3", ""][rng.integers(2)], ["e5m2", "int8"][rng.integers(2)])
        run(monkeypatch, "sm_80", kinds, "f16", sizes, tile, warps, False, rng, along_k, stages)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kinds", [("", "int8"), ("", "e5m2"), ("e5m2", "e5m2")], ids=str)
def test_weights_are_not_exchanged(monkeypatch, kinds, turned, seed):
    """A loop waits for its copies, and for nothing else."""
    rng = np.random.default_rng(seed)
    ptx = run(monkeypatch, "sm_80", kinds, "f16", (16, 64, 256), (16, 64, 64), 4, turned, rng)
    loop = ptx[ptx.rindex("\n$L__", 0, ptx.index("mma.sync")) : ptx.rindex("mma.sync")]
    assert loop.count("bar.sync") == 1 and "st.shared" not in loop and "ldmatrix" in loop


@weft.jit
def packed_product(
    a, b, scales, c, M, N, K,
    FORM: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, GROUP: wl.constexpr,
):  # fmt: skip
    m, n = wl.program_id(0) * BM + wl.arange(0, BM), wl.program_id(1) * BN + wl.arange(0, BN)
    acc = wl.zeros((BM, BN), wl.float32)
    for start in range(0, K, BK):
        k = start + wl.arange(0, BK)
        left = wl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        scale = wl.load(scales + start // GROUP * N + n, mask=n < N, other=0)
        if FORM == "words":  # eight numbers of four bits, which lie along K
            at, mask = (k // 8)[:, None] * N + n[None, :], (n[None, :] < N) & (k[:, None] < K)
            number = wl.load(b + at, mask=mask, other=0) >> (k % 8 * 4)[:, None] & 15
            right = (number - 8).to(wl.float16) * scale[None, :]
        else:  # two in a byte
            at = start // 2 + wl.arange(0, BK // 2)
            bytes = wl.load(
                b + n[:, None] * (K // 2) + at[None, :], mask=(n[:, None] < N) & (at[None, :] < K // 2), other=0
            )
            both = wl.join((bytes & 15).to(wl.float16) - 8, (bytes >> 4).to(wl.float16) - 8)
            right = wl.trans(wl.reshape(both, (BN, BK)) * scale[:, None])
        acc = wl.dot(left, right, acc)
    wl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def run_packed(monkeypatch, target, form, sizes, tile, warps, rng, stages=3):
    """Compares with float64, and gives the PTX: all numbers and sums are exact."""
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    (M, N, K), (BM, BN, BK), group = sizes, tile, tile[2]
    a, numbers = drawn(torch.float16, (M, K), rng), torch.from_numpy(rng.integers(0, 16, (K, N)))
    scales = torch.from_numpy(rng.integers(1, 4, (-(-K // group), N)).astype(np.float16))
    if form == "words":
        words = sum(numbers[i::8] << 4 * i for i in range(8))
        b = torch.where(words >= 2**31, words - 2**32, words).int()
    else:
        b = (numbers[::2] | numbers[1::2] << 4).T.to(torch.uint8).contiguous()
    exact = a.double() @ ((numbers - 8).double() * scales.double().repeat_interleave(group, 0)[:K])
    c = torch.full((M, N), torch.nan)
    made = packed_product[(-(-M // BM), -(-N // BN))](
        a, b, scales, c, M, N, K, FORM=form, BM=BM, BN=BN, BK=BK, GROUP=group, num_warps=warps, num_stages=stages
    )
    assert torch.equal(c.double(), exact)
    return made.ptx


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("form", ["words", "bytes"])
@pytest.mark.parametrize(
    "tile", [(16, 16, 16), (16, 128, 64), (32, 64, 64), (64, 64, 128), (128, 16, 32), (16, 32, 256)]
)
def test_packed_weights(monkeypatch, tile, form, target, seed):
    rng = np.random.default_rng(seed)
    for warps, stages in itertools.product((1, 4, 8), (1, 3)):
        M, N, K = (int(rng.integers(1, 2 * size + 1)) for size in tile)
        run_packed(monkeypatch, target, form, (M, N, 8 * -(-K // 8)), tile, warps, rng, stages)


@pytest.mark.parametrize("form", ["words", "bytes"])
@pytest.mark.parametrize("rows", [16, 32, 64])
def test_packed_weights_are_not_exchanged(monkeypatch, rows, form, seed):
    """They are taken apart where products have them: only the other operand's copies go through shared memory."""
    rng = np.random.default_rng(seed)
    ptx = run_packed(monkeypatch, "sm_80", form, (rows, 64, 256), (rows, 64, 64), 4, rng)
    loop = ptx[ptx.rindex("\n$L__", 0, ptx.index("mma.sync")) : ptx.rindex("mma.sync")]
    assert loop.count("bar.sync") <= 1 and "st.shared" not in loop
