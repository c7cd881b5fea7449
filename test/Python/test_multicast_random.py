# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random kernels in clusters: the same bits as without, in any order of warps and copies. Sizes that tiles do not
divide, programs that are neighbours in several ways, operands of both orientations, two products of an operand, and a
product that runs beside the next iteration's."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled
from weft.simulator import launch


@weft.jit
def gated(
    a, b, g, c, M, N, K, STRIDE: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr,
    ORDER: wl.constexpr, TURNED: wl.constexpr, TWICE: wl.constexpr,
):  # fmt: skip
    rows, columns = wl.cdiv(M, BM), wl.cdiv(N, BN)
    if ORDER == "rows first":
        m, n = wl.program_id(0), wl.program_id(1)
    elif ORDER == "down":
        m, n = wl.program_id(0) % rows, wl.program_id(0) // rows
    elif ORDER == "across":
        m, n = wl.program_id(0) // columns, wl.program_id(0) % columns
    else:
        m, n = wl.program_id(1), wl.program_id(0)
    m, n = m * BM + wl.arange(0, BM), n * BN + wl.arange(0, BN)
    acc, gate = wl.zeros((BM, BN), wl.float32), wl.zeros((BM, BN), wl.float32)
    for start in range(0, K, BK):
        k = start + wl.arange(0, BK)
        inside = (n[None, :] < N) & (k[:, None] < K)
        x = wl.load(a + m[:, None] * STRIDE + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        at = n[None, :] * STRIDE + k[:, None] if TURNED else k[:, None] * N + n[None, :]
        acc = wl.dot(x, wl.load(b + at, mask=inside, other=0.0), acc)
        if TWICE:
            gate = wl.dot(x, wl.load(g + k[:, None] * N + n[None, :], mask=inside, other=0.0), gate)
    if TWICE:
        acc = acc * wl.sigmoid(gate)
    wl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@weft.jit
def attention(
    q, k, v, o, N, M, H, D: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr, CAUSAL: wl.constexpr,
    HEADS_FIRST: wl.constexpr,
):  # fmt: skip
    if HEADS_FIRST:
        tile, h = wl.program_id(0) // H, wl.program_id(0) % H
    else:
        tile, h = wl.program_id(0), wl.program_id(1)
    rows, d = tile * BM + wl.arange(0, BM), wl.arange(0, D)
    x = wl.load(q + (h * N + rows[:, None]) * D + d[None, :], mask=rows[:, None] < N, other=0.0)
    most, total = wl.full((BM,), -float("inf"), wl.float32), wl.zeros((BM,), wl.float32)
    acc = wl.zeros((BM, D), wl.float32)
    for start in range(0, min(M, (tile + 1) * BM) if CAUSAL else M, BN):
        n = start + wl.arange(0, BN)
        keys = wl.load(k + (h * M + n[:, None]) * D + d[None, :], mask=n[:, None] < M, other=0.0)
        seen = (n[None, :] < M) & ((n[None, :] <= rows[:, None]) | (not CAUSAL))
        scores = wl.where(seen, wl.dot(x, wl.trans(keys)) * 0.125, -float("inf"))
        new = wl.maximum(most, wl.max(scores, 1))
        weights, factor = wl.exp(scores - new[:, None]), wl.exp(most - new)
        total = total * factor + wl.sum(weights, 1)
        values = wl.load(v + (h * M + n[:, None]) * D + d[None, :], mask=n[:, None] < M, other=0.0)
        acc = wl.dot(weights.to(wl.float16), values, acc * factor[:, None])
        most = new
    wl.store(o + (h * N + rows[:, None]) * D + d[None, :], acc / total[:, None], mask=rows[:, None] < N)


@weft.jit
def of_each_head(a, b, c, M, N, K, H, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    """A loop around that of the products, with as many iterations in every program: its ring goes on in it."""
    a_tiles = wl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_tiles = wl.make_tensor_descriptor(b, shape=[H * N, K], strides=[K, 1], block_shape=[BN, BK])
    m, n = wl.program_id(0) * BM, wl.program_id(1) * BN
    for h in range(H):
        acc = wl.zeros((BM, BN), wl.float32)
        for k in range(0, K, BK):
            acc = wl.dot(a_tiles.load([m, k]), b_tiles.load([h * N + n, k]).T, acc)
        i, j = m + wl.arange(0, BM), n + wl.arange(0, BN)
        at = (h * M + i[:, None]) * N + j[None, :]
        wl.store(c + at, acc, mask=(i[:, None] < M) & (j[None, :] < N))


@weft.jit
def counted(a_ptr, b_ptr, c, steps, counts, M, N, K, STEPS, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    """Columns begin where the program and what memory says, which a loop adds up that counts itself in memory, say."""
    a = wl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b = wl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    m, first = wl.program_id(0) * BM, 0
    for i in range(STEPS):
        wl.atomic_add(counts + i, 1)
        first += wl.load(steps + i)
    n = wl.program_id(0) // 2 * BN + first
    acc = wl.zeros((BM, BN), wl.float32)
    for k in range(0, K, BK):
        acc = wl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    i, j = m + wl.arange(0, BM), wl.arange(0, BN)
    wl.store(c + i[:, None] * BN + j[None, :], acc, mask=i[:, None] < M)


def both(kernel, grid, arguments, out, cluster, order, **options):
    """The results without clusters and with them, each without findings, and the copies that were shared."""
    found = []
    for programs in (1, cluster):
        made, launched = compiled(kernel, *arguments, cluster=programs, **options)
        out[...] = np.nan
        report = launch(made.ptx, made.name, grid, 32 * made.num_warps, launched, shared=made.shared_bytes, seed=order)
        assert not report.findings
        found.append((out.tobytes(), report.counters["multicast_copies"]))
    return found


def halves(random, *shape):
    return random.standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize("number", range(16))
def test_products(seed, monkeypatch, number):
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    cluster, warps = int(random.choice([2, 4])), int(random.choice([4, 8]))
    BM, BN, BK = (int(random.choice(sizes)) for sizes in ((64, 128) if warps == 4 else (128,), (64, 128), (32, 64)))
    order = ("rows first", "down", "across", "columns first")[number % 4]
    rows, columns = int(random.integers(1, 6)), int(random.integers(1, 4))
    along = {"rows first": rows, "columns first": columns}.get(order, rows * columns)
    if along % cluster:  # as many tiles of rows, or of columns, as make the grid's first extent a multiple
        rows, columns = (rows, cluster) if order == "columns first" else (cluster, columns)
    M, N, K = rows * BM - int(random.integers(0, 9)), columns * BN - 16 * int(random.integers(0, 3)), 16 * number
    grid = {"rows first": (rows, columns), "columns first": (columns, rows)}.get(order, (rows * columns,))
    stride, turned = max(K, 16), bool(random.integers(0, 2))
    a, b = halves(random, M, stride), halves(random, *((N, stride) if turned else (stride, N)))
    g, c = halves(random, stride, N), np.empty((M, N), np.float32)
    sizes = [np.int32(size) for size in (M, N, K)]
    (alone, none), (shared, _) = both(
        gated, grid, (a, b, g, c, *sizes), c, cluster, int(random.integers(0, 50)), STRIDE=stride, BM=BM, BN=BN, BK=BK,
        ORDER=order, TURNED=turned, TWICE=BN == 64, num_warps=warps, num_stages=int(random.integers(2, 5)),
    )  # fmt: skip
    assert alone == shared and not none


@pytest.mark.parametrize("causal, heads_first", [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("number", range(3))
def test_attention(seed, monkeypatch, causal, heads_first, number):
    """Programs of a causal pattern walk over blocks of their own, and so do neighbours that are of different heads."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    D, BN, H, tiles = (int(random.choice(sizes)) for sizes in ((64, 128), (64, 128), (2, 3), (2, 4)))
    N = tiles * 128 - int(random.integers(0, 9))
    M = N if causal else int(random.integers(1, 500))
    q, k, v, o = (
        halves(random, H, N, D),
        halves(random, H, M, D),
        halves(random, H, M, D),
        np.empty((H, N, D), np.float32),
    )
    grid = (tiles * H,) if heads_first else (tiles, H)
    (alone, _), (together, shared) = both(
        attention, grid, (q, k, v, o, np.int32(N), np.int32(M), np.int32(H)), o, 2, int(random.integers(0, 50)),
        D=D, BM=128, BN=BN, CAUSAL=causal, HEADS_FIRST=heads_first, num_warps=8, num_stages=2,
    )  # fmt: skip
    assert alone == together
    assert heads_first or (shared > 0) == (not causal)


@pytest.mark.parametrize("cluster, K, H", [(2, 64, 3), (2, 192, 2), (4, 128, 5), (2, 0, 2)])
def test_loops_around(seed, monkeypatch, cluster, K, H):
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    M, N = 500, 96
    a, b, c = halves(random, M, max(K, 16)), halves(random, H * N, max(K, 16)), np.empty((H, M, N), np.float32)
    sizes = [np.int32(size) for size in (M, N, K, H)]
    (alone, _), (shared, copies) = both(
        of_each_head, (4, 2), (a, b, c, *sizes), c, cluster, int(random.integers(0, 50)),
        BM=128, BN=64, BK=64, num_warps=8, num_stages=3,
    )  # fmt: skip
    assert alone == shared and (copies > 0) == (K > 0)


def test_what_is_computed_as_a_neighbour_does(seed, monkeypatch):
    """Neighbours compare where their columns begin; what is the same in both runs once, and writes once."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    M, N, K, BN = 512, 256, 192, 64
    a, b, c = halves(random, M, K), halves(random, N, K), np.empty((M, BN), np.float32)
    steps, counts = (16 * random.integers(-2, 3, 3)).astype(np.int32), np.zeros(3, np.int32)
    sizes = [np.int32(size) for size in (M, N, K, 3)]
    (alone, _), (shared, copies) = both(
        counted, (4,), (a, b, c, steps, counts, *sizes), c, 2, int(random.integers(0, 50)),
        BM=128, BN=BN, BK=64, num_warps=8, num_stages=3,
    )  # fmt: skip
    assert alone == shared and copies > 0
    assert (counts == 2 * 4).all()  # of both launches' programs
    rows = np.concatenate([np.zeros((96, K)), b.astype(np.float64), np.zeros((256, K))])
    for tile in range(4):
        begin = 96 + tile // 2 * BN + steps.sum()
        exact = a[tile * 128 : tile * 128 + 128].astype(np.float64) @ rows[begin : begin + BN].T
        assert np.allclose(c[tile * 128 : tile * 128 + 128], exact, rtol=1e-4, atol=1e-3)
