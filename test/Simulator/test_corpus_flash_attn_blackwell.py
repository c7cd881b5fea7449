# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""FlashAttention-4's forward kernels for sm_100a: S, P and O in tensor memory, products by one thread, softmax and
corrections by warpgroups of their own, and, of 128 channels without a mask, products of two blocks at once. Right
against float64, no finding."""

from __future__ import annotations

import numpy as np
import pytest
from flash_attn_kernels import boxed, compiler, drawn, launch, sizes_of, wide

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
