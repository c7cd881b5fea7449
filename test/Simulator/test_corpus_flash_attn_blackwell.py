# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""FlashAttention-4's kernels for sm_100a, forward and backward: scores and sums in tensor memory, products by one
thread, softmax and corrections by warpgroups of their own, and, of 128 channels without a mask, products of two blocks
at once. Right against float64; without findings but for what is KNOWN."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator
from flash_attn_kernels import boxed, compiler, described, drawn, gradients, launch, sizes_of, wide

pytestmark = pytest.mark.ecosystem
ROWS = 256
"""Queries of a block."""


@pytest.fixture(scope="session")
def compiled(once):
    return compiler(once, 100)


def divisor(number: int) -> np.void:
    """What divides by a number without a division: CUTLASS's FastDivmod."""
    bits = (number - 1).bit_length()
    multiplier = (((1 << bits) - number) << 32) // number + 1
    words = np.array([number, multiplier & 0xFFFFFFFF], np.uint32)
    return np.void(words.tobytes() + bytes([min(bits, 1), max(bits - 1, 0), 0, 0]))


def both(number: int) -> list:
    return [divisor(number), np.int32(number)]


def longest_first(blocks: int, shape) -> list:
    """The parameters of the scheduler of masked kernels."""
    batch, length, heads, dimension = shape
    pairs = batch * heads
    section = 1 << ((50 * 2**20 // (length * 2 * dimension * 2)).bit_length() - 1)
    sizes = [blocks * pairs, 1, blocks, heads, batch, section]
    divisors = [part for each in (heads, section, section * blocks, max(pairs % section, 1)) for part in both(each)]
    return [*map(np.int32, sizes), *divisors, np.int32(pairs // section), *both(1), np.int32(1)]


@pytest.mark.parametrize(
    ("dimension", "mask", "length", "cluster"),
    [
        (64, "full", 512, 1),
        (64, "full", 400, 1),
        (64, "causal", 512, 1),
        (128, "causal", 512, 1),
        (128, "full", 1024, 2),
    ],
)
def test_forward(dimension, mask, length, cluster, compiled):
    ptx = compiled(dimension, "forward", "flash_fwd", mask)
    assert f"tcgen05.mma.cta_group::{cluster}.kind::f16" in ptx and "setmaxnreg" in ptx
    shape = batch, length, heads, _ = 1, length, 2, dimension
    random = np.random.default_rng(dimension)
    (q, wide_q), (k, wide_k), (v, wide_v) = (drawn(shape, random) for _ in range(3))
    scores = wide_q @ wide_k.transpose(0, 1, 3, 2) / np.sqrt(dimension)
    if mask == "causal":
        scores = np.where(np.tril(np.ones((length, length))) > 0, scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ wide_v
    blocks = -(-length // ROWS)
    if mask == "causal":
        scheduler, grid = longest_first(blocks, shape), blocks * heads * batch
    else:
        clusters = -(-blocks // cluster)
        total = clusters * heads * batch
        scheduler, grid = [*both(clusters), *both(heads), np.int32(total), np.int32(1)], min(total, 3) * cluster
    for seed in (0, 3):
        o = np.full(shape, 0x7FC0, np.uint16)
        maps = [boxed(q, 128), boxed(k, 128 // cluster), boxed(v, 128), boxed(o, 128)]
        scale = np.float32(np.log2(np.e) / np.sqrt(dimension))
        args = [*[sizes_of(shape)] * 4, *maps, scale, None, None, *scheduler]
        report = launch(ptx, (grid, 1, 1), args, seed, cluster)
        np.testing.assert_allclose(wide(o), expected, atol=1e-2)
        assert report.counters["tcgen05_mma"] > 0
        # It leaves out fences and waits for loads, and writes S over the P that the product before it reads.
        known = (
            "no tcgen05.fence",
            "no tcgen05.wait::ld",
            "which a tcgen05.mma may still read",
            "orders that after a read",
        )
        advised = [str(each) for each in report.advisories if each.kind == "tensor-race"]
        assert all(any(part in each for part in known) for each in advised), advised


#: True of these kernels: a block ends without a wait for its last store of dK or dV, and all lanes of a warp initialise
#: the mbarriers of two blocks.
KNOWN = r"exit-with-async.*a bulk copy that it issued may still read shared memory|'mbarrier\.init"


@pytest.mark.parametrize(("dimension", "cluster"), [(64, 1), (128, 2)])
def test_backward(dimension, cluster, compiled):
    ptx = compiled(dimension, "backward", "flash_bwd_sm100")
    assert f"tcgen05.mma.cta_group::{cluster}.kind::f16" in ptx and "cp.reduce.async.bulk" in ptx
    convert = compiled(dimension, "backward", "flash_bwd_postprocess")
    shape = batch, length, heads, _ = 1, 256, 2, dimension
    random = np.random.default_rng(dimension)
    (q, wide_q), (k, wide_k), (v, wide_v), (do, wide_do) = (drawn(shape, random) for _ in range(4))
    scale = 1 / np.sqrt(dimension)
    expected, lse, delta = gradients(wide_q, wide_k, wide_v, wide_do, scale)
    log2, sums = (lse[..., 0] * np.log2(np.e)).astype(np.float32), delta[..., 0].astype(np.float32)
    sizes = sizes_of(shape)
    scales = [*[None] * 5, np.float32(scale), np.float32(scale * np.log2(np.e))]
    for seed in (0, 3):
        dq, dk, dv = (np.full(shape, 0x7FC0, np.uint16) for _ in range(3))
        partial = np.zeros((batch, heads, length * dimension), np.float32)
        log2_, sums_, partial_ = (described(x.transpose(2, 1, 0)) for x in (log2, sums, partial))
        if cluster == 1:
            columns = [simulator.tensor_map(x.transpose(0, 2, 1, 3), (1, 1, 128, 32), "64B", "bf16") for x in (dv, dk)]
            maps = [*[boxed(x, 128) for x in (q, k, v, do)], *columns]
            args = [*[sizes] * 3, log2_, sums_, sizes, None, None, partial_, *[sizes] * 2]
        else:  # each of two blocks has half of what is multiplied, along rows or along channels
            rows = ((q, 64), (q, 128), (k, 128), (k, 256), (v, 128), (do, 128), (do, 64), (dv, 128), (dk, 128))
            maps = [boxed(x, count) for x, count in rows]
            args = [*[sizes] * 5, log2_, sums_, *[sizes] * 2, None, None, partial_, *[sizes] * 2]
        grid = (-(-length // 128 // cluster) * cluster, heads, batch)
        launch(ptx, grid, [*args, *maps, *scales], seed, cluster, KNOWN)
        converted = [described(partial), described(dq), np.float32(scale)]
        launch(convert, (-(-length // 128), heads, batch), converted, seed)
        for name, got in (("dq", dq), ("dk", dk), ("dv", dv)):
            most = np.abs(expected[name]).max()
            np.testing.assert_allclose(wide(got), expected[name], atol=1e-2 * most, err_msg=name)
