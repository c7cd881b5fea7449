# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Blocks whose sizes are no powers of two: what random tile programs do not draw. Beside NumPy in float64."""

import math

import numpy as np
import pytest
import weft
import weft.language as wl
import weft.simulator


@weft.jit
def attention(q, k, v, out, n, scale, M: wl.constexpr, N: wl.constexpr, D: wl.constexpr, E: wl.constexpr):
    rows = wl.make_block_ptr(q, (n, D), (D, 1), (wl.program_id(0) * M, 0), (M, D), (1, 0))
    keys = wl.make_block_ptr(k, (D, n), (1, D), (0, 0), (D, N), (0, 1))
    values = wl.make_block_ptr(v, (n, E), (E, 1), (0, 0), (N, E), (1, 0))
    tile = wl.load(rows, boundary_check=(0,), padding_option="zero")
    highest = wl.full([M], -float("inf"), wl.float32)
    total = wl.zeros([M], wl.float32)
    acc = wl.zeros([M, E], wl.float32)
    for start in range(0, n, N):
        scores = wl.dot(tile, wl.load(keys, boundary_check=(1,), padding_option="zero")) * scale
        scores = wl.where(start + wl.arange(0, N)[None, :] < n, scores, -float("inf"))
        new = wl.maximum(highest, wl.max(scores, 1))
        weights = wl.exp2(scores - new[:, None])
        decay = wl.exp2(highest - new)
        total = total * decay + wl.sum(weights, 1)
        part = wl.load(values, boundary_check=(0,), padding_option="zero")
        acc = wl.dot(weights.to(wl.float16), part, acc * decay[:, None])
        highest = new
        keys, values = wl.advance(keys, (0, N)), wl.advance(values, (N, 0))
    results = wl.make_tensor_descriptor(out, [n, E], [E, 1], [M, E])
    results.store([wl.program_id(0) * M, 0], (acc / total[:, None]).to(wl.float16))


@pytest.mark.parametrize(
    ("D", "E", "M", "N"), [(72, 72, 64, 32), (80, 80, 64, 64), (96, 96, 64, 32), (160, 160, 32, 32), (192, 128, 32, 48)]
)
def test_attention_of_head_sizes_between_powers_of_two(D, E, M, N, seed):
    n, random = 100, np.random.default_rng(seed)
    q, k, v = (random.standard_normal((n, d)).astype(np.float16) for d in (D, D, E))
    out = np.full((n, E), np.nan, np.float16)
    attention[(weft.cdiv(n, M),)](q, k, v, out, n, D**-0.5 * math.log2(math.e), M=M, N=N, D=D, E=E)
    scores = q.astype(float) @ k.astype(float).T * D**-0.5
    weights = np.exp(scores - scores.max(1, keepdims=True))
    exact = weights / weights.sum(1, keepdims=True) @ v.astype(float)
    np.testing.assert_allclose(out, exact, atol=4e-3)


@weft.jit
def products(a, b, c, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr, PRECISION: wl.constexpr):
    rows, columns, inner = wl.arange(0, M)[:, None], wl.arange(0, N)[None, :], wl.arange(0, K)
    left, right = wl.load(a + rows * K + inner[None, :]), wl.load(b + inner[:, None] * N + columns)
    wl.store(c + rows * N + columns, wl.dot(left, right, input_precision=PRECISION))


@pytest.mark.parametrize("sizes", [(16, 8, 24), (48, 40, 80), (24, 12, 20), (5, 3, 7), (72, 24, 96)])
@pytest.mark.parametrize("kind", ["float16", "tf32", "ieee", "int8"])
def test_products_of_any_sizes(sizes, kind, seed):
    M, N, K = sizes
    random = np.random.default_rng(seed)
    dtype = {"float16": np.float16, "int8": np.int8}.get(kind, np.float32)
    a, b = (random.integers(-8, 8, size).astype(dtype) for size in ((M, K), (K, N)))
    c = np.full((M, N), -(2**31) if kind == "int8" else np.nan, np.int32 if kind == "int8" else np.float32)
    products[1,](a, b, c, M=M, N=N, K=K, PRECISION=kind if kind in ("tf32", "ieee") else None)
    np.testing.assert_array_equal(c, a.astype(int) @ b.astype(int))


@weft.jit
def whole(x, sums, places, counts, B: wl.constexpr, A: wl.constexpr):
    tile = wl.load(x + wl.arange(0, B)[:, None] * A + wl.arange(0, A)[None, :])
    wl.store(sums, wl.sum(tile))
    best, place = wl.max(tile, None, return_indices=True)
    wl.store(places, place)
    wl.atomic_add(counts + wl.arange(0, A), wl.zeros([A], wl.int32) + 1)
    wl.store(places + 1, best)


