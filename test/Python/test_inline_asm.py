# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``inline_asm_elementwise``: PTX on elements, packed and not, as the simulator runs it; what is refused, and where."""

import numpy as np
import pytest
import weft
import weft.language as wl
from kernel_support import simulate


@weft.jit
def rotated(x, out, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    y = wl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $1, 8;", "=r, r", [wl.load(x + at)], dtype=wl.int32, is_pure=True, pack=1
    )
    wl.store(out + at, y)


@pytest.mark.parametrize("block", [32, 256])
def test_one_element_each(block):
    x = np.random.default_rng(1).integers(-(2**31), 2**31, block).astype(np.int32)
    out = np.zeros_like(x)
    simulate(rotated, (1,), x, out, BLOCK=block)
    bits = x.view(np.uint32)
    np.testing.assert_array_equal(out.view(np.uint32), (bits << np.uint32(8)) | (bits >> np.uint32(24)))


@weft.jit
def nibbles(x, high, low, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    h, lo = wl.inline_asm_elementwise(
        """{
            .reg .b32 t;
            and.b32 t, $2, 0xF0F0F0F0;
            shr.u32 $0, t, 4;
            and.b32 $1, $2, 0x0F0F0F0F;
        }""",
        "=r,=r,r",
        [wl.load(x + at)],
        dtype=(wl.uint8, wl.uint8),
        is_pure=True,
        pack=4,
    )
    wl.store(high + at, h)
    wl.store(low + at, lo)


@pytest.mark.parametrize("block", [64, 1024])
def test_four_packed_into_a_register(block):
    x = np.random.default_rng(2).integers(0, 256, block).astype(np.uint8)
    high, low = np.full_like(x, 99), np.full_like(x, 99)
    simulate(nibbles, (1,), x, high, low, BLOCK=block)
    np.testing.assert_array_equal(high, x >> 4)
    np.testing.assert_array_equal(low, x & 15)


@weft.jit
def scaled_halves(x, y, out, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    z = wl.inline_asm_elementwise(
        "fma.rn.f16x2 $0, $1, $2, $1;",
        "=r,r,r",
        [wl.load(x + at), wl.load(y)],
        dtype=wl.float16,
        is_pure=True,
        pack=2,
    )
    wl.store(out + at, z)


def test_halves_in_pairs_and_a_scalar_that_is_repeated():
    x = np.random.default_rng(3).standard_normal(256).astype(np.float16)
    out, y = np.full_like(x, np.nan), np.full(1, 0.5, np.float16)
    simulate(scaled_halves, (1,), x, y, out, BLOCK=256)
    np.testing.assert_array_equal(out, (x.astype(np.float64) * 1.5).astype(np.float16))


@weft.jit
def half_by_half(x, out, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    wide = wl.inline_asm_elementwise(
        "cvt.f64.f16 $0, $1;", "=d,h", [wl.load(x + at)], dtype=wl.float64, is_pure=True, pack=1
    )
    wl.store(out + at, wide)


def test_registers_of_16_and_64_bits():
    x = np.random.default_rng(4).standard_normal(64).astype(np.float16)
    out = np.full(64, np.nan)
    simulate(half_by_half, (1,), x, out, BLOCK=64)
    np.testing.assert_array_equal(out, x.astype(np.float64))


@weft.jit
def special(out):
    warp = wl.inline_asm_elementwise("mov.u32 $0, %ntid.x;", "=r", [], dtype=wl.int32, is_pure=True, pack=1)
    wl.store(out, warp)


def test_no_arguments_give_a_scalar():
    out = np.zeros(1, np.int32)
    simulate(special, (1,), out, num_warps=2)
    assert out[0] == 64


@weft.jit
def with_effect(x, out, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    wl.inline_asm_elementwise(
        "st.global.s32 [$1], $2; mov.u32 $0, 0;",
        "=r,l,r,~{memory}",
        [(out + at).to(wl.int64), wl.load(x + at)],
        dtype=wl.int32,
        is_pure=False,
        pack=1,
    )


def test_code_with_effects_is_kept():
    x = np.arange(64, dtype=np.int32)
    out = np.zeros_like(x)
    simulate(with_effect, (1,), x, out, BLOCK=64, num_warps=2)
    np.testing.assert_array_equal(out, x)


@weft.jit
def of_numbers(x, y, z, MASK: wl.constexpr, TABLE: wl.constexpr, BLOCK: wl.constexpr):
    """Only a number may stand where lop3 has its table: a register may not."""
    at = wl.arange(0, BLOCK)
    v = wl.load(x + at)
    code = "lop3.b32 $0, $1, $2, $3, ${4};"
    chosen = wl.inline_asm_elementwise(code, "=r,r,n,i,n", [v, MASK, 0x64006400, TABLE], wl.int32, True, 1)
    code = "add.u32 $0, $2, $4; sub.u32 $1, $3, $5;"
    wl.store(y + at, chosen)
    wl.store(z + at, wl.inline_asm_elementwise(code, "=r,=r,r,r,n,n", [v, 7], wl.int32, True, 2))


@pytest.mark.parametrize("block", [64, 512])
@pytest.mark.parametrize("mask", [0x000F000F, 0xFFF0FFF0])
def test_numbers_that_stand_in_the_code(mask, block):
    x = np.random.default_rng(8).integers(-(2**31), 2**31, block).astype(np.int32)
    y, z = np.zeros_like(x), np.zeros_like(x)
    simulate(of_numbers, (1,), x, y, z, MASK=mask, TABLE=(0xF0 & 0xCC) | 0xAA, BLOCK=block, num_warps=1)
    bits = x.view(np.uint32)
    np.testing.assert_array_equal(y.view(np.uint32), bits & np.uint32(mask) | np.uint32(0x64006400))
    change = (z.view(np.uint32) - bits).view(np.int32)
    assert set(change.tolist()) == {7, -7} and (change == 7).sum() == block // 2


@weft.jit
def of_what_is_no_number(x, n, OTHER: wl.constexpr):
    at = wl.arange(0, 32)
    other = n if OTHER is None else OTHER
    y = wl.inline_asm_elementwise("add.u32 $0, $1, $2;", "=r,r,n", [wl.load(x + at), other], wl.int32, True, 1)
    wl.store(x + at, y)


@pytest.mark.parametrize(
    ("other", "said"),
    [(None, "expected a constant, which the constraint 'n' puts into the code"), (1.5, "expected an integer for the")],
)
def test_what_is_no_number_is_refused_at_its_line(other, said):
    with pytest.raises(weft.CompilationError) as caught:
        of_what_is_no_number.compile("x:*i32, n:i32", constants={"OTHER": other})
    assert said in str(caught.value) and "y = wl.inline_asm_elementwise(" in str(caught.value)


@weft.jit
def asks(x, CODE: wl.constexpr, CONSTRAINTS: wl.constexpr, PACK: wl.constexpr):
    at = wl.arange(0, 32)
    y = wl.inline_asm_elementwise(CODE, CONSTRAINTS, [wl.load(x + at)], dtype=wl.int32, is_pure=True, pack=PACK)
    wl.store(x + at, y)


@pytest.mark.parametrize(
    ("code", "constraints", "pack", "said"),
    [
        ("mov.b32 $0, $1;", "=r", 1, "expected 2 constraints"),
        ("mov.b32 $0, $1;", "=r,r,r", 1, "expected 2 constraints"),
        ("mov.b32 $0, $1;", "r,=r", 1, "results, then of operands"),
        ("mov.b32 $0, $1;", "=r,x", 1, "or the number of a result, but got 'x'"),
        ("mov.b32 $0, $1;", "=r,h", 1, "a register of at least 32 bits for an operand"),
        ("mov.b32 $0, $1;", "=r,1", 1, "but got '1'"),
        ("mov.b32 $0, $2;", "=r,r", 1, "the number of an operand below 2 in the code, but got '$2'"),
        ("mov.b32 $0, $x;", "=r,r", 1, "but got '$x'"),
        ("mov.b32 $0, $1;", "=r,r", 3, "a power of two up to 32, but got 3"),
        ("mov.b32 $0, $1;", 5, 1, "expected 'constraints' of 'inline_asm_elementwise' to be a text"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_line(code, constraints, pack, said):
    with pytest.raises(weft.CompilationError) as caught:
        asks.compile("x:*i32", constants={"CODE": code, "CONSTRAINTS": constraints, "PACK": pack})
    assert said in str(caught.value)
    assert "y = wl.inline_asm_elementwise(CODE" in str(caught.value)
