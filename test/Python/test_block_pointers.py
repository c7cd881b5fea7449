# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``make_block_ptr`` and ``advance`` against NumPy: bounds, padding, strides, loops, branches, errors."""

import numpy as np
import pytest
import weft
import weft.language as wl
from language_support import tile_ir

SEED = int(np.random.default_rng().integers(1 << 30))
rng = np.random.default_rng(SEED)
print(f"seed {SEED}")


@weft.jit
def copy(x, y, M, N, sm, sn, i, j, BM: wl.constexpr, BN: wl.constexpr, CHECK: wl.constexpr, PAD: wl.constexpr):
    p = wl.make_block_ptr(x, (M, N), (sm, sn), (i, j), (BM, BN), (1, 0))
    block = wl.load(p, boundary_check=CHECK, padding_option=PAD)
    wl.store(y + wl.arange(0, BM)[:, None] * BN + wl.arange(0, BN)[None, :], block)


def padded(x, i, j, bm, bn, value):
    found = np.full((bm, bn), value, x.dtype)
    for a in range(bm):
        for b in range(bn):
            if 0 <= i + a < x.shape[0] and 0 <= j + b < x.shape[1]:
                found[a, b] = x[i + a, j + b]
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8])
@pytest.mark.parametrize("place", [(0, 0), (20, 30), (-5, -9), (37, 41), (-40, 0)])
def test_a_block_is_padded_where_it_leaves_its_array(dtype, place):
    x = (rng.standard_normal((37, 41)) * 50).astype(dtype)
    y = np.full((16, 32), 77, dtype)
    copy[1,](x, y, 37, 41, 41, 1, *place, BM=16, BN=32, CHECK=(0, 1), PAD="zero")
    np.testing.assert_array_equal(y, padded(x, *place, 16, 32, 0))


def test_without_an_option_padding_is_zero_and_nan_on_request():
    x = rng.standard_normal((20, 20)).astype(np.float32)
    y = np.empty((32, 32), np.float32)
    copy[1,](x, y, 20, 20, 20, 1, 0, 0, BM=32, BN=32, CHECK=(0, 1), PAD="")
    np.testing.assert_array_equal(y, padded(x, 0, 0, 32, 32, 0))
    copy[1,](x, y, 20, 20, 20, 1, 0, 0, BM=32, BN=32, CHECK=(0, 1), PAD="nan")
    np.testing.assert_array_equal(y, padded(x, 0, 0, 32, 32, np.nan))


@pytest.mark.parametrize("sizes", [(-1, 41), (37, -(2**31)), (0, 0)])
def test_nothing_is_inside_of_a_size_below_zero(sizes):
    x, y = np.ones((37, 41), np.float32), np.full((16, 32), 77, np.float32)
    copy[1,](x, y, *sizes, 41, 1, 0, 0, BM=16, BN=32, CHECK=(0, 1), PAD="zero")
    assert (y == 0).all()


def test_one_axis_is_checked_alone():
    x = rng.standard_normal((20, 32)).astype(np.float32)
    y = np.empty((32, 32), np.float32)
    copy[1,](x, y, 20, 32, 32, 1, 0, 0, BM=32, BN=32, CHECK=(0,), PAD="zero")
    np.testing.assert_array_equal(y, padded(x, 0, 0, 32, 32, 0))
    copy[1,](x, y[:16], 20, 32, 32, 1, 0, 0, BM=16, BN=32, CHECK=(), PAD="")
    np.testing.assert_array_equal(y[:16], x[:16])


def test_strides_of_any_order():
    x = rng.standard_normal((24, 40)).astype(np.float32)
    y = np.empty((32, 16), np.float32)
    copy[1,](x, y, 40, 24, 1, 40, 3, 5, BM=32, BN=16, CHECK=(0, 1), PAD="zero")
    np.testing.assert_array_equal(y, padded(x.T, 3, 5, 32, 16, 0))


@weft.jit
def matmul(a, b, c, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    i, j = wl.program_id(0) * BM, wl.program_id(1) * BN
    pa = wl.make_block_ptr(a, (M, K), (K, 1), (i, 0), (BM, BK), (1, 0))
    pb = wl.make_block_ptr(b, (K, N), (N, 1), (0, j), (BK, BN), (1, 0))
    total = wl.zeros((BM, BN), wl.float32)
    for _ in range(0, K, BK):
        total = wl.dot(wl.load(pa, boundary_check=(0, 1)), wl.load(pb, boundary_check=(0, 1)), total)
        pa, pb = wl.advance(pa, (0, BK)), wl.advance(pb, (BK, 0))
    pc = wl.make_block_ptr(c, (M, N), (N, 1), (i, j), (BM, BN), (1, 0))
    wl.store(pc, total.to(c.dtype.element_ty), boundary_check=(0, 1))


def test_a_product_whose_sizes_no_tile_divides():
    m, n, k = 50, 70, 90
    a, b = rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)
    c = np.full((m + 1, n), np.nan, np.float32)
    matmul[2, 3](a, b, c[:m], m, n, k, BM=32, BN=32, BK=32)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c[:m], exact, atol=1e-2, rtol=1e-3)
    assert np.isnan(c[m]).all()


