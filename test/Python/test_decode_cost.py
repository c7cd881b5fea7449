# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What decoding costs, counted by the simulator: blocks that a GPU gets, products, bytes of the cache that are read,
and what pages add to a contiguous cache."""

import pytest
import torch
import weft
from weft.attention import decode
from weft.testing.plans import counted

SECTOR_BYTES = 32


@weft.program
def cached(q, k, v, lengths):
    return decode(q, k, v, seqused_k=lengths)


@weft.program
def in_pages(q, k, v, table, lengths):
    return decode(q, k, v, block_table=table, seqused_k=lengths)


def of(program, *arrays, **options):
    return counted(program, *arrays, target="sm_80", backward=False, **options)["forward"]


def test_one_sequence_fills_a_gpu():
    """B 1, 8 key heads, 32 query heads, 4,096 keys: a grid of two blocks for each of 132 multiprocessors, products of
    16 rows for the 4 that share keys, and each key and value read once."""
    heads, kv, keys, size = 32, 8, 4096, 128
    q, k, v = (torch.zeros(1, h, n, size, dtype=torch.float16) for h, n in ((heads, 1), (kv, keys), (kv, keys)))
    run = of(cached, q, k, v, torch.tensor([keys], dtype=torch.int32), sample=8)
    attend = run.launches[0]
    blocks = attend.grid[0] * attend.grid[1] * attend.grid[2]
    assert blocks >= 264
    assert attend.scale * attend.report.counters["mma_macs"] <= 1.1 * kv * 16 * keys * 2 * size
    least = kv * keys * 2 * size * 2 / SECTOR_BYTES
    rows = heads * size * 2 / SECTOR_BYTES * attend.grid[0]  # each split reads the queries
    assert least <= attend.scale * attend.report.counters["global_sectors_read"] <= 1.03 * least + rows
    counters = attend.report.counters
    assert counters["shared_wavefronts"] <= 1.03 * counters["shared_wavefronts_ideal"], "bank conflicts"


@pytest.mark.parametrize(("page", "most"), [(1, 1.09), (16, 1.08), (64, 1.07), (256, 1.07)])
def test_what_pages_add(page, most):
    """Warp instructions of both kernels, over those of a contiguous cache."""
    heads, kv, keys, size = 8, 2, 512, 128
    q = torch.zeros(1, heads, 1, size, dtype=torch.float16)
    lengths = torch.tensor([keys], dtype=torch.int32)
    k = torch.zeros(1, kv, keys, size, dtype=torch.float16)
    pages = torch.zeros(keys // page, page, kv, size, dtype=torch.float16)
    table = torch.randperm(keys // page).to(torch.int32)[None]
    plain, paged = of(cached, q, k, k, lengths), of(in_pages, q, pages, pages, table, lengths, checks="all")
    assert paged.findings == []
    assert paged.total("warp_instructions") <= most * plain.total("warp_instructions")
