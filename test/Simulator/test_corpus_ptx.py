# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The wrappers of cuda::ptx for sm_90a, compiled by nvcc: each kernel's results, and no finding."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import weft.simulator as simulator
from planted import ENVIRONMENT, NVCC

SOURCE = Path(__file__).parent / "corpus" / "hopper" / "ptx.cu"
SEEDS = (0, 1, 5, 9)
pytestmark = pytest.mark.skipif(NVCC is None, reason="no nvcc on this machine")


@pytest.fixture(scope="session")
def compiled(once) -> Path:
    def make(place: Path) -> None:
        command = [NVCC, "-arch=sm_90a", "-std=c++17", "-O3", "-lineinfo", "-ptx", str(SOURCE)]
        result = subprocess.run(
            [*command, "-o", str(place / "made.ptx")], capture_output=True, text=True, env=ENVIRONMENT
        )
        assert result.returncode == 0, result.stderr

    return once("ptx.cu.sm_90a", make) / "made.ptx"


def run(compiled, entry: str, args, seed: int) -> simulator.Report:
    grid = 1 if entry == "stores" else 2
    report = simulator.launch(compiled, entry, grid, 64, args, seed=seed, limit=10**6)
    assert not report.findings, [str(finding) for finding in report.findings]
    return report


@pytest.mark.parametrize("seed", SEEDS)
def test_what_threads_send(compiled, seed):
    out = np.zeros((2, 512), np.uint32)
    run(compiled, "send", [out], seed)
    for rank in range(2):
        me = np.arange(64) + 64 * (1 - rank)
        assert (out[rank, :64] == me).all()
        assert (out[rank, 64:192].reshape(64, 2) == me[:, None] + np.arange(2)).all()
        assert (out[rank, 192:448].reshape(64, 4) == me[:, None] + np.arange(4)).all()
        steps = 10 - 64 + 1001  # down to 0, then from 1000 on
        expected = [me.sum() + 10, me.min(), max(me.max(), 10), 74, steps, 0xFFFFFFFF & ~np.bitwise_or.reduce(me)]
        expected += [10 | np.bitwise_or.reduce(me), 10 ^ np.bitwise_xor.reduce(me)]
        assert out[rank, 448:456].tolist() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_bulk_copies_and_reductions_into_the_other_block(compiled, seed):
    out = np.zeros((2, 4, 64), np.uint32)
    report = run(compiled, "bulk", [out], seed)
    for rank in range(2):
        me = np.arange(64) + 64 * (1 - rank)
        assert (out[rank] == [me, me + 1000, np.maximum(me, 70), me ^ 5]).all()
    assert report.counters["cluster_bytes_copied"] == 2 * 4 * 256


@pytest.mark.parametrize("seed", SEEDS)
def test_mbarriers(compiled, seed):
    out = np.zeros((2, 64), np.uint32)
    run(compiled, "barriers", [out], seed)
    t = np.arange(64)
    for rank in range(2):
        expected = (t ^ 32) + rank + 2 * (t ^ 1)
        expected[0] += 7000
        assert (out[rank] == expected).all()


def test_fences_and_special_registers(compiled):
    out = np.zeros((2, 32), np.uint32)
    run(compiled, "fences", [out], 0)
    assert (out[0] == 21).all() and (out[1] == 20).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_map_made_by_the_kernel_and_multicast(compiled, seed):
    x, out = np.random.default_rng(seed).integers(0, 2**32, (32, 16), np.uint32), np.zeros((2, 4, 64), np.uint32)
    report = run(compiled, "maps", [x, np.zeros(256, np.uint8), out], seed)
    for rank in range(2):
        assert (out[rank, :2].reshape(-1) == x[8:16].reshape(-1)).all()
        assert (out[rank, 2] == x.reshape(-1)[:64]).all()
    assert report.counters["multicast_copies"] == 4


def test_stores_and_reductions_to_global_memory(compiled):
    out, sums = np.zeros(64, np.uint32), np.full(64, 5, np.uint32)
    run(compiled, "stores", [np.void(b"\0\0"), out, sums], 0)
    assert (out == 3 * np.arange(64)).all() and (sums == 3 * np.arange(64) + 5).all()