def test_a_loop_carries_offsets_alone_and_copies_are_asynchronous():
    ir = tile_ir(matmul, "a:*fp16:16, b:*fp16:16, c:*fp32:16, M:i32:16, N:i32:16, K:i32:16, BM=64, BN=64, BK=32")
    loop = next(line for line in ir.splitlines() if "scf.for" in line)
    carried = loop.partition("-> (")[2].partition(")  :")[0]
    assert carried.split(", ") == ["tensor<64x64xf32>", *["i32"] * 4]  # two offsets of two block pointers
    made = matmul.compile("a:*fp16:16, b:*fp16:16, c:*fp32:16, M:i32:16, N:i32:16, K:i32:16, BM=64, BN=64, BK=32")
    assert "cp.async.cg.shared.global" in made.ptx


@weft.jit
def chosen(x, y, z, n, which, BLOCK: wl.constexpr):
    if which > 0:
        p = wl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    else:
        p = wl.make_block_ptr(y, (n // 2,), (2,), (0,), (BLOCK,), (0,))
    q = wl.make_block_ptr(z, (n,), (1,), (0,), (BLOCK,), (0,))
    wl.store(q, wl.load(p, boundary_check=(0,)), boundary_check=(0,))


def test_branches_choose_the_array():
    x, y = rng.standard_normal(64).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    z = np.empty(64, np.float32)
    chosen[1,](x, y, z, 64, 5, BLOCK=64)
    np.testing.assert_array_equal(z, x)
    chosen[1,](x, y, z, 64, -5, BLOCK=64)
    np.testing.assert_array_equal(z, np.concatenate([y[::2], np.zeros(32)]))


@weft.jit
def in_turns(x, y, z, n, BLOCK: wl.constexpr):
    p = wl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    total = wl.zeros((BLOCK,), wl.float32)
    for i in range(4):
        total += wl.load(p, boundary_check=(0,))
        if i % 2 == 0:
            p = wl.make_block_ptr(y, (n,), (1,), (i,), (BLOCK,), (0,))
        else:
            p = wl.make_block_ptr(x, (n,), (1,), (i,), (BLOCK,), (0,))
    wl.store(z + wl.arange(0, BLOCK), total)


def test_a_loop_that_goes_to_another_array():
    n, block = 60, 64
    x, y, z = (rng.standard_normal(n).astype(np.float32) for _ in range(3))
    z = np.empty(block, np.float32)
    in_turns[1,](x, y, z, n, BLOCK=block)

    def at(array, offset):
        return np.concatenate([array[offset:], np.zeros(block - n + offset, np.float32)])

    np.testing.assert_allclose(z, at(x, 0) + at(y, 0) + at(x, 1) + at(y, 2), rtol=1e-6)


@weft.jit
def far(x, y, step, BLOCK: wl.constexpr):
    p = wl.make_block_ptr(x, (1 << 20, BLOCK), (step, 1), (3, 0), (2, BLOCK), (1, 0))
    wl.store(y + wl.arange(0, 2)[:, None] * BLOCK + wl.arange(0, BLOCK), wl.load(p))


def test_offsets_times_strides_are_64_bits_wide():
    ir = tile_ir(far, "x:*fp32, y:*fp32, step:i32, BLOCK=16")
    assert "arith.muli" in ir
    assert all(
        "i64" in line for line in ir.splitlines() if "muli" in line and "constant" not in line and "i32" not in line
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("wl.make_block_ptr(x, (n, n), (n,), (0, 0), (16, 16), (1, 0))", "expected 2 numbers for 'strides'.*got 1"),
        (
            "wl.make_block_ptr(n, (n,), (1,), (0,), (16,), (0,))",
            "expected a pointer for 'make_block_ptr', but got int32",
        ),
        ("wl.make_block_ptr(x, (n,), (1,), (0,), (0,), (0,))", "sizes of at least 1 for the block_shape.*got 0"),
        ("wl.make_block_ptr(x, (1.5,), (1,), (0,), (16,), (0,))", "expected integers for 'shape'.*fp32"),
        ("wl.advance(x, (1,))", "expected a block pointer for 'advance', but got pointer"),
        ("wl.advance(p, (1, 2))", "expected 1 numbers for 'offsets' of 'advance'"),
        ("wl.load(p, mask=n > 0)", "expected no 'mask' for 'load' of a block pointer"),
        ("wl.load(p, boundary_check=(1,))", "boundary_check of load"),
        ("wl.load(p, boundary_check=(0,), padding_option='one')", "padding_option"),
        ("wl.load(x, boundary_check=(0,))", "of plain pointers, but got one"),
    ],
)
def test_errors(body, message, tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text(
        "import weft\nimport weft.language as wl\n@weft.jit\ndef kernel(x, n):\n"
        f"    p = wl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))\n    q = {body}\n"
    )
    scope = {}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    with pytest.raises(weft.CompilationError, match=message):
        scope["kernel"].compile("x:*fp32, n:i32")
