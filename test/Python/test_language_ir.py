# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the front end makes of each part of the language: the tile IR, read as text."""

import pytest
import weft
import weft.language as wl
from language_support import matches, tile_ir
from weft import native


def test_vector_add():
    @weft.jit
    def kernel(x, z, n, BLOCK: wl.constexpr):
        offsets = wl.program_id(0) * BLOCK + wl.arange(0, BLOCK)
        mask = offsets < n
        wl.store(z + offsets, wl.load(x + offsets, mask=mask, other=0.0) + 1.5, mask=mask)

    ir = tile_ir(kernel, "x:*fp16:16, z:*fp16, n:i32:16, BLOCK=64")
    matches(
        ir,
        'warp.target = "sm_80"',
        "func.func @kernel(%arg0: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %arg1: !tile.ptr<f16>, "
        "%arg2: i32 {tile.divisibility = 16 : i32}) "
        "attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>}",
        "tile.program_id  x : i32",
        "arith.muli",
        "tile.make_range {end = 64 : i32, start = 0 : i32}",
        "arith.cmpi slt",
        "arith.constant dense<0.000000e+00> : tensor<64xf16>",
        "tile.load ...tensor<64x!tile.ptr<f16>>",
        "dense<1.500000e+00> : tensor<64xf16>",
        "arith.addf ...tensor<64xf16>",
        "tile.store",
        "return",
    )


def test_every_operation_has_the_users_position():
    @weft.jit
    def kernel(x):
        wl.store(x, wl.load(x) + 1)

    found = weft.compiler.lower.lower(
        kernel, weft.compiler.signature.parse("x:*i32"), weft.compiler.lower.Options(), "sm_80"
    )
    line = kernel.source.first_line + 2
    assert f'test_language_ir.py":{line}:21' in found.text(locations=True)


def test_loop_carries_what_the_body_assigns():
    @weft.jit
    def kernel(x, n):
        total = 0.0
        count = 0
        other = 5
        for i in range(2, n, 3):
            total += wl.load(x + i)
            count = count + other
        wl.store(x, total + count)

    ir = tile_ir(kernel, "x:*fp32, n:i32")
    matches(
        ir,
        "%c2_i32 = ",
        "%c3_i32 = ",
        "scf.for ... = %c2_i32",
        "to %arg1 step %c3_i32 iter_args(",
        "-> (f32, i32)",
        "scf.yield",
    )


def test_loop_backwards_counts_down():
    @weft.jit
    def kernel(x, n):
        for i in range(n, 0, -3):
            wl.store(x + i, i)

    matches(
        tile_ir(kernel, "x:*i32, n:i32"),
        "scf.for %arg2 = %c0_i32 to %arg1 step %c3_i32",
        "arith.subi %arg1, %arg2",
        "arith.addi",
    )


def test_range_advice():
    @weft.jit
    def kernel(x, n):
        for i in wl.range(0, n, num_stages=5):
            wl.store(x + i, i)

    matches(tile_ir(kernel, "x:*i32, n:i32"), "tile.num_stages = 5 : i32")


def test_static_range_unrolls_and_is_constant():
    @weft.jit
    def kernel(x):
        for i in wl.static_range(0, 6, 2):
            wl.store(x + wl.arange(0, 2**i), i)

    ir = tile_ir(kernel, "x:*i32")
    assert "scf.for" not in ir
    matches(ir, "tensor<1xi32>", "tensor<4xi32>", "tensor<16xi32>")


def test_nested_loops():
    @weft.jit
    def kernel(x, n):
        total = 0
        for i in range(n):
            for j in range(i):
                total += j
            total += 1
        wl.store(x, total)

    matches(tile_ir(kernel, "x:*i32, n:i32"), "scf.for", "scf.for", "scf.yield", "scf.yield", "tile.store")


def test_while():
    @weft.jit
    def kernel(x, n):
        a, b = n, 1
        while a > b:
            a, b = b, a - b
        wl.store(x, a)

    matches(tile_ir(kernel, "x:*i32, n:i32"), "scf.while", "arith.cmpi sgt", "scf.condition", "arith.subi", "scf.yield")


def test_branches_merge_what_they_assign():
    @weft.jit
    def kernel(x, n):
        a = 1
        if n > 5:
            a = 2
            b = a + n
        elif n > 3:
            b = 7
        else:
            b = n
        wl.store(x, a + b)

    matches(tile_ir(kernel, "x:*i32, n:i32"), "scf.if ... -> (i32, i32)", "else", "scf.if", "tile.store")


def test_constant_branches_fold():
    @weft.jit
    def kernel(x, FLAG: wl.constexpr, y=None):
        if FLAG and y is None:
            wl.store(x, 1)
        else:
            wl.store(y, undefined_here)  # noqa: F821

    ir = tile_ir(kernel, "x:*i32, FLAG=True")
    assert "scf.if" not in ir and "func.func @kernel(%arg0: !tile.ptr<i32>)" in ir


