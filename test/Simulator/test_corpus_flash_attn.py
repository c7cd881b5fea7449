# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""FlashAttention-4's kernels for Hopper, forward and backward: TMA, rings on mbarriers, roles with setmaxnreg, turns by
named barriers, wgmma with A in registers, reductions in bulk. Right against float64, no finding."""

from __future__ import annotations

import numpy as np
import pytest
from flash_attn_kernels import boxed, compiler, described, drawn, gradients, launch, sizes_of, wide

pytestmark = pytest.mark.ecosystem


@pytest.fixture(scope="session")
def compiled(once):
    return compiler(once, 90)


@pytest.mark.parametrize(("dimension", "rows", "columns"), [(64, 192, 128), (128, 128, 128)])
def test_forward(dimension, rows, columns, compiled):
    ptx = compiled(dimension, "forward", "flash_fwd")
    assert "wgmma.mma_async" in ptx and "setmaxnreg" in ptx
    shape = batch, length, heads, _ = 1, 384, 2, dimension
    random = np.random.default_rng(dimension)
    (q, wide_q), (k, wide_k), (v, wide_v) = (drawn(shape, random) for _ in range(3))
    scores = wide_q @ wide_k.transpose(0, 1, 3, 2) / np.sqrt(dimension)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ wide_v
    for seed in (0, 3):
        o = np.full(shape, 0x7FC0, np.uint16)
        maps = [boxed(x, count) for x, count in ((q, rows), (k, columns), (v, columns), (o, rows))]
        args = [*[sizes_of(shape)] * 4, *maps, np.float32(np.log2(np.e) / np.sqrt(dimension))]
        report = launch(ptx, (-(-length // rows), heads, batch), args, seed)
        np.testing.assert_allclose(wide(o), expected, atol=1e-2)
        assert report.counters["ring_waits"] > 0


@pytest.mark.parametrize(("dimension", "length", "rows", "columns"), [(64, 384, 128, 128), (128, 400, 80, 128)])
def test_backward(dimension, length, rows, columns, compiled):
    ptx = compiled(dimension, "backward", "flash_bwd_sm90")
    assert "wgmma.mma_async" in ptx and "setmaxnreg" in ptx and "cp.reduce.async.bulk" in ptx
    convert = compiled(dimension, "backward", "flash_bwd_postprocess")
    shape = batch, _, heads, _ = 1, length, 2, dimension
    random = np.random.default_rng(dimension)
    (q, wide_q), (k, wide_k), (v, wide_v), (do, wide_do) = (drawn(shape, random) for _ in range(4))
    scale = 1 / np.sqrt(dimension)
    expected, lse, delta = gradients(wide_q, wide_k, wide_v, wide_do, scale)
    log2 = (lse[..., 0] * np.log2(np.e)).astype(np.float32)
    sums = delta[..., 0].astype(np.float32)
    for seed in (0, 3):
        dq, dk, dv = (np.full(shape, 0x7FC0, np.uint16) for _ in range(3))
        partial = np.zeros((batch, heads, length * dimension), np.float32)
        loads = [boxed(x, count) for x, count in ((q, rows), (k, columns), (v, columns), (do, rows))]
        args = [*[sizes_of(shape)] * 6, *loads, boxed(dk, columns), boxed(dv, columns)]
        args += [described(x.transpose(2, 1, 0)) for x in (log2, sums, partial)]
        args += [None] * 4 + [np.float32(scale * np.log2(np.e)), np.float32(scale)]
        launch(ptx, (-(-length // columns), heads, batch), args, seed)
        args = [described(partial), described(dq), np.float32(scale)]
        launch(convert, (-(-length // rows), heads, batch), args, seed)
        for name, got in (("dq", dq), ("dk", dk), ("dv", dv)):
            most = np.abs(expected[name]).max()
            np.testing.assert_allclose(wide(got), expected[name], atol=1e-2 * most, err_msg=name)
