# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that put layouts, staging and pipelining to the test, run on the simulator: right results, no finding, no
bank conflict where operands of products go through shared memory."""

import math
import re

import numpy as np
import pytest
import weft
import weft.language as wl
from weft import simulator


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def launch(kernel, signature, args, *, grid=1, warps=4, stages=3):
    """Compile, run, and give the report, which must be clean."""
    compiled = kernel.compile(signature=signature, target="sm_80", num_warps=warps, num_stages=stages)
    report = simulator.launch(compiled.ptx, compiled.name, grid, 32 * warps, args, shared=compiled.shared_bytes)
    assert not report.findings, [str(finding) for finding in report.findings]
    return report


def no_conflicts(report):
    """Whether every access to shared memory took as few wavefronts as it could."""
    return report.counters["shared_wavefronts"] == report.counters["shared_wavefronts_ideal"]


def close(got, expected, tolerance):
    """Whether the largest error is within `tolerance` of the largest value."""
    expected = np.asarray(expected, np.float64)
    return np.abs(got - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


@weft.jit
def transpose(x, y, M: wl.constexpr, N: wl.constexpr):
    i = wl.arange(0, M)
    j = wl.arange(0, N)
    tile = wl.load(x + i[:, None] * N + j[None, :])
    wl.store(y + j[:, None] * M + i[None, :], wl.trans(tile))


@pytest.mark.parametrize("dtype,name", [(np.float32, "fp32"), (np.float16, "fp16"), (np.int8, "i8")])
@pytest.mark.parametrize("M,N", [(64, 64), (32, 128), (128, 16)])
def test_transposition_through_shared_memory(rng, dtype, name, M, N):
    x = (10 * rng.standard_normal((M, N))).astype(dtype)
    y = np.zeros((N, M), dtype)
    report = launch(transpose, f"x:*{name}:16, y:*{name}:16, M={M}, N={N}", [x, y])
    assert np.array_equal(y, x.T)
    assert no_conflicts(report)
    assert report.counters["global_sectors_read"] == report.counters["global_sectors_written"] == x.nbytes // 32


@weft.jit
def product(
    a, b, c,
    M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, A_BY_COLUMNS: wl.constexpr, B_BY_COLUMNS: wl.constexpr,
    PRECISION: wl.constexpr,
):  # fmt: skip
    i = wl.arange(0, M)
    j = wl.arange(0, N)
    k = wl.arange(0, K)
    if A_BY_COLUMNS:
        left = wl.trans(wl.load(a + k[:, None] * M + i[None, :]))
    else:
        left = wl.load(a + i[:, None] * K + k[None, :])
    if B_BY_COLUMNS:
        right = wl.trans(wl.load(b + j[:, None] * K + k[None, :]))
    else:
        right = wl.load(b + k[:, None] * N + j[None, :])
    wl.store(c + i[:, None] * N + j[None, :], wl.dot(left, right, input_precision=PRECISION))


@pytest.mark.parametrize("M,N,K", [(64, 64, 64), (16, 32, 64), (128, 16, 32), (32, 128, 16)])
@pytest.mark.parametrize("by_columns", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    "name,precision,bound", [("fp16", "tf32", 1e-5), ("fp32", "tf32", 2e-3), ("fp32", "ieee", 1e-5)]
)
def test_product_in_any_orientation(rng, M, N, K, by_columns, name, precision, bound):
    dtype = np.float16 if name == "fp16" else np.float32
    a = rng.standard_normal((M, K)).astype(dtype)
    b = rng.standard_normal((K, N)).astype(dtype)
    c = np.full((M, N), np.nan, np.float32)
    stored = [np.ascontiguousarray(x.T) if flip else x for x, flip in zip((a, b), by_columns, strict=True)]
    signature = (
        f"a:*{name}:16, b:*{name}:16, c:*fp32:16, M={M}, N={N}, K={K}, "
        f"A_BY_COLUMNS={by_columns[0]}, B_BY_COLUMNS={by_columns[1]}, PRECISION='{precision}'"
    )
    report = launch(product, signature, [*stored, c])
    assert close(c, a.astype(np.float64) @ b.astype(np.float64), bound)
    if precision != "ieee":
        assert no_conflicts(report)


@weft.jit
def transposed_weights(a, b, c, out, M: wl.constexpr, K: wl.constexpr):
    rows = wl.arange(0, M)
    columns = wl.arange(0, K)
    offsets = rows[:, None] * K + columns[None, :]
    scores = wl.dot(wl.load(a + offsets), wl.trans(wl.load(b + offsets))).to(wl.float16)
    wl.store(out + offsets, wl.dot(wl.trans(scores), wl.load(c + offsets)))


def test_transposed_result_as_operand(rng):
    M, K = 64, 32
    a, b, c = (rng.standard_normal((M, K)).astype(np.float16) for _ in range(3))
    out = np.zeros((M, K), np.float32)
    launch(transposed_weights, f"a:*fp16:16, b:*fp16:16, c:*fp16:16, out:*fp32:16, M={M}, K={K}", [a, b, c, out])
    scores = (a.astype(np.float32) @ b.T.astype(np.float32)).astype(np.float16).astype(np.float64)
    assert close(out, scores.T @ c.astype(np.float64), 2e-3)


@weft.jit
def key_gradients(
    q, k, v, dout, lse, delta, dk, dv, scale, N, D: wl.constexpr, BLOCK_M: wl.constexpr, BLOCK_N: wl.constexpr
):
    n = wl.program_id(0) * BLOCK_N + wl.arange(0, BLOCK_N)
    d = wl.arange(0, D)
    mine = n[:, None] * D + d[None, :]
    keys = wl.load(k + mine, mask=n[:, None] < N, other=0.0)
    values = wl.load(v + mine, mask=n[:, None] < N, other=0.0)
    grad_k = wl.zeros((BLOCK_N, D), wl.float32)
    grad_v = wl.zeros((BLOCK_N, D), wl.float32)
    for start in range(0, N, BLOCK_M):
        m = start + wl.arange(0, BLOCK_M)
        theirs = m[:, None] * D + d[None, :]
        queries = wl.load(q + theirs, mask=m[:, None] < N, other=0.0)
        grad = wl.load(dout + theirs, mask=m[:, None] < N, other=0.0)
        row_lse = wl.load(lse + m, mask=m < N, other=0.0)
        row_delta = wl.load(delta + m, mask=m < N, other=0.0)
        weights = wl.exp2(wl.dot(keys, wl.trans(queries)) * scale - row_lse[None, :])
        weights = wl.where((m[None, :] < N) & (n[:, None] < N), weights, 0.0)
        grad_v = wl.dot(weights.to(wl.float16), grad, grad_v)
        change = weights * (wl.dot(values, wl.trans(grad)) - row_delta[None, :])
        grad_k = wl.dot(change.to(wl.float16), queries, grad_k)
    wl.store(dk + mine, grad_k, mask=n[:, None] < N)
    wl.store(dv + mine, grad_v, mask=n[:, None] < N)


@pytest.mark.parametrize("N,D,block,warps", [(200, 64, (64, 64), 4), (128, 64, (32, 128), 8), (100, 32, (32, 64), 4)])
def test_four_products_a_step(rng, N, D, block, warps):
    q, k, v, dout = (rng.standard_normal((N, D)).astype(np.float16) for _ in range(4))
    scale = np.float32(math.log2(math.e) / math.sqrt(D))
    Q, K, V, G = (x.astype(np.float64) for x in (q, k, v, dout))
    scores = Q @ K.T * scale
    lse = np.log2(np.exp2(scores).sum(1)).astype(np.float32)
    weights = np.exp2(scores - lse[:, None])
    delta = (G * (weights @ V)).sum(1).astype(np.float32)
    dk, dv = np.zeros((N, D), np.float32), np.zeros((N, D), np.float32)
    signature = (
        "q:*fp16:16, k:*fp16:16, v:*fp16:16, dout:*fp16:16, lse:*fp32:16, delta:*fp32:16, dk:*fp32:16, dv:*fp32:16, "
        f"scale:fp32, N:i32, D={D}, BLOCK_M={block[0]}, BLOCK_N={block[1]}"
    )
    args = [q, k, v, dout, lse, delta, dk, dv, scale, np.int32(N)]
    report = launch(key_gradients, signature, args, grid=-(-N // block[1]), warps=warps)
    assert close(dv, weights.T @ G, 2e-3)
    assert close(dk, (weights * (G @ V.T - delta[:, None])).T @ Q, 3e-3)
    assert no_conflicts(report)


@weft.jit
def alternating(a, b, c, steps, M: wl.constexpr):
    rows = wl.arange(0, M)
    offsets = rows[:, None] * M + rows[None, :]
    acc = wl.load(c + offsets)
    for step in range(steps):
        if step % 2 == 0:
            acc = wl.dot(wl.load(a + step * M * M + offsets), wl.load(b + step * M * M + offsets), acc)
        else:
            acc = acc * 0.5
    wl.store(c + offsets, acc)


def test_product_in_a_branch_of_a_loop(rng):
    M, steps = 32, 5
    a, b = (rng.standard_normal((steps, M, M)).astype(np.float16) for _ in range(2))
    c = rng.standard_normal((M, M)).astype(np.float32)
    expected = c.astype(np.float64)
    for step in range(steps):
        expected = (
            expected + a[step].astype(np.float64) @ b[step].astype(np.float64) if step % 2 == 0 else expected * 0.5
        )
    launch(alternating, f"a:*fp16:16, b:*fp16:16, c:*fp32:16, steps:i32, M={M}", [a, b, c, np.int32(steps)])
    assert close(c, expected, 1e-5)


@weft.jit
def exchanged(a, b, c, steps, M: wl.constexpr):
    rows = wl.arange(0, M)
    offsets = rows[:, None] * M + rows[None, :]
    left = wl.load(a + offsets)
    right = wl.load(b + offsets)
    acc = wl.zeros((M, M), wl.float32)
    for _ in range(steps):
        acc = wl.dot(left, right, acc)
        left, right = right, left
    wl.store(c + offsets, acc)


def test_operands_that_a_loop_exchanges(rng):
    M = 32
    a, b = (rng.standard_normal((M, M)).astype(np.float16) for _ in range(2))
    c = np.zeros((M, M), np.float32)
    launch(exchanged, f"a:*fp16:16, b:*fp16:16, c:*fp32:16, steps:i32, M={M}", [a, b, c, np.int32(3)])
    A, B = a.astype(np.float64), b.astype(np.float64)
    assert close(c, 2 * A @ B + B @ A, 1e-5)


@weft.jit
def nested(x, y, outer, inner, M: wl.constexpr):
    rows = wl.arange(0, M)
    offsets = rows[:, None] * M + rows[None, :]
    total = wl.zeros((M, M), wl.float32)
    for i in range(outer):
        acc = wl.zeros((M, M), wl.float32)
        for j in range(inner):
            tile = wl.load(x + (i * inner + j) * M * M + offsets)
            acc = wl.dot(tile, tile, acc)
        total += acc * (i + 1)
    wl.store(y + offsets, total)


@pytest.mark.parametrize("inner", [0, 1, 4])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_pipelined_loop_in_a_loop(rng, inner, stages):
    M, outer = 32, 3
    x = rng.standard_normal((outer * max(inner, 1), M, M)).astype(np.float16)
    y = np.full((M, M), np.nan, np.float32)
    args = [x, y, np.int32(outer), np.int32(inner)]
    launch(nested, f"x:*fp16:16, y:*fp32:16, outer:i32, inner:i32, M={M}", args, stages=stages)
    X = x.astype(np.float64)
    expected = np.zeros((M, M))
    for i in range(outer):
        for j in range(inner):
            expected += (i + 1) * X[i * inner + j] @ X[i * inner + j]
    assert close(y, expected, 1e-5)


@weft.jit
def by_table(x, table, y, n, M: wl.constexpr):
    rows = wl.arange(0, M)
    offsets = rows[:, None] * M + rows[None, :]
    acc = wl.zeros((M, M), wl.float32)
    for i in range(n):
        tile = wl.load(x + wl.load(table + i) * M * M + offsets)
        acc = wl.dot(tile, wl.trans(tile), acc)
    wl.store(y + offsets, acc)


def test_blocks_named_by_a_table_are_not_read_past_its_end(rng):
    M = 32
    x = rng.standard_normal((5, M, M)).astype(np.float16)
    table = np.array([3, 1, 4, 0], np.int32)
    y = np.zeros((M, M), np.float32)
    launch(by_table, f"x:*fp16:16, table:*i32, y:*fp32:16, n:i32, M={M}", [x, table, y, np.int32(4)])
    X = x.astype(np.float64)
    assert close(y, sum(X[j] @ X[j].T for j in table), 1e-5)


@weft.jit
def gather(x, index, y, n, BLOCK: wl.constexpr):
    offsets = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    mask = offsets < n
    wl.store(y + offsets, wl.load(x + wl.load(index + offsets, mask=mask, other=0), mask=mask), mask=mask)


def test_gather(rng):
    x = rng.standard_normal(1000).astype(np.float32)
    index = rng.integers(0, 1000, 777).astype(np.int32)
    y = np.zeros(777, np.float32)
    launch(gather, "x:*fp32:16, index:*i32:16, y:*fp32:16, n:i32, BLOCK=256", [x, index, y, np.int32(777)], grid=4)
    assert np.array_equal(y, x[index])


@weft.jit
def both_axes(x, y, z, M: wl.constexpr, N: wl.constexpr):
    i = wl.arange(0, M)
    j = wl.arange(0, N)
    offsets = i[:, None] * N + j[None, :]
    tile = wl.load(x + offsets)
    down = wl.sum(tile, axis=0)
    across = wl.max(tile, axis=1)
    wl.store(y + j, down)
    wl.store(z + offsets, tile - across[:, None] + down[None, :])


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("M,N", [(16, 64), (64, 16), (32, 32)])
def test_reductions_along_both_axes(rng, warps, M, N):
    x = rng.standard_normal((M, N)).astype(np.float32)
    y, z = np.zeros(N, np.float32), np.zeros((M, N), np.float32)
    launch(both_axes, f"x:*fp32:16, y:*fp32:16, z:*fp32:16, M={M}, N={N}", [x, y, z], warps=warps)
    assert close(y, x.astype(np.float64).sum(0), 1e-6)
    assert close(z, x - x.max(1, keepdims=True) + x.astype(np.float64).sum(0), 1e-6)


@weft.jit
def pairs(x, y, z, N: wl.constexpr):
    offsets = wl.arange(0, N)
    joined = wl.join(wl.load(x + offsets), wl.load(y + offsets))
    wl.store(z + 2 * offsets[:, None] + wl.arange(0, 2)[None, :], joined)
    left, right = wl.split(joined * 2.0)
    wl.store(x + offsets, left)
    wl.store(y + offsets, right)


def test_join_and_split(rng):
    x, y = (rng.standard_normal(256).astype(np.float32) for _ in range(2))
    before = np.stack([x, y], 1)
    z = np.zeros(512, np.float32)
    launch(pairs, "x:*fp32:16, y:*fp32:16, z:*fp32:16, N=256", [x, y, z])
    assert np.array_equal(z, before.ravel())
    assert np.array_equal(np.stack([x, y], 1), 2 * before)


@weft.jit
def unpack(packed, scales, out, N: wl.constexpr):
    o = wl.arange(0, N)
    both = wl.load(packed + o)
    numbers = wl.interleave((both & 15).to(wl.int8) - 8, (both >> 4).to(wl.int8) - 8).to(wl.float32)
    to = wl.arange(0, 2 * N)
    wl.store(out + to, (numbers * wl.load(scales + to // 32)).to(wl.float16))


@pytest.mark.parametrize("N", [512, 1024, 4096])
def test_a_store_leaves_no_gaps_in_sectors(rng, N):
    """A lane that loads 4 bytes has 8 halves to store in a row, 16 bytes; of more bytes its stores would be apart."""
    packed = rng.integers(0, 256, N, dtype=np.uint8)
    scales = rng.random(2 * N // 32, dtype=np.float32)
    out = np.zeros(2 * N, np.float16)
    report = launch(unpack, f"packed:*u8:16, scales:*fp32:16, out:*fp16:16, N={N}", [packed, scales, out])
    numbers = np.stack([packed & 15, packed >> 4], 1).reshape(-1).astype(np.float64) - 8
    assert np.array_equal(out, (numbers * scales.repeat(32)).astype(np.float32).astype(np.float16))
    assert report.counters["global_sectors_written"] == out.nbytes // 32


@weft.jit
def spread_bits(words, out, n, BLOCK: wl.constexpr):
    for block in range(0, wl.cdiv(n, BLOCK)):
        w = block * (BLOCK // 32) + wl.arange(0, BLOCK // 32)
        bits = wl.load(words + w, w < wl.cdiv(n, 32), 0)
        bit = ((bits[:, None] >> wl.arange(0, 32)[None, :]) & 1).reshape(BLOCK).to(wl.float32)
        o = block * BLOCK + wl.arange(0, BLOCK)
        wl.store(out + o, bit, o < n)


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
def test_each_warp_takes_its_own_of_what_all_have(rng, warps):
    """Words that a warp loads by one instruction, a lane each, come to the registers that want them by shuffles."""
    n, block = 4000, 1024
    words = rng.integers(-(2**31), 2**31 - 1, 4 * block // 32, dtype=np.int32)
    out = np.full(4 * block, np.nan, np.float32)
    report = launch(spread_bits, f"words:*i32:16, out:*fp32:16, n:i32, BLOCK={block}", [words, out, n], warps=warps)
    assert np.array_equal(out[:n], np.unpackbits(words.view(np.uint8), bitorder="little")[:n])
    assert np.isnan(out[n:]).all()
    assert report.counters["shared_wavefronts"] == report.counters["barriers"] == 0
    assert report.counters["global_sectors_read"] <= warps * words.nbytes // 32


@weft.jit
def take_apart(x, y, z, n, BLOCK: wl.constexpr):
    o = wl.arange(0, BLOCK)
    a, b = wl.split(wl.reshape(wl.load(x + o, o < n, 0.0), (BLOCK // 2, 2)))
    h = wl.arange(0, BLOCK // 2)
    wl.store(y + h, a, h < n // 2)
    wl.store(z + h, b, h < n // 2)


@pytest.mark.parametrize("n", [1023, 1006])
def test_numbers_that_are_loaded_one_by_one_are_taken_apart_in_registers(rng, n):
    """A lane loads the two of a pair, as no instruction loads more than one: no exchange through shared memory."""
    x = rng.standard_normal(1024).astype(np.float16)
    y, z = np.full((2, 512), np.nan, np.float16)
    report = launch(take_apart, "x:*fp16, y:*fp16, z:*fp16, n:i32, BLOCK=1024", [x, y, z, n])
    assert np.array_equal(y[: n // 2], x[: n // 2 * 2 : 2]) and np.array_equal(z[: n // 2], x[1 : n // 2 * 2 : 2])
    assert np.isnan(y[n // 2 :]).all() and np.isnan(z[n // 2 :]).all()
    assert report.counters["shared_wavefronts"] == report.counters["barriers"] == 0


@weft.jit
def two_of_heads(x, y, z, T: wl.constexpr, H: wl.constexpr, D: wl.constexpr):
    t, h, d = wl.arange(0, T), wl.arange(0, H), wl.arange(0, D)
    both = wl.load(x + t[:, None] * (2 * H * D) + wl.arange(0, 2 * H * D)[None, :])
    a, b = wl.split(wl.permute(wl.reshape(both, (T, H, 2, D)), (1, 0, 3, 2)))
    at = (h[:, None, None] * T + t[None, :, None]) * D + d[None, None, :]
    wl.store(y + at, a)
    wl.store(z + at, b)


@pytest.mark.parametrize("dtype,name", [(np.float16, "fp16"), (np.float32, "fp32"), (np.uint8, "u8")])
@pytest.mark.parametrize("T,H,D,warps", [(16, 4, 32, 4), (8, 2, 64, 1), (64, 1, 16, 8), (4, 4, 8, 4)])
def test_halves_that_lanes_have_between_them_are_stored_whole(rng, dtype, name, T, H, D, warps):
    """What is split lies in one lane, and a lane's half of it is stored by as few instructions as memory takes."""
    x = (10 * rng.standard_normal((T, H, 2, D))).astype(dtype)
    y, z = np.zeros((2, H, T, D), dtype)
    signature = f"x:*{name}:16, y:*{name}:16, z:*{name}:16, T={T}, H={H}, D={D}"
    report = launch(two_of_heads, signature, [x, y, z], warps=warps)
    assert np.array_equal(y, x[:, :, 0].swapaxes(0, 1)) and np.array_equal(z, x[:, :, 1].swapaxes(0, 1))
    if T * H * D >= 64 * 32:
        assert report.counters["global_sectors_written"] == x.nbytes // 32
        assert report.counters["warp_instructions"] <= 130 * max(1, x.nbytes // 8192) * warps


@weft.jit
def recurrence(q, k, v, g, out, h0, T, K: wl.constexpr, V: wl.constexpr, STARTS: wl.constexpr):
    i, j = wl.arange(0, K), wl.arange(0, V)
    state = wl.zeros((V, K), wl.float32)
    if STARTS:
        state = wl.load(h0 + j[:, None] * K + i[None, :])
    for t in range(T):
        decay = wl.exp(wl.load(g + t * K + i))
        state = state * decay[None, :] + wl.load(k + t * K + i)[None, :] * wl.load(v + t * V + j)[:, None]
        wl.store(out + t * V + j, wl.sum(state * wl.load(q + t * K + i)[None, :], 1))


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("K,V,warps", [(32, 32, 1), (16, 64, 2), (64, 32, 4), (32, 8, 1)])
def test_a_state_that_vectors_move_is_summed_in_registers(rng, K, V, warps, starts):
    """Lanes lie beside the axis of the sum, as far as rows go."""
    T = 6
    q, k, v = (rng.standard_normal((T, n), dtype=np.float32) for n in (K, K, V))
    g, h0 = -rng.random((T, K), dtype=np.float32), rng.standard_normal((V, K), dtype=np.float32)
    out = np.zeros((T, V), np.float32)
    pointers = ", ".join(f"{name}:*fp32:16" for name in ("q", "k", "v", "g", "out", "h0"))
    signature = f"{pointers}, T:i32, {K=}, {V=}, STARTS={starts}"
    report = launch(recurrence, signature, [q, k, v, g, out, h0, T], warps=warps)
    state, expected = h0.astype(np.float64) * starts, []
    for t in range(T):
        state = state * np.exp(g[t].astype(np.float64)) + np.outer(v[t].astype(np.float64), k[t])
        expected.append(state @ q[t])
    assert close(out, expected, 1e-5)
    if (K, V, warps, starts) == (32, 32, 1, False):
        made = recurrence.compile(signature=signature, target="sm_80", num_warps=1)
        assert made.ptx.count("shfl.sync") <= 32  # the decays, each of which one lane computes
        assert report.counters["shared_wavefronts"] == 0


@weft.jit
def turned(x, y, M, N, ROWS: wl.constexpr, COLUMNS: wl.constexpr):
    rows = wl.program_id(0) * ROWS + wl.arange(0, ROWS)
    columns = wl.program_id(1) * COLUMNS + wl.arange(0, COLUMNS)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tile = wl.load(x + rows[:, None] * N + columns[None, :], mask=mask)
    wl.store(y + columns[None, :] * M + rows[:, None], tile, mask=mask)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("rows,columns,warps", [(64, 64, 4), (128, 128, 4), (128, 32, 8), (16, 128, 1), (64, 128, 2)])
@pytest.mark.parametrize("name,kind", [("i8", np.int8), ("i16", np.int16), ("fp32", np.float32), ("i64", np.int64)])
def test_tiles_are_turned_by_vectors(rng, name, kind, rows, columns, warps, target):
    """Threads have blocks of rows and columns on both sides of the exchange, and no element goes alone."""
    M, N = 2 * rows - 16, columns + 16
    x = rng.integers(-100, 100, (M, N)).astype(kind)
    y = np.full((N, M), 77, kind)
    signature = f"x:*{name}:16, y:*{name}:16, M:i32:16, N:i32:16, ROWS={rows}, COLUMNS={columns}"
    made = turned.compile(signature=signature, target=target, num_warps=warps)
    arguments = [x, y, np.int32(M), np.int32(N)]
    report = simulator.launch(made.ptx, made.name, (2, 2), 32 * warps, arguments, shared=made.shared_bytes)
    assert report.findings == [] and np.array_equal(y, x.T)
    if (name, rows, columns) in [("fp32", 64, 64), ("fp32", 128, 128), ("i8", 128, 128)]:
        assert "st.shared.v4" in made.ptx and "ld.shared.v4" in made.ptx
        assert not re.search(r"(st|ld)\.shared\.b", made.ptx)
