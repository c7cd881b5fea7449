# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products whose sums are in tensor memory: right against float64 in every form, no finding of the simulator whatever
is early or late, nothing that it advises against, no spill; and what does not fit there, by instructions of warps.
"""

import math
import pathlib
import re
import sys

import numpy as np
import pytest
import test_warpgroups as products
import weft
import weft.language as wl
import weft.simulator
from weft.compiler.ptxas import assemble
from weft.programs.compiled import compiled
from weft.targets import targets

sys.path.append(str(pathlib.Path(__file__).parents[1] / "Simulator"))
import mutations

TARGET = "sm_100a"


def judge(kernel, *args, **options):
    """As for products in registers, and nothing is advised against."""
    assert "tcgen05.mma" in kernel.ptx and "mma.sync" not in kernel.ptx
    report = products.judge(kernel, *args, counter="tcgen05_mma", **options)
    assert report.advisories == []
    return report


def run_block(kernel, arrays, seed):
    """One block of a kernel, in which nothing is at fault."""
    report = weft.simulator.launch(
        kernel.ptx, kernel.name, 1, 32 * kernel.num_warps, arrays, shared=kernel.shared_bytes, seed=seed
    )
    assert report.findings == []


#: Lines of 32, 64 and 128 bytes and panels of them; two tiles of a warpgroup; warpgroups along both axes. Instructions
#: of 64 rows, whose sums lie in half of the lanes, and of 128.
TILES = [
    ((64, 16, 16), 4),
    ((64, 256, 32), 4),
    ((64, 128, 64), 8),
    ((128, 16, 16), 4),
    ((128, 64, 64), 4),
    ((256, 32, 32), 4),
    ((128, 128, 32), 8),
    ((256, 64, 64), 8),
    ((128, 256, 64), 8),
    ((256, 128, 32), 16),
]


#: Those of 8 bits, whose instructions are twice as deep.
EIGHT_BIT_TILES = [
    ((64, 16, 32), 4),
    ((64, 32, 64), 8),
    ((64, 128, 128), 4),
    ((128, 32, 32), 4),
    ((128, 128, 64), 8),
    ((128, 256, 128), 8),
    ((256, 64, 32), 8),
]


@pytest.mark.parametrize("order", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("tile, warps", TILES)
def test_every_order_of_operands(tile, warps, order):
    kernel = products.compile_matmul(order=order, tile=tile, warps=warps, target=TARGET)
    judge(kernel, (tile[0], tile[1], 3 * tile[2]), tile, warps, order=order, seeds=2)


@pytest.mark.parametrize("dtype", products.EIGHT_BITS)
@pytest.mark.parametrize("order", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("tile, warps", EIGHT_BIT_TILES)
def test_every_order_of_8_bits(tile, warps, order, dtype):
    """Descriptors turn them too, and boxes are copied as they lie; a warpgroup's 16 columns are no whole line."""
    kernel = products.compile_matmul(dtype, order, tile, warps, exact=True, target=TARGET)
    judge(kernel, (tile[0], tile[1], 3 * tile[2]), tile, warps, dtype, order, seeds=2)
    if tile[1] >= 32 * (warps // 4):
        assert "ld.global" not in kernel.ptx
    kernel = products.compile_matmul(dtype, order, tile, warps, target=TARGET)
    judge(kernel, (tile[0] + 16, tile[1] + 16, 2 * tile[2] + 16), tile, warps, dtype, order, seeds=2)


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_ragged_sizes(dtype, stages):
    """f32 is rounded to TF32 on its way to shared memory."""
    tile = (128, 64, 32)
    kernel = products.compile_matmul(dtype, tile=tile, stages=stages, target=TARGET)
    judge(kernel, (144, 96, 112), tile, 4, dtype, seeds=2)


def test_instructions():
    """128 × 256 × 64 on 8 warps is 4 instructions for each warpgroup, which nothing but their own thread starts."""
    tile = (128, 256, 64)
    kernel = products.compile_matmul(tile=tile, warps=8, exact=True, target=TARGET)
    counters = judge(kernel, tile, tile, 8, seeds=1).counters
    assert counters["tcgen05_mma"] == 2 * 4
    assert counters["mma_macs"] == math.prod(tile)


@weft.jit
def small(a, b, c, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, TURNED: wl.constexpr):
    m, n, k = wl.arange(0, M), wl.arange(0, N), wl.arange(0, K)
    at_b = k[:, None] * N + n[None, :] if TURNED else n[None, :] * K + k[:, None]
    x, y = wl.load(a + m[:, None] * K + k[None, :]), wl.load(b + at_b)
    wl.store(c + m[:, None] * N + n[None, :], wl.dot(x, y, out_dtype=wl.int32))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("warps", [4, 8])
def test_integers(warps, turned):
    """Of 8 bits, along K and along N: the sums of int64 to the bit."""
    kernel = small.compile("a:*i8:16, b:*i8:16, c:*i32:16, M=128, N=64, K=128", {"TURNED": turned}, TARGET, warps)
    assert "tcgen05.mma.cta_group::1.kind::i8" in kernel.ptx
    rng = np.random.default_rng()
    a, b = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in ((128, 128), (128, 64)))
    stored = b if turned else np.ascontiguousarray(b.T)
    for seed in range(3):
        c = np.full((128, 64), -(2**31), np.int32)
        run_block(kernel, [a, stored, c], seed)
        np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