@pytest.mark.parametrize("shape", [(3, 5), (12, 20), (80, 3)])
def test_reductions_of_whole_blocks(shape, seed):
    x = np.random.default_rng(seed).permutation(math.prod(shape)).astype(np.int32).reshape(shape)
    sums, places, counts = np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros(shape[1], np.int32)
    whole[2,](x, sums, places, counts, B=shape[0], A=shape[1])
    assert sums[0] == x.sum() and tuple(places) == (x.argmax(), x.max()) and (counts == 2).all()


@weft.jit
def halves_first(a, b):
    if a > b:  # noqa: SIM108
        c = a
    else:
        c = b
    return c


@weft.jit
def branching(x, y, N: wl.constexpr):
    tile = wl.load(x + wl.arange(0, 2)[:, None] * N + wl.arange(0, N)[None, :])
    wl.store(y + wl.arange(0, 2), wl.reduce(tile, 1, halves_first))


def test_a_reduction_by_a_function_that_branches(seed):
    x, y = np.random.default_rng(seed).standard_normal((2, 20)).astype(np.float32), np.zeros(2, np.float32)
    branching[1,](x, y, N=20)
    np.testing.assert_array_equal(y, x.max(1))


@weft.jit
def printed(N: wl.constexpr):
    wl.device_print("x", wl.arange(0, N) * 10)


def test_indices_of_what_is_printed(capfd):
    printed[1,](N=6)
    lines = sorted(line for line in capfd.readouterr().out.splitlines() if "idx" in line)
    assert lines == [f"pid (0, 0, 0) idx ({i}) x: {10 * i}" for i in range(6)]


@weft.jit
def after_resets(value, reset, next_value, next_reset):
    """A sum that starts anew at a flag: associative, not commutative."""
    if next_reset > 0:  # noqa: SIM108
        total = next_value
    else:
        total = value + next_value
    return total, wl.maximum(reset, next_reset)


@weft.jit
def scanned(x, flags, y, M: wl.constexpr, N: wl.constexpr, REVERSE: wl.constexpr):
    at = wl.arange(0, M)[:, None] * N + wl.arange(0, N)[None, :]
    total, _ = wl.associative_scan((wl.load(x + at), wl.load(flags + at)), 1, after_resets, reverse=REVERSE)
    wl.store(y + at, total)


@pytest.mark.parametrize("shape", [(2, 20), (1, 7), (3, 48)])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_by_a_function_that_branches(shape, reverse, seed):
    random = np.random.default_rng(seed)
    x = random.integers(-50, 50, shape).astype(np.int32)
    flags = (random.random(shape) < 0.2).astype(np.int32)
    y, wanted = np.full(shape, -1, np.int32), np.zeros(shape, np.int32)
    total = np.zeros(shape[0], np.int32)
    for place in range(shape[1])[:: -1 if reverse else 1]:
        total = np.where(flags[:, place] > 0, 0, total) + x[:, place]
        wanted[:, place] = total
    scanned[1,](x, flags, y, M=shape[0], N=shape[1], REVERSE=reverse)
    np.testing.assert_array_equal(y, wanted)


@weft.jit
def torn(x, N: wl.constexpr):
    tile = wl.load(x + wl.arange(0, N)[:, None] * 3 + wl.arange(0, 3)[None, :])
    wl.store(x + wl.arange(0, 3)[:, None] * N + wl.arange(0, N)[None, :], tile.reshape(3, N))


def test_what_is_refused_names_its_line():
    with pytest.raises(weft.CompilationError, match="keeps runs of elements together") as caught:
        torn.compile("x:*fp32, N=999")
    assert caught.value.position.line == torn.fn.__code__.co_firstlineno + 3


def test_columns_of_80_cost_less_than_of_128(seed):
    """Instructions of attention with heads of 80 beside those that 128, filled up with zeros, would take."""
    random = np.random.default_rng(seed)

    def counted(D, n):
        made = attention.compile(
            f"q:*fp16:16, k:*fp16:16, v:*fp16:16, out:*fp16:16, n:i32:16, scale:fp32, M=64, N=64, D={D}, E={D}"
        )
        q, k, v = (random.standard_normal((n, D)).astype(np.float16) for _ in range(3))
        out = np.full((n, D), np.nan, np.float16)
        arguments = [q, k, v, out, np.int32(n), np.float32(0.1)]
        report = weft.simulator.launch(made.ptx, made.name, n // 64, 128, arguments, shared=made.shared_bytes)
        return report.counters["warp_instructions"]

    assert counted(80, 128) <= 10_800
    counts = counted(80, 512), counted(128, 512)  # beside fewer blocks what is outside of loops counts too
    assert counts[0] < 0.85 * counts[1], counts
