# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Products of 64 bits of numbers that are widened elsewhere: every bit of them, whatever signs the numbers have."""

import numpy as np
import pytest
import torch
import weft
import weft.language as wl


@weft.jit
def products(x, y, sums, stride, n, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    total = wl.zeros((BLOCK,), wl.int64)
    for first in range(0, n, BLOCK):
        number = wl.load(x + first + at, mask=first + at < n, other=0)
        product = number.to(wl.int64) * stride.to(wl.int64)
        wl.store(y + first + at, product, mask=first + at < n)
        total += number.to(wl.int64) * stride + number.to(wl.int64)
    wl.store(sums + at, total)


def wrapped(number):
    """As 64 bits have it."""
    return (number + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("stride_kind", [np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int16, np.uint8])
def test_every_bit(kind, stride_kind, target, seed, monkeypatch):
    monkeypatch.setenv("WEFT_DEVICE", f"simulator:{target}")
    random = np.random.default_rng(seed)
    n, block = 300, 64
    ends, stride_ends = np.iinfo(kind), np.iinfo(np.int32 if stride_kind is np.int64 else stride_kind)
    x = random.integers(ends.min, ends.max, n, endpoint=True).astype(kind)
    x[:4] = ends.min, ends.max, 0, 1
    for stride in (stride_ends.min, stride_ends.max, int(random.integers(stride_ends.min, stride_ends.max))):
        y, sums = np.zeros(n, np.int64), np.zeros(block, np.int64)
        products[1,](x, y, sums, stride_kind(stride), np.int32(n), BLOCK=block, num_warps=1)
        exact = [wrapped(int(value) * stride) for value in x]
        assert y.tolist() == exact
        both = [value + int(number) for value, number in zip(exact, x, strict=True)]
        assert sums.tolist() == [wrapped(sum(both[i::block])) for i in range(block)]


@weft.jit
def gathered(x, table, y, stride, n, ROWS: wl.constexpr, COLUMNS: wl.constexpr):
    rows, columns = wl.arange(0, ROWS), wl.arange(0, COLUMNS)
    for first in range(0, n, ROWS):
        index = wl.load(table + first + rows, mask=first + rows < n, other=0).to(wl.int64)
        value = wl.load(x + index[:, None] * stride + columns[None, :])
        wl.store(y + (first + rows)[:, None] * COLUMNS + columns[None, :], value, mask=(first + rows < n)[:, None])


@pytest.mark.parametrize("sign", [1, -1])
def test_rows_by_a_table(sign, seed):
    """Indices and strides of either sign, whose products are none."""
    torch.manual_seed(seed)
    n, points, columns = 70, 50, 16
    x, y = torch.randn(points, columns), torch.full((n, columns), torch.nan)
    table = torch.randint(0, points, (n,), dtype=torch.int32)
    gathered[1,](x, sign * table, y, sign * columns, n, ROWS=32, COLUMNS=columns)
    np.testing.assert_array_equal(y, x[table.long()])
