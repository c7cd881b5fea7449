# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products of pairs of blocks with block scales, as Gluon compiles them for sm_100a when the tests run: an independent
word on which block has which scales."""

from __future__ import annotations

import numpy as np
import pytest
import weft.simulator as simulator

boxes = pytest.importorskip("triton_boxes", reason="no Triton on this machine")
import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.experimental import gluon  # noqa: E402
from triton.experimental.gluon import language as gl  # noqa: E402
from triton.experimental.gluon._runtime import GluonASTSource  # noqa: E402
from triton.experimental.gluon.language.nvidia import blackwell  # noqa: E402
from triton.experimental.gluon.language.nvidia.hopper import cluster, mbarrier  # noqa: E402
from triton_boxes import E4M3, run  # noqa: E402


@gluon.jit
def scales_of(pointer, ROWS: gl.constexpr, COLUMNS: gl.constexpr, BASES: gl.constexpr):
    memory = blackwell.allocate_tensor_memory(
        gl.uint8, [ROWS, COLUMNS], blackwell.TensorMemoryScalesLayout(cga_layout=BASES)
    )
    layout: gl.constexpr = memory.get_reg_layout()
    rows = gl.arange(0, ROWS, gl.SliceLayout(1, layout))
    columns = gl.arange(0, COLUMNS, gl.SliceLayout(0, layout))
    memory.store(gl.load(pointer + rows[:, None] * COLUMNS + columns[None, :]))
    return memory


@gluon.jit
def scaled_pair(
    a, b, a_scales, b_scales, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, ORDERED: gl.constexpr
):  # fmt: skip
    """Each block has half of the rows of A, of B and of D."""
    rows: gl.constexpr = gl.BlockedLayout([1, 16], [4, 8], [4, 1], [1, 0], cga_layout=[[1, 0]])
    shared: gl.constexpr = gl.NVMMASharedLayout(128, 8, 2, cga_layout=[[1, 0]])
    m, n = gl.arange(0, M, gl.SliceLayout(1, rows)), gl.arange(0, N, gl.SliceLayout(1, rows))
    k = gl.arange(0, K, gl.SliceLayout(0, rows))
    left = gl.allocate_shared_memory(gl.float8e4nv, [M, K], shared, gl.load(a + m[:, None] * K + k[None, :]))
    right = gl.allocate_shared_memory(gl.float8e4nv, [N, K], shared, gl.load(b + n[:, None] * K + k[None, :]))
    left_scales = scales_of(a_scales, M, K // 32, [[1, 0]])
    right_scales = scales_of(b_scales, N, K // 32, [[0, 0]])
    sums = blackwell.allocate_tensor_memory(
        gl.float32, [M, N], blackwell.TensorMemoryLayout([128, N], col_stride=1, cga_layout=[[1, 0]], two_ctas=True)
    )
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(done, count=1)
    blackwell.fence_async_shared(cluster=True)
    if ORDERED:
        cluster.barrier()
    blackwell.tcgen05_mma_scaled(
        left,
        right.permute((1, 0)),
        sums,
        left_scales,
        right_scales,
        "e4m3",
        "e4m3",
        use_acc=False,
        mbarriers=[done],
    )
    mbarrier.wait(done, 0)
    mbarrier.invalidate(done)
    layout: gl.constexpr = sums.get_reg_layout()
    m, n = gl.arange(0, M, gl.SliceLayout(1, layout)), gl.arange(0, N, gl.SliceLayout(0, layout))
    gl.store(c + m[:, None] * N + n[None, :], sums.load(layout))


def compiled(n: int, k: int, ordered: bool):
    types = {"a": "*fp8e4nv", "b": "*fp8e4nv", "a_scales": "*u8", "b_scales": "*u8", "c": "*fp32"}
    constants = {"M": 256, "N": n, "K": k, "ORDERED": ordered}
    names = scaled_pair.arg_names
    source = GluonASTSource(
        scaled_pair,
        {name: types.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in types},
    )
    return triton.compile(source, target=GPUTarget("cuda", 100, 32), options={"num_warps": 4, "num_ctas": 2})


def launched(n: int, k: int, seed: int, ordered: bool = True) -> tuple[np.ndarray, np.ndarray, simulator.Report]:
    random = np.random.default_rng(seed)
    operands, scales, factors = [], [], []
    for rows in (256, n):
        operands.append((random.integers(0, 0x70, (rows, k)) | random.integers(0, 2, (rows, k)) << 7).astype(np.uint8))
        scales.append(random.integers(120, 134, (rows, k // 32)).astype(np.uint8))
        factors.append(E4M3[operands[-1]] * np.repeat(2.0 ** (scales[-1].astype(float) - 127), 32, 1))
    result = np.full((256, n), np.nan, np.float32)
    made = compiled(n, k, ordered)
    text = made.asm["ptx"]
    assert "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale" in text and ".target sm_100a" in text
    report = run(made, text, (1,), [*operands, *scales, result], seed, cluster=2)
    return factors[0] @ factors[1].T, result, report


@pytest.mark.parametrize(("n", "k"), [(128, 128), (64, 256), (256, 128)])
def test_product_of_a_pair_with_scales(n, k, seed):
    expected, result, report = launched(n, k, seed % 100)
    assert not report.findings, [str(finding) for finding in report.findings]
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    assert report.counters["mma_macs"] == 256 * n * k


def test_what_the_other_block_stored_must_be_known():
    """Without a barrier of the cluster, the one that issues the product knows nothing of the other's operands."""
    report = launched(128, 128, 1, ordered=False)[2]
    assert {finding.kind for finding in report.findings} == {"shared-race", "tensor-race"}
