# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arguments that are made of others: tuples and lists of arrays and numbers, descriptors made on the host."""

from typing import NamedTuple

import numpy as np
import pytest
import weft
import weft.language as wl
from weft.triton.tools.tensor_descriptor import TensorDescriptor


@weft.jit
def sums(xs, scales, out, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    total = wl.zeros((BLOCK,), wl.float32)
    for i in wl.static_range(len(xs)):
        total += wl.load(xs[i] + at).to(wl.float32) * scales[i]
    for x in xs[1:]:
        total += wl.load(x + at).to(wl.float32)
    wl.store(out + at, total)


def test_a_tuple_of_arrays():
    generator = np.random.default_rng(1)
    xs = tuple(generator.standard_normal(64).astype(kind) for kind in (np.float32, np.float16, np.float32))
    out = np.full(64, np.nan, np.float32)
    for scales in ([2.0, 3.0, 1], (0.5, 7.0, 3)):
        sums[(1,)](xs, scales, out, BLOCK=64)
        wanted = sum(x.astype(np.float64) * s for x, s in zip(xs, scales, strict=True)) + xs[1] + xs[2].astype(float)
        np.testing.assert_allclose(out, wanted, atol=1e-5)
    sums[(1,)](list(xs[:2]), (1.0, 1.0), out, BLOCK=64)
    np.testing.assert_allclose(out, xs[0] + 2.0 * xs[1].astype(float), atol=1e-5)


@weft.jit
def picks(nested, out):
    (x, n), _, nothing = nested
    if nothing is None:
        wl.store(out, wl.load(x) + n + wl.load(nested[1]))


def test_tuples_in_tuples_with_none_and_one():
    x, y, out = np.full(1, 2.0, np.float32), np.full(1, 30.0, np.float32), np.zeros(1, np.float32)
    for n in (1, 5):
        picks[(1,)](((x, n), y, None), out)
        assert out[0] == 32 + n


def test_signatures_spell_parts():
    kernel = sums.compile("xs[0]:*fp32:16, xs[1]:*fp16, scales[0]:fp32, scales[1]=2.0, out:*fp32, BLOCK=64")
    assert list(kernel.signature.arguments) == ["xs[0]", "xs[1]", "scales[0]", "out"]
    with pytest.raises(weft.CompilationError, match="expected one of the parameters"):
        sums.compile("ys[0]:*fp32, xs[0]:*fp32, scales[0]:fp32, out:*fp32, BLOCK=64")


@weft.jit
def transposed(source, target, ROWS: wl.constexpr, COLUMNS: wl.constexpr):
    i, j = wl.program_id(0) * ROWS, wl.program_id(1) * COLUMNS
    tile = source.load([i, j])
    wl.static_assert(source.block_shape[1] == COLUMNS)
    target.store([j, i], tile.T)


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_descriptors_made_on_the_host(padding):
    x = np.random.default_rng(2).standard_normal((37, 50)).astype(np.float32)
    out = np.full((64, 48), 9.0, np.float32)
    source = TensorDescriptor.from_tensor(x, [16, 32], padding)
    transposed[(3, 2)](source, TensorDescriptor(out, [64, 48], [48, 1], [32, 16]), ROWS=16, COLUMNS=32)
    wanted = np.full((64, 48), 0.0 if padding == "zero" else np.nan)
    wanted[:50, :37] = x.T
    np.testing.assert_array_equal(out, wanted)
    view = TensorDescriptor.from_tensor(x.T, [16, 32])
    assert view.strides == [1, 50]
    transposed[(4, 2)](view, TensorDescriptor.from_tensor(out[:, :], [32, 16]), ROWS=16, COLUMNS=32)
    np.testing.assert_array_equal(out[:37, :48], x.T[:48].T)


def test_descriptors_say_what_is_wrong():
    x = np.zeros((4, 4), np.float32)
    with pytest.raises(ValueError, match="of one length"):
        TensorDescriptor(x, [4, 4], [4, 1], [16])
    with pytest.raises(ValueError, match="'padding'"):
        TensorDescriptor(x, [4, 4], [4, 1], [16, 16], "one")


@weft.autotune([weft.Config({"BLOCK": 32}), weft.Config({"BLOCK": 64})], key=["n"], cache_results=False)
@weft.jit
def adds_in_place(xs, n, BLOCK: wl.constexpr):
    at = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
    for x in xs:
        wl.store(x + at, wl.load(x + at, mask=at < n) + 1, mask=at < n)


def test_tuning_puts_back_the_arrays_of_a_tuple():
    xs = [np.zeros(64, np.float32), np.ones(64, np.float32)]
    adds_in_place[lambda meta: (weft.cdiv(64, meta["BLOCK"]),)](xs, 64)
    assert (xs[0] == 1).all()
    assert (xs[1] == 2).all()


class Pair(NamedTuple):
    first: np.ndarray
    rest: tuple[int, np.ndarray]


@weft.jit
def of_names(pair, out):
    wl.store(out, wl.load(pair.first) + pair.rest[0] + wl.load(pair[1][1]))


def test_named_tuples():
    out = np.zeros(1, np.float32)
    of_names[(1,)](Pair(np.full(1, 5.0, np.float32), (20, np.full(1, 300.0, np.float32))), out)
    assert out[0] == 325
    kernel = of_names.compile("pair.first:*fp32, pair.rest[0]:i32, pair.rest[1]:*fp32, out:*fp32")
    assert list(kernel.signature.arguments) == ["pair.first", "pair.rest[0]", "pair.rest[1]", "out"]


@weft.jit
def of_list(x, SIZES: wl.constexpr):
    total = 0
    for size in SIZES:
        total += size
    wl.store(x, total + SIZES[-1])


def test_lists_of_constants():
    x = np.zeros(1, np.int32)
    of_list[(1,)](x, [3, 4, 5])
    assert x[0] == 17