def test_early_return():
    @weft.jit
    def kernel(x, n):
        if wl.program_id(0) >= n:
            return
        wl.store(x, 1)

    matches(tile_ir(kernel, "x:*i32, n:i32"), "scf.if", "else", "tile.store")


@weft.jit
def clipped(value, limit: wl.constexpr = 4):
    if value > limit:
        return limit + value * 0
    return value


@weft.jit
def twice(function: wl.constexpr, value):
    return function(function(value))


def test_helpers_are_inlined_and_may_return_early():
    @weft.jit
    def kernel(x, n):
        wl.store(x, clipped(n) + clipped(n, limit=2) + twice(clipped, n))

    ir = tile_ir(kernel, "x:*i32, n:i32")
    assert ir.count("scf.if") == 4 and ir.count("func.func") == 1


def test_tuples():
    @weft.jit
    def swapped(pair):
        return pair[1], pair[0]

    @weft.jit
    def kernel(x, y, n):
        pair = (n, 2.5)
        for _ in range(n):
            pair = (pair[0] + 1, pair[1] * 2)
        a, b = swapped(pair)
        (c, d), e = (b, a), 1
        wl.store(x, a)
        wl.store(y, b + c + e + d.to(wl.int32))

    matches(tile_ir(kernel, "x:*fp32, y:*i32, n:i32"), "scf.for ...(i32, f32)", "tile.store", "tile.store")


LIMIT = wl.constexpr(12)


def test_global_and_closure_constants():
    depth = wl.constexpr(3)

    @weft.jit
    def kernel(x):
        wl.store(x, LIMIT * depth)

    matches(tile_ir(kernel, "x:*i32"), "arith.constant 36 : i32")


def test_constants_keep_pythons_division_and_variables_c_division():
    @weft.jit
    def kernel(x, A: wl.constexpr):
        wl.store(x, A // 2)
        a = A
        wl.store(x, a // 2)

    matches(tile_ir(kernel, "x:*i32, A=-7"), "arith.constant -4 : i32", "arith.constant -3 : i32")


def test_shapes_and_axes():
    @weft.jit
    def kernel(x):
        a = wl.arange(0, 8)
        block = a[:, None] * 4 + wl.arange(0, 4)[None, :]
        wl.store(
            x + block,
            wl.trans(wl.reshape(block, (4, 8))) + wl.permute(wl.zeros((4, 8), wl.int32), 1, 0) + block.T.reshape(8, -1),
        )
        joined = wl.join(a, a + 1)
        even, odd = wl.split(joined)
        wl.store(x + wl.arange(0, 16), wl.interleave(even, odd) + wl.cat(a, a) + joined.ravel())
        wl.store(x + a, wl.expand_dims(a, (0, 2)).broadcast_to(1, 8, 1).view(8))

    matches(
        tile_ir(kernel, "x:*i32"),
        "tile.expand_dims ...axis = 1",
        "tile.expand_dims ...axis = 0",
        "tile.broadcast",
        "tile.reshape",
        "tile.permute ...array<i32: 1, 0>",
        "tile.join",
        "tile.split",
        "tile.join",
        "tile.permute ...tensor<8x2xi32> -> tensor<2x8xi32>",
        "tile.expand_dims",
    )


@weft.jit
def pair_sum(a, i, b, j):
    return a + b, wl.maximum(i, j)


def test_reductions_and_scans():
    @weft.jit
    def kernel(x, y):
        a = wl.load(x + wl.arange(0, 4)[:, None] * 8 + wl.arange(0, 8)[None, :])
        wl.store(y, wl.sum(a) + wl.max(a, 1).sum(0) + wl.min(wl.min(a, 0), 0))
        value, index = wl.max(a, 1, return_indices=True)
        wl.store(y + index, value)
        total, most = wl.reduce((a, a.to(wl.int32)), 0, pair_sum, keep_dims=True)
        wl.store(y + wl.arange(0, 8)[None, :], total + most)
        wl.store(
            y + wl.argmin(a, 0), wl.cumsum(a, 1, reverse=True).sum(0) + wl.associative_scan(a, 0, wl.maximum).sum(0)
        )

    matches(
        tile_ir(kernel, "x:*fp16, y:*fp32"),
        "tile.reduce ...axis = 0 : i32} : (tensor<32xf16>) -> f16",
        "tile.reduce ...axis = 1",
        "arith.maxnumf",
        "arith.minnumf",
        "tile.reduce %..., %... {axis = 1",
        "arith.ori",
        "tile.reduce %..., %... {axis = 0 : i32} : (tensor<4x8xf16>, tensor<4x8xi32>)",
        "-> (tensor<8xf16>, tensor<8xi32>)",
        "arith.maxsi",
        "tile.scan ...reverse",
        "tile.scan ...axis = 0",
    )


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "ieee"])
def test_dot(precision):
    @weft.jit
    def kernel(x, y, PRECISION: wl.constexpr):
        at = wl.arange(0, 16)[:, None] * 16 + wl.arange(0, 16)[None, :]
        a = wl.load(x + at)
        c = wl.dot(a, a, input_precision=PRECISION)
        wl.store(y + at, wl.dot(a, wl.trans(a), acc=c))

    precise = "" if precision == "tf32" else f"precision = ...{precision}"
    ir = tile_ir(kernel, f"x:*fp32, y:*fp32, PRECISION='{precision}'")
    matches(ir, "dense<0.000000e+00> : tensor<16x16xf32>", f"tile.dot ...{precise}", "tile.permute", "tile.dot")