#: Head sizes, rows, keys, warps: one and two warpgroups, scores and sums of one and of several instructions.
ATTENTION = [
    (64, 64, 64, 4),
    (128, 64, 128, 8),
    (64, 128, 64, 4),
    (64, 256, 128, 8),
    (128, 256, 128, 8),
    (256, 128, 64, 4),
    (16, 128, 128, 4),
    (64, 512, 64, 16),
]


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("D, BM, BN, warps", ATTENTION)
def test_attention(D, BM, BN, warps, dtype):
    """Weights go from the first product's sums through registers into the second's operand."""
    start = np.random.SeedSequence().entropy
    print("seed", start)
    kernel = products.compile_attention(D, BM, BN, warps, dtype, target=TARGET)
    assert "tcgen05.mma" in kernel.ptx and "mma.sync" not in kernel.ptx
    products.attends(kernel, np.random.default_rng(start), D, BM, warps, dtype)


@pytest.mark.parametrize("D, BM, BN, warps", [(256, 256, 128, 8), (128, 512, 128, 16)])
def test_what_does_not_fit(D, BM, BN, warps):
    """Sums and weights of 384 and 320 columns for each warpgroup: by instructions of warps, and right."""
    kernel = products.compile_attention(D, BM, BN, warps, target=TARGET)
    assert "tcgen05" not in kernel.ptx and "mma.sync" in kernel.ptx
    products.attends(kernel, np.random.default_rng(3), D, BM, warps, "fp16")


@products.needs_ptxas
@pytest.mark.parametrize("D", [64, 96, 128])
def test_nothing_spills(D):
    """Programs, forward and backward, at their default schedules. (Of 256 channels the forward spills 4 bytes.)"""
    text = ", ".join(f"{name}:fp16[B,H,N,{D}]:16" for name in "qkv")
    form = compiled(products.grouped.declare(text), TARGET, differentiate=True)
    assert "tcgen05.mma" in form.ptx and "mma.sync" not in form.ptx
    found = assemble(form.ptx, TARGET)
    assert (found.spill_store_bytes, found.spill_load_bytes) == (0, 0)


def test_what_is_dropped_is_found():
    """Each commit, each wait for products or copies and the end of the allocation has to be there; so has the meeting
    before each product of a loop that threads load and store in. (Fences the simulator only advises.)"""
    N, rng = 200, np.random.default_rng(7)
    kernel = products.compile_attention(64, 128, 64, 4, target=TARGET)
    q, k, v = (rng.standard_normal((N, 64)).astype(np.float16) for _ in range(3))
    notes = "\n".join(line for line in kernel.ptx.splitlines() if line.startswith("// weft."))

    def run(text, seed):
        out = np.full((N, 64), np.nan, np.float32)
        return weft.simulator.launch(
            f"{text}\n{notes}", kernel.name, (2,), 32 * kernel.num_warps, [q, k, v, out, np.int32(N)],
            shared=kernel.shared_bytes, seed=seed, limit=400_000,
        )  # fmt: skip

    needed = [
        drop
        for drop in mutations.drops(kernel.ptx)
        if re.match(r"@acts tcgen05\.commit|@%p\d+ tcgen05\.dealloc|mbarrier\.try_wait", drop.instruction)
    ]
    assert len(needed) >= 10
    lost = [drop.instruction for drop in needed if not mutations.is_found(drop, run, seeds=(0, 1, 2, 5))]
    assert not lost
    meetings = [drop for drop in mutations.drops(kernel.ptx) if re.match(r"bar\.sync %r\d+, 128", drop.instruction)]
    assert sum(mutations.is_found(drop, run, seeds=(0, 1, 2, 5)) for drop in meetings) >= 2


@weft.jit
def several(a, b, out, swaps, BM: wl.constexpr, BN: wl.constexpr):
    """Two sums that change places, one that starts from the other's, and one that a branch scales."""
    m, n = wl.arange(0, BM), wl.arange(0, BN)
    x, y = wl.load(a + m[:, None] * BN + n[None, :]), wl.load(b + n[:, None] * BN + n[None, :])
    one, two = wl.zeros((BM, BN), wl.float32), wl.zeros((BM, BN), wl.float32)
    for i in range(0, swaps):
        three = wl.dot(x, y, one)
        one, two = two, three
        if i % 2 == 1:
            two = two * 0.5
    four = wl.dot(x, y, one)
    five = wl.dot(x, y, one)
    wl.store(out + m[:, None] * BN + n[None, :], four + 2.0 * five + 3.0 * two)


