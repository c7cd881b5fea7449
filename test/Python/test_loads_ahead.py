# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Recurrences whose rows are loaded an iteration ahead, against float64: any number of steps, memory in place."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled, simulate

KEYS, VALUES = 32, 16


@weft.jit
def recurrence(k, v, beta, out, state, steps, KEYS: wl.constexpr, VALUES: wl.constexpr):
    keys, values = wl.arange(0, KEYS), wl.arange(0, VALUES)
    memory = wl.zeros((KEYS, VALUES), wl.float32)
    for step in range(steps):
        key = wl.load(k + step * KEYS + keys)
        value = wl.load(v + step * VALUES + values, mask=values < VALUES - 1, other=0.5)
        value = (value - wl.sum(memory * key[:, None], axis=0)) * wl.load(beta + step)
        memory = memory * 0.9 + key[:, None] * value[None, :]
        wl.store(out + step, wl.sum(wl.sum(memory * memory, axis=1), axis=0))
    wl.store(state + keys[:, None] * VALUES + values[None, :], memory)


@weft.jit
def chained(x, out, state, steps, KEYS: wl.constexpr, VALUES: wl.constexpr):
    keys, values = wl.arange(0, KEYS), wl.arange(0, VALUES)
    memory = wl.zeros((KEYS, VALUES), wl.float32) + values[None, :].to(wl.float32) / VALUES
    for step in range(steps):
        row = wl.load(x + step * KEYS + keys)
        memory = memory * 0.5 + row[:, None] * (1.0 + memory * memory) * 0.25
        wl.store(out + (step + 1) * KEYS + keys, wl.max(memory, axis=1))
    wl.store(state + keys[:, None] * VALUES + values[None, :], memory)


@pytest.fixture
def random():
    seed = int(np.random.SeedSequence().entropy % 2**32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.mark.parametrize("steps", [0, 1, 2, 13])
def test_any_number_of_steps(random, steps):
    k = (random.standard_normal((steps + 1, KEYS)) / 8).astype(np.float32)
    v = random.standard_normal((steps + 1, VALUES)).astype(np.float32)
    beta = random.random(steps + 1).astype(np.float32)
    k[steps], v[steps], beta[steps] = np.nan, np.nan, np.nan  # past the end: not to be used
    out, state = np.full(steps + 1, np.nan, np.float32), np.full((KEYS, VALUES), np.nan, np.float32)
    arguments = (recurrence, k, v, beta, out, state, np.int32(steps))
    made = compiled(*arguments, num_warps=1, KEYS=KEYS, VALUES=VALUES)[0]
    assert "unread_elsewhere" in made.ir["pipelined"], "rows are loaded ahead"
    report = simulate(recurrence, (1,), *arguments[1:], num_warps=1, KEYS=KEYS, VALUES=VALUES)
    assert not report.findings
    memory = np.zeros((KEYS, VALUES))
    for step in range(steps):
        value = np.append(v[step, :-1], 0.5).astype(np.float64)
        key = k[step].astype(np.float64)
        memory = memory * 0.9 + np.outer(key, (value - key @ memory) * beta[step])
        assert np.isclose(out[step], (memory**2).sum(), rtol=1e-5)
    assert np.allclose(state, memory, rtol=1e-5, atol=1e-6)
    assert np.isnan(out[steps])


def test_a_row_that_the_step_before_wrote(random):
    steps = 7
    rows = np.full((steps + 1, KEYS), np.nan, np.float32)
    rows[0] = random.uniform(-1, 1, KEYS)  # what stays within these bounds: beyond, the steps square errors as well
    first = rows[0].astype(np.float64)
    state = np.full((KEYS, VALUES), np.nan, np.float32)
    simulate(chained, (1,), rows, rows, state, np.int32(steps), num_warps=1, KEYS=KEYS, VALUES=VALUES)
    memory, row = np.tile(np.arange(VALUES) / VALUES, (KEYS, 1)), first
    for step in range(steps):
        memory = memory * 0.5 + row[:, None] * (1 + memory * memory) * 0.25
        row = memory.max(1)
        assert np.allclose(rows[step + 1], row, rtol=1e-4, atol=1e-5)
    assert np.allclose(state, memory, rtol=1e-4, atol=1e-5)


BLOCK, COLUMNS = 32, 32


@weft.jit
def grouped(a, w, groups, scales, out, steps, BLOCK: wl.constexpr, COLUMNS: wl.constexpr):
    rows, inner, columns = wl.arange(0, 16), wl.arange(0, BLOCK), wl.arange(0, COLUMNS)
    total = wl.zeros((16, COLUMNS), wl.float32)
    for step in range(steps):
        at = step * BLOCK + inner
        group = wl.load(groups + at)
        scale = wl.load(scales + group[:, None] * COLUMNS + columns[None, :])
        weight = wl.load(w + at[:, None] * COLUMNS + columns[None, :]) * scale
        total = wl.dot(wl.load(a + rows[:, None] * (steps * BLOCK) + at[None, :]), weight, total)
    wl.store(out + rows[:, None] * COLUMNS + columns[None, :], total)


@weft.jit
def paged(a, table, pages, out, steps, BLOCK: wl.constexpr, COLUMNS: wl.constexpr):
    rows, inner, columns = wl.arange(0, 16), wl.arange(0, BLOCK), wl.arange(0, COLUMNS)
    total = wl.zeros((16, COLUMNS), wl.float32)
    for step in range(steps):
        row = wl.load(table + step * BLOCK + inner)
        scale = wl.load(pages + wl.load(table + step * BLOCK) * COLUMNS + columns).to(wl.float32)
        b = wl.load(pages + row[:, None] * COLUMNS + columns[None, :])
        a_tile = wl.load(a + rows[:, None] * (steps * BLOCK) + (step * BLOCK + inner)[None, :])
        total = wl.dot(a_tile, b, total * 0.5) + scale[None, :]
    wl.store(out + rows[:, None] * COLUMNS + columns[None, :], total)


def _indices(random, steps, count):
    """Of all steps, and past the end what points nowhere."""
    return np.append(random.integers(0, count, steps * BLOCK), np.full(3 * BLOCK, 2**30)).astype(np.int32)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 8])