def test_memory_options():
    @weft.jit
    def kernel(x, flags, n):
        at = wl.arange(0, 16)
        a = wl.load(x + at, mask=at < n, other=7, cache_modifier=".cg")
        a += wl.load(x + at, mask=at < n, other=7, eviction_policy="evict_first")
        a += wl.load(x + at, volatile=True)
        wl.store(x + at, a, cache_modifier=".wt")
        wl.store(flags + at, wl.load(flags + at) & (a > 2))

    matches(
        tile_ir(kernel, "x:*i64, flags:*i1, n:i32"),
        "dense<7> : tensor<16xi64>",
        "tile.load ...cg",
        "tile.load ...evict_first",
        "tile.load ...isVolatile",
        "tile.store ...wt",
        "tile.load ...!tile.ptr<i8>",
        "arith.cmpi ne",
        "arith.extui ...to tensor<16xi8>",
    )


def test_hints():
    @weft.jit
    def kernel(x, n):
        n = wl.multiple_of(n, 8)
        at = wl.max_contiguous(wl.multiple_of(wl.arange(0, 16) * n, 16), 4)
        wl.store(x + at, at)

    matches(
        tile_ir(kernel, "x:*i32, n:i32"),
        "%arg1: i32 {tile.divisibility = 8 : i32}",
        "tile.contiguity = array<i32: 4>",
        "tile.divisibility = array<i32: 16>",
    )


def test_atomics():
    @weft.jit
    def kernel(x, y):
        at = wl.arange(0, 16)
        wl.atomic_add(x + at, 1.0)
        wl.atomic_max(y + at, at, mask=at < 3, sem="relaxed", scope="cta")
        wl.atomic_xchg(y, wl.atomic_cas(y, 0, 1))

    matches(
        tile_ir(kernel, "x:*fp32, y:*u32"),
        "tile.atomic_rmw  fadd",
        "tile.atomic_rmw  umax ...relaxed...scope cta",
        "tile.atomic_cas",
        "tile.atomic_rmw  exchange",
    )


def test_checks(capsys):
    @weft.jit
    def kernel(x, n, BLOCK: wl.constexpr):
        wl.static_assert(BLOCK % 4 == 0, f"BLOCK is {BLOCK}")
        wl.static_print("block", BLOCK, n)
        assert BLOCK > 2
        assert n > 3, "n is small"
        wl.debug_barrier()
        wl.store(x, n)

    ir = tile_ir(kernel, "x:*i32, n:i32, BLOCK=8")
    assert "tile.assert" not in ir and "tile.barrier" in ir
    assert capsys.readouterr().out == "block 8 int32\n"
    options = weft.compiler.lower.Options(debug=True)
    ir = weft.compiler.lower.lower(
        kernel, weft.compiler.signature.parse("x:*i32, n:i32, BLOCK=8"), options, "sm_80"
    ).text()
    matches(ir, "tile.assert", "n is small")


def test_element_type_and_dtype_questions():
    @weft.jit
    def kernel(x, y):
        a = wl.load(x)
        if x.dtype.element_ty.is_floating() and a.dtype.primitive_bitwidth == 16:
            wl.store(y, a.to(y.dtype.element_ty))
        else:
            wl.store(y, a.to(wl.int32, bitcast=True))

    matches(tile_ir(kernel, "x:*bf16, y:*fp32"), "arith.extf")
    matches(tile_ir(kernel, "x:*fp32, y:*i32"), "arith.bitcast")


def test_f_strings_builtins_and_modules():
    import math

    @weft.jit
    def kernel(x, N: wl.constexpr):
        size: wl.constexpr = max(weft.next_power_of_2(N), 4, int(math.sqrt(N)))
        wl.static_assert(f"{size:03d} {N!r}" == "032 20" and len((1, 2)) == 2 and isinstance(N, int))
        at = wl.arange(0, size)
        wl.store(x + at, max(at, N) + min(2, 3) + abs(-at) + float("inf"))

    matches(tile_ir(kernel, "x:*fp32, N=20"), "tensor<32xi32>", "math.absi", "arith.sitofp", "0x7F800000")


def test_an_operation_of_no_dialect_is_refused():
    context = native.load("_compiler").Context()
    with pytest.raises(ValueError, match=r"expected the name of an operation, but got 'tile\.nothing'"):
        at = context.location("f.py", 1, 1)
        context.module(at).create("tile.nothing", at)
