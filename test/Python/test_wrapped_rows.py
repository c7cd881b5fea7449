# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Rows and columns that wrap around a matrix's end, as those of Triton's tutorials do: bulk copies bring boxes of them
where nobody reads what wraps, and everywhere the numbers are those of rows that wrap.

Expected: NumPy's product of all rows of all tiles, each modulo the matrix's, in float64.
"""

from __future__ import annotations

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled, simulate


@weft.jit
def wrapped(index, size, HOW: wl.constexpr):
    """Indices that are others from the size on, by one of the ways in which kernels write it."""
    if HOW == "wide":
        others = index.to(wl.int64) % size
    elif HOW == "promised":
        others = wl.max_contiguous(wl.multiple_of(index % size, 8), 8)
    elif HOW == "first":
        others = wl.where(index < size, index, 0)
    elif HOW == "last":
        others = wl.minimum(index, size - 1)
    else:
        others = index % size
    return others


def rows_of(rows: np.ndarray, size: int, how: str) -> np.ndarray:
    """What ``wrapped`` gives."""
    return {"first": np.where(rows < size, rows, 0), "last": np.minimum(rows, size - 1)}.get(how, rows % size)


@weft.jit
def product(
    a, b, c, bias, sums, M, N, K, am, ak, bk, bn, OUT: wl.constexpr, BM: wl.constexpr, BN: wl.constexpr,
    BK: wl.constexpr, GROUP: wl.constexpr, HOW: wl.constexpr, ROWS: wl.constexpr, COLUMNS: wl.constexpr,
):  # fmt: skip
    M = ROWS if HOW == "known" else M
    N = COLUMNS if HOW == "known" else N
    tiles_m, tiles_n = wl.cdiv(M, BM), wl.cdiv(N, BN)
    pid = wl.program_id(0)
    first = pid // (GROUP * tiles_n) * GROUP
    size = min(tiles_m - first, GROUP)
    tile_m, tile_n = first + pid % (GROUP * tiles_n) % size, pid % (GROUP * tiles_n) // size
    m, n, k = tile_m * BM + wl.arange(0, BM), tile_n * BN + wl.arange(0, BN), wl.arange(0, BK)
    a_at = a + wrapped(m, M, HOW)[:, None] * am + k[None, :] * ak
    b_at = b + k[:, None] * bk + (n % N)[None, :] * bn
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for step in range(wl.cdiv(K, BK)):
        x = wl.load(a_at, mask=k[None, :] < K - step * BK, other=0.0)
        y = wl.load(b_at, mask=k[:, None] < K - step * BK, other=0.0)
        acc = wl.dot(x, y, acc)
        a_at += BK * ak
        b_at += BK * bk
    rows, columns = tile_m * BM + wl.arange(0, BM), tile_n * BN + wl.arange(0, BN)
    at = c + rows[:, None] * (tiles_n * BN) + columns[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    if OUT == "inside":
        wl.store(at, acc, mask=inside)
    if OUT == "epilogue":
        acc += wl.load(bias + columns, mask=columns < N, other=0.0)[None, :]
        wl.store(at, wl.where(acc > 0, acc, acc * 0.5), mask=inside)
        wl.store(sums + tile_n * M + rows, wl.sum(wl.where(columns[None, :] < N, acc, 0.0), axis=1), mask=rows < M)
    if OUT == "everywhere":
        wl.store(at, acc)
    if OUT == "rows":
        wl.store(at, acc, mask=rows[:, None] < M)
    if OUT == "further":
        wl.store(at, acc, mask=(rows[:, None] < M + 3) & (columns[None, :] < N))
    if OUT == "wrapped mask":
        wl.store(at, acc, mask=((rows % M)[:, None] < M) & (columns[None, :] < N))
    if OUT == "either":
        wl.store(at, acc, mask=(rows[:, None] < M) | (columns[None, :] < N))
    if OUT == "column sums":
        wl.store(sums + tile_m * (tiles_n * BN) + columns, wl.sum(acc, axis=0))
        wl.store(at, acc, mask=inside)
    if OUT == "running":
        wl.store(at, wl.cumsum(acc, axis=0, reverse=True), mask=inside)
    if OUT == "added":
        wl.atomic_add(sums + columns, wl.max(acc, axis=0), mask=columns < N)


#: How many of A's rows and B's columns wrap unread, by what is stored.
UNREAD = {
    "inside": 2, "epilogue": 1, "everywhere": 0, "rows": 1, "further": 1, "wrapped mask": 1, "either": 0,
    "column sums": 0, "running": 0, "added": 0,
}  # fmt: skip


def stored(out: str, acc: np.ndarray, bias: np.ndarray, M: int, N: int, BM: int, BN: int):
    """What is written of the product of all tiles' rows and columns: C, NaN where it is not, and the sums."""
    rows, columns = np.arange(acc.shape[0])[:, None], np.arange(acc.shape[1])[None, :]
    inside, sums = (rows < M) & (columns < N), None
    tiles = acc.reshape(-1, BM, acc.shape[1])
    if out == "epilogue":
        acc = acc + np.pad(bias.astype(np.float64), (0, acc.shape[1] - N))
        sums = np.where(columns < N, acc, 0).reshape(acc.shape[0], -1, BN).sum(2)[:M].T
        acc = np.where(acc > 0, acc, acc / 2)
    elif out == "column sums":
        sums = tiles.sum(1)
    elif out == "running":
        acc = tiles[:, ::-1].cumsum(1)[:, ::-1].reshape(acc.shape)
    elif out == "added":
        sums = tiles.max(1).sum(0)[:N]
        return np.full_like(acc, np.nan), sums
    where = {
        "everywhere": np.ones_like(inside), "rows": np.broadcast_to(rows < M, inside.shape), "wrapped mask":
        np.broadcast_to(columns < N, inside.shape), "further": (rows < M + 3) & (columns < N),
        "either": (rows < M) | (columns < N),
    }.get(out, inside)  # fmt: skip
    return np.where(where, acc, np.nan), sums


