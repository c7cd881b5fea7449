# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Sums that a warp multiplies only where a maximum of its rows grows: what is multiplied, and that results are right.

Expected: of keys whose scores fall from block to block no more than the first and the last block's factors are
multiplied by, of keys whose scores rise all; outputs are those of float64 in any order.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from weft.programs.compiled import compiled
from weft.testing.attention import Domain, attention
from weft.testing.plans import run_plan

ROWS, BLOCKS = 128, 6
#: target, head size, keys of a block, warps
TILES = [
    ("sm_80", 64, 64, 4),
    ("sm_80", 128, 64, 8),
    ("sm_90a", 128, 128, 8),
    ("sm_90a", 256, 64, 8),
]
THREADS = 32


@weft.program
def dense(q, k, v):
    return weft.softmax(q, k) @ v


def inputs(levels: np.ndarray, size: int) -> tuple[torch.Tensor, ...]:
    """Queries, keys whose scores are about ``levels`` [rows, keys], or [keys] for all rows, and values."""
    levels = np.broadcast_to(levels, (ROWS, levels.shape[-1]))
    left, strengths, right = np.linalg.svd(levels, full_matrices=False)
    rank = min(size, int((strengths > 1e-6 * strengths[0]).sum()))
    scale = np.sqrt(strengths[:rank] * size**0.5)
    q, k = torch.zeros(1, 1, ROWS, size), torch.zeros(1, 1, levels.shape[1], size)
    q[..., :rank] = torch.from_numpy(left[:, :rank] * scale).float()
    k[..., :rank] = torch.from_numpy(right[:rank].T * scale).float()
    v = torch.randn(1, 1, levels.shape[1], size)
    return q.half(), k.half(), v.half()


def run(target: str, size: int, keys: int, warps: int, arrays: tuple[torch.Tensor, ...]) -> int:
    """Instructions of the forward, whose results are held to float64's."""
    traced = dense.trace(dense.bind(arrays, {}))
    form = compiled(traced, target, False, {"0.forward": (ROWS, keys, warps, 2)})
    found = run_plan(form.ptx, form.info, "dense", [x.numpy() for x in arrays], checks="all")
    q, k, v = (x.double() for x in arrays)
    exact, _ = attention(q, [Domain(k, v)])
    out, *_ = (x.astype(np.float64) for x in found.outputs.values())
    assert np.abs(out - exact.numpy()).max() < 2e-3 * float(exact.abs().max())
    return found.launches[0].report.counters["warp_instructions"]


@pytest.mark.parametrize("target, size, keys, warps", TILES)
def test_sums_are_multiplied_where_maxima_grow(target, size, keys, warps, seed):
    torch.manual_seed(seed)
    steps = np.repeat(np.arange(BLOCKS, dtype=np.float64), keys)
    rising = run(target, size, keys, warps, inputs(steps, size))
    falling = run(target, size, keys, warps, inputs(steps[::-1].copy(), size))
    sums = ROWS * size // THREADS  # of a block's warps, instructions to multiply them once
    assert rising - falling >= (BLOCKS - 2) * sums


@pytest.mark.parametrize("target, size, keys, warps", TILES)
def test_each_warp_asks_its_own_rows(target, size, keys, warps, seed):
    """One row's scores rise, those of the others fall: its warp multiplies, and rows beside it by 1."""
    torch.manual_seed(seed)
    levels = np.tile(np.repeat(np.arange(BLOCKS, dtype=np.float64)[::-1], keys), (ROWS, 1))
    falling = run(target, size, keys, warps, inputs(levels, size))
    row = int(torch.randint(ROWS, ()))
    levels[row] = levels[row][::-1].copy()
    one = run(target, size, keys, warps, inputs(levels, size))
    sums = ROWS * size // THREADS // warps
    assert (BLOCKS - 2) * sums <= one - falling < 2 * BLOCKS * sums