def test_what_indices_address(random, steps):
    """Indices go two iterations ahead, and what they address one: neither is read past the end."""
    a, w = random.standard_normal((16, steps * BLOCK)), random.standard_normal((steps * BLOCK, COLUMNS)) / 8
    scales, groups = random.standard_normal((5, COLUMNS)).astype(np.float16), _indices(random, steps, 5)
    a, w, out = a.astype(np.float16), w.astype(np.float16), np.full((16, COLUMNS), np.nan, np.float32)
    arguments = (a, w, groups, scales, out, np.int32(steps))
    made = compiled(grouped, *arguments, BLOCK=BLOCK, COLUMNS=COLUMNS)[0]
    assert made.ir["pipelined"].count("warp.unread_elsewhere") >= 2 + 3, "indices and scales are loaded ahead"
    assert not simulate(grouped, (1,), *arguments, BLOCK=BLOCK, COLUMNS=COLUMNS).findings
    weights = (w * scales[groups[: steps * BLOCK]]).astype(np.float64)
    assert np.allclose(out, a.astype(np.float64) @ weights, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 8])
def test_copies_that_indices_address(random, steps):
    a = random.standard_normal((16, steps * BLOCK)).astype(np.float16)
    pages, table = random.standard_normal((7, COLUMNS)).astype(np.float16), _indices(random, steps, 7)
    out = np.full((16, COLUMNS), np.nan, np.float32)
    report = simulate(paged, (1,), a, table, pages, out, np.int32(steps), BLOCK=BLOCK, COLUMNS=COLUMNS)
    assert not report.findings
    total, wide = np.zeros((16, COLUMNS)), pages.astype(np.float64)
    for step in range(steps):
        part = slice(step * BLOCK, (step + 1) * BLOCK)
        total = total * 0.5 + a[:, part].astype(np.float64) @ wide[table[part]] + wide[table[step * BLOCK]]
    assert np.allclose(out, total, rtol=1e-3, atol=1e-3)