def matrix(random, rows: int, columns: int, transposed: bool) -> np.ndarray:
    """A matrix whose lines, rows or columns, begin at multiples of 16 bytes, NaN between their ends and those."""
    lines, length = (columns, rows) if transposed else (rows, columns)
    whole = np.full((lines, -(-length // 8) * 8), np.nan, np.float16)
    whole[:, :length] = random.standard_normal((lines, length))
    return whole


def run(random, out, sizes, tile, order="nn", warps=4, stages=3, how="plain", seed=0):
    (M, N, K), (BM, BN, BK) = sizes, tile
    a, b = matrix(random, M, K, order[0] == "t"), matrix(random, K, N, order[1] == "t")
    tiles_m, tiles_n = -(-M // BM), -(-N // BN)
    c, bias = np.full((tiles_m * BM, tiles_n * BN), np.nan, np.float32), random.standard_normal(N).astype(np.float32)
    shapes = {"epilogue": (tiles_n, M), "column sums": (tiles_m, tiles_n * BN), "added": (N,)}
    sums = np.full(shapes.get(out, (1,)), 0 if out == "added" else np.nan, np.float32)
    strides = [(s.shape[1], 1) if o == "n" else (1, s.shape[1]) for s, o in zip((a, b), order, strict=True)]
    given = [a, b, c, bias, sums, M, N, K, *strides[0], *strides[1]]
    options = {"OUT": out, "BM": BM, "BN": BN, "BK": BK, "GROUP": 2, "HOW": how, "ROWS": M, "COLUMNS": N}
    options |= {"num_warps": warps, "num_stages": stages}
    made, _ = compiled(product, *given, **options)
    report = simulate(product, (tiles_m * tiles_n,), *given, seed=seed, **options)
    assert not report.findings
    left, right = (x.T if o == "t" else x for x, o in zip((a, b), order, strict=True))
    rows, columns = rows_of(np.arange(tiles_m * BM), M, how), np.arange(tiles_n * BN) % N
    exact = left[rows, :K].astype(np.float64) @ right[:K, columns].astype(np.float64)
    expected, expected_sums = stored(out, exact, bias, M, N, BM, BN)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-3 * (BM if out == "running" else 1))
    if expected_sums is not None:
        np.testing.assert_allclose(sums, expected_sums, rtol=1e-4, atol=1e-2)
    return made


SIZES = [(200, 144, 80), (200, 136, 72), (5, 40, 64), (128, 128, 8), (129, 7, 100)]


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("out", UNREAD)
@pytest.mark.parametrize("sizes", SIZES)
def test_numbers_are_those_of_rows_that_wrap(out, sizes, target, seed, monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", target)
    run(np.random.default_rng(seed), out, sizes, (64, 64, 32))


@pytest.mark.parametrize("how", ["plain", "first", "last", "promised", "known"])
@pytest.mark.parametrize("out", UNREAD)
def test_bulk_copies_bring_what_wraps_unread(out, how, seed, monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    made = run(np.random.default_rng(seed), out, (200, 144, 64), (64, 64, 32), how=how)
    assert made.ir["tile"].count("tile.wraps_unread") == UNREAD[out]
    if UNREAD[out] == 2:
        assert "cp.async.bulk.tensor" in made.ptx
        assert "cp.async.cg" not in made.ptx and "ld.global" not in made.ptx
    if UNREAD[out] == 0:
        assert "cp.async.bulk" not in made.ptx


@pytest.mark.parametrize("order", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("number", range(3))
def test_orders_and_tiles(order, number, seed, monkeypatch):
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    tile = tuple(int(random.choice(sizes)) for sizes in ((64, 128), (64, 128, 256), (32, 64)))
    sizes = tuple(int(random.integers(1, 20)) * int(random.choice([1, 16])) for _ in range(3))
    warps = 4 if tile[0] == 64 else 8
    how = str(random.choice(["plain", "wide", "first", "last", "known", *(["promised"] if sizes[0] % 8 == 0 else [])]))
    stages, seed = int(random.integers(2, 5)), int(random.integers(0, 50))
    run(random, "inside", sizes, tile, order, warps, stages, how, seed)


@weft.jit
def gram(x, c, M, K, stride, BM: wl.constexpr, BK: wl.constexpr, MASKS: wl.constexpr):
    m, n, k = (wl.program_id(0) * BM + wl.arange(0, BM), wl.program_id(1) * BM + wl.arange(0, BM), wl.arange(0, BK))
    acc = wl.zeros((BM, BM), dtype=wl.float32)
    for start in range(0, K, BK):
        left = wl.load(x + (m % M)[:, None] * stride + (start + k)[None, :])
        right = wl.load(x + (n % M)[:, None] * stride + (start + k)[None, :])
        acc = wl.dot(left, right.trans(), acc)
    mask = m[:, None] < M
    if MASKS == 2:
        mask &= n[None, :] < M
    wl.store(c + m[:, None] * (wl.num_programs(1) * BM) + n[None, :], acc, mask=mask)


@pytest.mark.parametrize("masks", [1, 2])
def test_rows_that_are_rows_and_columns(masks, seed, monkeypatch):
    """Each of the two is left out for itself."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    M, K, BM = 100, 64, 64
    x = np.random.default_rng(seed).standard_normal((M, K)).astype(np.float16)
    c = np.full((2 * BM, 2 * BM), np.nan, np.float32)
    given = (x, c, np.int32(M), np.int32(K), np.int32(K))
    options = {"BM": BM, "BK": 32, "MASKS": masks, "num_warps": 4, "num_stages": 3}
    made, _ = compiled(gram, *given, **options)
    assert made.ir["tile"].count("tile.wraps_unread") == masks
    assert not simulate(gram, (2, 2), *given, **options).findings
    rows = np.arange(2 * BM) % M
    exact = x[rows].astype(np.float64) @ x[rows].astype(np.float64).T
    exact[M:] = np.nan
    if masks == 2:
        exact[:, M:] = np.nan
    np.testing.assert_allclose(c, exact, rtol=1e-4, atol=1e-3)


@weft.jit
def persistent(
    a, b, c, M, N, K, am, bk, cm, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, PROGRAMS: wl.constexpr,
    COUNTED: wl.constexpr,
):  # fmt: skip
    """Tiles are counted twice, as in Triton's tutorial 9: for what is loaded, and for what is stored."""
    tiles_m = wl.cdiv(M, BM)
    tiles = tiles_m * wl.cdiv(N, BN)
    programs = PROGRAMS if COUNTED == "constant" else wl.num_programs(0)
    stored = wl.program_id(0) - programs
    for tile in wl.range(wl.program_id(0), tiles, programs):
        m, n = tile % tiles_m * BM + wl.arange(0, BM), tile // tiles_m * BN + wl.arange(0, BN)
        m, n = wl.where(m < M, m, 0), wl.where(n < N, n, 0)
        acc = wl.zeros((BM, BN), dtype=wl.float32)
        for step in range(wl.cdiv(K, BK)):
            k = step * BK + wl.arange(0, BK)
            x = wl.load(a + m[:, None] * am + k[None, :], mask=k[None, :] < K, other=0.0)
            y = wl.load(b + k[:, None] * bk + n[None, :], mask=k[:, None] < K, other=0.0)
            acc = wl.dot(x, y, acc)
        stored += programs
        if COUNTED == "otherwise":
            stored += 1
        rows = stored % tiles_m * BM + wl.arange(0, BM)
        columns = stored // tiles_m * BN + wl.arange(0, BN)
        wl.store(c + rows[:, None] * cm + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize("counted", ["constant", "launched", "otherwise"])
@pytest.mark.parametrize("sizes", [(200, 144, 80), (64, 400, 32), (5, 16, 64)])
def test_tiles_that_are_counted_twice(counted, sizes, seed, monkeypatch):
    """The counters of loads and of stores are one; where they are not, the tile stored is another's."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    (M, N, K), (BM, BN, BK), programs = sizes, (64, 64, 32), 2
    a, b = matrix(random, M, K, False), matrix(random, K, N, False)
    tiles_m, tiles_n = -(-M // BM), -(-N // BN)
    c = np.full((tiles_m * BM, N), np.nan, np.float32)
    given = (a, b, c, M, N, K, a.shape[1], b.shape[1], N)
    options = {"BM": BM, "BN": BN, "BK": BK, "PROGRAMS": programs, "COUNTED": counted, "num_warps": 4}
    made, _ = compiled(persistent, *given, **options)
    assert made.ir["tile"].count("tile.wraps_unread") == (0 if counted == "otherwise" else 2)
    assert not simulate(persistent, (programs,), *given, **options).findings
    expected = np.full_like(c, np.nan, dtype=np.float64)
    for program in range(programs):
        for turn, tile in enumerate(range(program, tiles_m * tiles_n, programs), 1):
            to = tile + turn * (counted == "otherwise")
            rows, columns = tile % tiles_m * BM + np.arange(BM), tile // tiles_m * BN + np.arange(BN)
            rows, columns = np.where(rows < M, rows, 0), np.where(columns < N, columns, 0)
            i, j = to % tiles_m * BM + np.arange(BM), to // tiles_m * BN + np.arange(BN)
            block = a[rows, :K].astype(np.float64) @ b[:K, columns].astype(np.float64)
            expected[np.ix_(i[i < M], j[j < N])] = block[np.ix_(i < M, j < N)]
    if counted == "otherwise":  # programs write over one another's tiles; those of one program alone are known
        return
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-3)


@weft.jit
def delayed(x, c, steps, M, BM: wl.constexpr, BK: wl.constexpr, HOW: wl.constexpr):
    """What an iteration multiplies is stored by the next one, under the mask of its rows."""
    k = wl.arange(0, BK)
    one = wl.where(k[:, None] == k[None, :], 1.0, 0.0).to(wl.float16)
    before = wl.zeros((BM, BK), dtype=wl.float32)
    for i in range(steps):
        rows = i * 3 % 4 * BM + wl.arange(0, BM)
        read = wl.load(x + wrapped(rows, M, HOW)[:, None] * BK + k[None, :])
        at = c + (i * BM + wl.arange(0, BM)[:, None]) * BK + k[None, :]
        if HOW == "at once":
            before = wl.dot(read, one)
        wl.store(at, before, mask=rows[:, None] < M)
        before = wl.dot(read, one)


@pytest.mark.parametrize("how", ["plain", "first", "last", "at once"])
def test_what_the_next_iteration_masks(how, seed, monkeypatch):
    """Rows that an iteration wraps are other ones than those that the mask of the next keeps."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    BM, BK, steps, M = 64, 64, 5, int(random.integers(193, 256))
    x = random.standard_normal((M, BK)).astype(np.float16)
    c = np.full((steps, BM, BK), np.nan, np.float32)
    given = (x, c, np.int32(steps), np.int32(M))
    options = {"BM": BM, "BK": BK, "HOW": how, "num_warps": 4, "num_stages": 3}
    made, _ = compiled(delayed, *given, **options)
    assert ("tile.wraps_unread" in made.ir["tile"]) == (how == "at once")
    assert not simulate(delayed, (1,), *given, **options).findings
    expected, before = np.full_like(c, np.nan), np.zeros((BM, BK))
    for i in range(steps):
        rows = i * 3 % 4 * BM + np.arange(BM)
        before, last = x[rows_of(rows, M, how)], before
        expected[i, rows < M] = (before if how == "at once" else last)[rows < M]
    np.testing.assert_allclose(c, expected, rtol=0)


@weft.jit
def decoded(codes, table, b, c, M, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr, LOOKED_UP: wl.constexpr):
    """A product of 8-bit codes, or of what a table has for them: codes from 100 on."""
    m, n = wl.program_id(0) * BM + wl.arange(0, BM), wl.arange(0, BN)
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for start in range(0, K, BK):
        k = start + wl.arange(0, BK)
        code = wl.load(codes + (m % M)[:, None] * K + k[None, :])
        x = wl.load(table + (code.to(wl.int32) - 100)) if LOOKED_UP else code.to(wl.float16)
        acc = wl.dot(x, wl.load(b + k[:, None] * BN + n[None, :]), acc)
    wl.store(c + m[:, None] * BN + n[None, :], acc, mask=m[:, None] < M)


@pytest.mark.parametrize("looked_up", [False, True])
def test_addresses_that_are_loaded_from_rows_that_wrap(looked_up, seed, monkeypatch):
    """Boxes have zeros for what wraps, for which the table has nothing: not even what nobody stores is read there."""
    monkeypatch.setenv("WEFT_TARGET", "sm_90a")
    random = np.random.default_rng(seed)
    M, K, BM, BN = 200, 256, 64, 64
    codes = random.integers(100, 116, (M, K)).astype(np.uint8)
    table, b = random.standard_normal(16).astype(np.float16), random.standard_normal((K, BN)).astype(np.float16)
    c = np.full((4 * BM, BN), np.nan, np.float32)
    given = (codes, table, b, c, np.int32(M), np.int32(K))
    options = {"BM": BM, "BN": BN, "BK": 64, "LOOKED_UP": looked_up, "num_warps": 4, "num_stages": 3}
    made, _ = compiled(decoded, *given, **options)
    assert ("tile.wraps_unread" in made.ir["tile"]) is not looked_up
    assert not simulate(decoded, (4,), *given, **options).findings
    left = table[codes.astype(int) - 100] if looked_up else codes
    expected = np.full_like(c, np.nan, dtype=np.float64)
    expected[:M] = left.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-2)