@weft.jit
def online(x, y, m_out, out, steps, N: wl.constexpr, D: wl.constexpr, FUSED: wl.constexpr):
    rows, columns = wl.arange(0, N), wl.arange(0, D)
    maximum = wl.full((N,), -float("inf"), wl.float32)
    sums = wl.zeros((N, D), wl.float32)
    for i in range(steps):
        now = wl.maximum(maximum, wl.load(x + i * N + rows))
        factor = wl.exp(maximum - now)
        more = wl.load(y + (i * N + rows[:, None]) * D + columns[None, :])
        sums = sums * factor[:, None] + more if FUSED else (sums + more) * factor[:, None]
        maximum = now
    wl.store(m_out + rows, maximum)
    wl.store(out + rows[:, None] * D + columns[None, :], sums)


def run_online(x, y, target: str, warps: int, fused: bool = False):
    """The kernel's PTX, maxima and sums, where nothing was found."""
    steps, N, D = y.shape
    kernel = online.compile(
        f"x:*fp32:16, y:*fp32:16, m_out:*fp32:16, out:*fp32:16, steps:i32, N={N}, D={D}, FUSED={fused}",
        target=target,
        num_warps=warps,
    )
    maximum, sums = np.full(N, np.nan, np.float32), np.full((N, D), np.nan, np.float32)
    arguments = [x, y, maximum, sums, np.int32(steps)]
    report = weft.simulator.launch(kernel.ptx, "online", 1, 32 * warps, arguments, shared=kernel.shared_bytes)
    assert not report.findings
    return kernel.ptx, maximum, sums


def expected_online(x, y, fused: bool = False):
    maximum, sums = np.full(y.shape[1], -np.inf), np.zeros(y.shape[1:])
    with np.errstate(invalid="ignore"):
        for of_block, more in zip(x.astype(np.float64), y.astype(np.float64), strict=True):
            now = np.fmax(maximum, of_block)
            factor = np.exp(maximum - now)[:, None]
            sums = sums * factor + more if fused else (sums + more) * factor
            maximum = now
    return maximum, sums


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_infinities_and_nans_are_multiplied_by_what_they_were(target, seed):
    """Rows that have seen nothing but -inf have NaN for a factor, as IEEE 754 has it of -inf - -inf; sums that are
    infinite or NaN stay so, whether their maximum grows or not."""
    rng = np.random.default_rng(seed)
    N, D, steps = 32, 64, 5
    x, y = rng.standard_normal((steps, N)).astype(np.float32), rng.standard_normal((steps, N, D)).astype(np.float32)
    x[:2, 3] = -np.inf
    x[1, 5], x[2, 7], x[0, 9] = np.nan, np.inf, 50
    y[1, 9], y[2, 11, 4], y[0, 13] = np.inf, np.nan, -0.0
    maximum, sums = expected_online(x, y)
    ptx, found_m, found = run_online(x, y, target, 1)
    assert "vote.sync.any" in ptx
    np.testing.assert_allclose(found_m, maximum, rtol=0)
    np.testing.assert_allclose(found, sums, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("N, D, warps", [(64, 64, 2), (128, 64, 4), (64, 256, 8), (128, 128, 8)])
@pytest.mark.parametrize("fused", [False, True])
def test_maxima_that_other_warps_have_read(fused, N, D, warps, target, seed):
    """Warps ask the rows whose sums they have, not those whose maxima they have computed. What is added is multiplied
    by the same instruction: nobody asks."""
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(2, 12))
    falling = np.linspace(3, 0, steps)[:, None]
    x = (rng.standard_normal((steps, N)) + falling).astype(np.float32)
    y = rng.standard_normal((steps, N, D)).astype(np.float32)
    maximum, sums = expected_online(x, y, fused)
    ptx, found_m, found = run_online(x, y, target, warps, fused)
    assert ("vote.sync.any" in ptx) is not fused
    np.testing.assert_allclose(found_m, maximum, rtol=0)
    np.testing.assert_allclose(found, sums, rtol=1e-5, atol=1e-5)