@pytest.mark.parametrize("swaps", [0, 1, 2, 5])
def test_sums_that_go_several_ways(swaps):
    """Whatever a tile holds when it is read: that of the value."""
    kernel = several.compile("a:*fp16:16, b:*fp16:16, out:*fp32:16, swaps:i32, BM=128, BN=64", target=TARGET)
    assert "tcgen05.mma" in kernel.ptx
    rng = np.random.default_rng()
    a, b = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((64, 64)).astype(np.float16)
    once = a.astype(np.float64) @ b.astype(np.float64)
    one = two = np.zeros_like(once)
    for i in range(swaps):
        one, two = two, one + once
        if i % 2 == 1:
            two = two * 0.5
    for seed in range(4):
        out = np.full((128, 64), np.nan, np.float32)
        run_block(kernel, [a, b, out, np.int32(swaps)], seed)
        np.testing.assert_allclose(out, 3.0 * (once + one) + 3.0 * two, atol=1e-4)


@weft.jit
def read_late(a, b, out, half, BM: wl.constexpr, BN: wl.constexpr):
    """What is scaled in place, or narrowed, behind a product that went on from it."""
    m, n = wl.arange(0, BM), wl.arange(0, BN)
    x, y = wl.load(a + m[:, None] * BN + n[None, :]), wl.load(b + n[:, None] * BN + n[None, :])
    one = wl.dot(x, y)
    two = wl.dot(x, y, one)
    three = wl.dot(x, y, one * 0.5)
    four = three * 2.0
    three = wl.dot(x, y, three)
    wl.store(half + m[:, None] * BN + n[None, :], four.to(wl.float16))
    wl.store(out + m[:, None] * BN + n[None, :], two + 4.0 * three)


def test_sums_that_are_read_late():
    """A value is that of its line, whatever its tile holds behind it."""
    kernel = read_late.compile("a:*fp16:16, b:*fp16:16, out:*fp32:16, half:*fp16:16, BM=128, BN=64", target=TARGET)
    assert "tcgen05.mma" in kernel.ptx
    rng = np.random.default_rng()
    a, b = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((64, 64)).astype(np.float16)
    once = a.astype(np.float64) @ b.astype(np.float64)
    for seed in range(4):
        out, half = np.full((128, 64), np.nan, np.float32), np.full((128, 64), np.nan, np.float16)
        run_block(kernel, [a, b, out, half], seed)
        np.testing.assert_allclose(out, 12.0 * once, atol=1e-4)
        np.testing.assert_allclose(half, 3.0 * once, rtol=1e-3, atol=1e-4)


@weft.jit
def in_turns(a, b, out, n, BM: wl.constexpr, BN: wl.constexpr):
    """Two operands that threads computed, one from before the loop, take turns."""
    m, k = wl.arange(0, BM), wl.arange(0, BN)
    x, y = wl.load(a + m[:, None] * BN + k[None, :]), wl.load(b + k[:, None] * BN + k[None, :])
    s = wl.dot(x, y)
    p = wl.minimum(wl.maximum(s, -2.0), 2.0).to(wl.float16)
    acc = wl.dot(p, y)
    for i in range(0, n):
        q = wl.minimum(wl.maximum(s + i, -3.0), 3.0).to(wl.float16)
        acc = wl.dot(q, y, acc)
        acc = wl.dot(p, y, acc)
        acc = wl.dot(q, y, acc)
    wl.store(out + m[:, None] * BN + k[None, :], acc)


@pytest.mark.parametrize("n", [1, 3])
def test_operands_that_take_turns(n):
    """A product has its own operand, whichever another put in its columns. Of small integers: to the bit."""
    kernel = in_turns.compile("a:*fp16:16, b:*fp16:16, out:*fp32:16, n:i32, BM=128, BN=64", target=TARGET)
    assert "tcgen05.mma" in kernel.ptx
    rng = np.random.default_rng()
    a, b = (rng.integers(-1, 2, (size, 64)).astype(np.float16) for size in (128, 64))
    once, y = a.astype(np.float64) @ b, b.astype(np.float64)
    left = np.clip(once, -2, 2) * (n + 1) + sum(2 * np.clip(once + i, -3, 3) for i in range(n))
    for seed in range(2):
        out = np.full((128, 64), np.nan, np.float32)
        run_block(kernel, [a, b, out, np.int32(n)], seed)
        np.testing.assert_array_equal(out, left @ y)


def test_the_target_says_so():
    """What passes go by, and `weft targets` prints."""
    families = {each["element"]: each["shape"] for each in targets()[TARGET].warpgroup_mma}
    assert families["f16"] == [128, 256, 16] and families["e4m3"] == [128, 256, 32]
