# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Masks of running indices and bounds, read off words of bits: every element against NumPy, extreme bounds too."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import compiled, simulate

INT = np.iinfo(np.int32)


@weft.jit
def spans(x, y, lower, upper, seen, out, begin, least, end, window, ROWS: wl.constexpr, COLUMNS: wl.constexpr,
          PRODUCT: wl.constexpr):  # fmt: skip
    rows, columns = wl.arange(0, ROWS), wl.arange(0, COLUMNS)
    places = rows[:, None] * COLUMNS + columns[None, :]
    keys = begin + columns
    if PRODUCT:  # elements as matrix instructions leave them
        inner = wl.arange(0, 16)
        a = wl.load(x + rows[:, None] * 16 + inner[None, :])
        value = wl.dot(a, wl.load(y + inner[:, None] * COLUMNS + columns[None, :]))
    else:
        value = wl.load(x + places)
    low, high = wl.load(lower + rows), wl.load(upper + rows)
    causal = keys[None, :] <= high[:, None]
    wl.store(out + places, wl.where(causal & (keys[None, :] < end), value, -1.0))
    between = (low[:, None] < keys[None, :]) & (high[:, None] > keys[None, :]) & (keys >= least)[None, :]
    wl.store(out + ROWS * COLUMNS + places, wl.where(between, value, -2.0))
    # Distances that do not overflow: rows near the keys.
    near = begin + rows
    distance = near[:, None] - keys[None, :]
    some = (distance >= 0) & (distance < window) & (wl.load(seen + rows) != 0)[:, None]
    wl.store(out + 2 * ROWS * COLUMNS + places, wl.where(some, value, -3.0))
    both = (keys[None, :] >= low[:, None]) & (keys[None, :] >= near[:, None] - 3) & (least <= keys)[None, :]
    wl.store(out + 3 * ROWS * COLUMNS + places, wl.where(both & (begin < end), value, -4.0))


@pytest.fixture
def random():
    seed = int(np.random.SeedSequence().entropy % 2**32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def bound(random, begin, columns, size=None):
    """Numbers around the keys, and the last ones that 32 bits hold."""
    near = begin + random.integers(-3, columns + 4, size)
    far = random.choice([INT.min, INT.min + 1, INT.max - 1, INT.max, 0, -1], size)
    return np.where(random.random(size) < 0.7, np.clip(near, INT.min, INT.max), far).astype(np.int32)


#: Rows, columns, warps, whether of a product, and how many of four masks are spans on sm_80 and on sm_90a.
TILES = [
    (16, 128, 1, True, (4, 4)),
    (32, 256, 1, True, (4, 4)),
    (64, 128, 4, True, (0, 4)),
    (64, 256, 4, True, (0, 4)),  # more than a word for each row
    (128, 128, 8, True, (0, 4)),
    (1, 1024, 1, False, (4, 4)),  # runs of four neighbours
    (2, 4096, 4, False, (4, 4)),
    (16, 64, 1, True, (0, 0)),  # half a word
    (64, 32, 4, False, (0, 0)),
]


@pytest.mark.parametrize("rows, columns, warps, product, counts", TILES)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_every_element(random, monkeypatch, rows, columns, warps, product, counts, target):
    monkeypatch.setenv("WEFT_TARGET", target)
    x = random.integers(-8, 9, (rows, 16 if product else columns))
    y = random.integers(-8, 9, (16, columns))
    value = (x @ y if product else x).astype(np.float32)
    x = x.astype(np.float16 if product else np.float32)
    for begin in (0, int(random.integers(-5000, 5000)), INT.max - columns - rows, INT.min + columns + rows):
        low, high = bound(random, begin, columns, rows), bound(random, begin, columns, rows)
        seen = random.integers(0, 4, rows).astype(np.int32)
        least, end = bound(random, begin, columns), bound(random, begin, columns)
        window = np.int32(random.choice([0, 1, 5, columns // 2, INT.max, INT.min, -3]))
        out = np.full((4, rows, columns), np.nan, np.float32)
        arguments = [spans, x, y.astype(np.float16), low, high, seen, out]
        arguments += [np.int32(begin), np.int32(least), np.int32(end), window]
        options = {"num_warps": warps, "ROWS": rows, "COLUMNS": columns, "PRODUCT": product}
        made = compiled(*arguments, **options)[0].ir["pipelined"].count("warp.span_select")
        assert made == counts[target == "sm_90a"]
        report = simulate(arguments[0], (1,), *arguments[1:], **options)
        assert not report.findings
        keys, near = begin + np.arange(columns, dtype=np.int64)[None], begin + np.arange(rows, dtype=np.int64)[:, None]
        low, high, seen = (each.astype(np.int64)[:, None] for each in (low, high, seen))
        masks = [
            (keys <= high) & (keys < end),
            (low < keys) & (high > keys) & (keys >= least),
            (near - keys >= 0) & (near - keys < window) & (seen != 0),
            (keys >= low) & (keys >= near - 3) & (keys >= least) & (begin < end),
        ]
        for number, (mask, got) in enumerate(zip(masks, out, strict=True)):
            np.testing.assert_array_equal(got, np.where(mask, value, np.float32(-1 - number)))
