# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What flash attention costs, counted exactly by the simulator:

No bank conflict, no memory traffic or product beyond the tiling's.
"""

import numpy as np
import pytest
import torch
import weft.simulator
from weft.demo.cases import flash_case

SECTOR_BYTES = 32
BLOCK_M, BLOCK_N = 128, 64
B, H, N = 1, 2, 256


def counted(D, causal):
    """The simulator's report of one launch over all heads, checks on."""
    case = flash_case(torch.float16, D, causal, (B, H, N))
    kernel = case.kernel.compile(case.signature, target="sm_80", num_warps=case.warps, num_stages=3)
    rng = np.random.default_rng()
    q, k, v = (rng.standard_normal((B, H, N, D)).astype(np.float16) for _ in range(3))
    out = np.full((B, H, N, D), np.nan, np.float16)
    lse = np.full((B, H, N), np.nan, np.float32)
    strides = [stride // 2 for x in (q, k, v, out) for stride in x.strides[:3]]
    scalars = [np.int32(x) for x in (*strides, H, N, N)]
    grid = (N // BLOCK_M, B * H)
    args = [q, k, v, out, lse, np.float32(D**-0.5 * np.log2(np.e)), *scalars]
    report = weft.simulator.launch(kernel.ptx, kernel.name, grid, (32 * case.warps,), args, shared=kernel.shared_bytes)
    assert not np.isnan(out).any() and not np.isnan(lse).any()
    return report


def key_blocks(causal):
    """Blocks of keys that the rows of all programs of one head touch."""
    rows = range(0, N, BLOCK_M)
    return sum(-(-min(N, row + BLOCK_M) // BLOCK_N) if causal else N // BLOCK_N for row in rows)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("D", [64, 128])
def test_flash_attention(D, causal):
    report = counted(D, causal)
    assert report.findings == []
    counters = report.counters
    assert counters["shared_wavefronts"] == counters["shared_wavefronts_ideal"], "bank conflicts"
    blocks = B * H * key_blocks(causal)
    assert counters["mma_macs"] == blocks * 2 * BLOCK_M * BLOCK_N * D
    tile_bytes = B * H * N * D * 2 + blocks * 2 * BLOCK_N * D * 2
    assert counters["global_sectors_read"] <= 1.05 * tile_bytes / SECTOR_BYTES
    assert counters["global_sectors_written"] <= 1.05 * (B * H * N * D * 2 + B * H * N * 4) / SECTOR_BYTES
