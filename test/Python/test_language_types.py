# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Types: promotion as Triton has it, constants, casts, and the text form of signatures."""

import itertools

import numpy as np
import pytest
import weft
import weft.language as wl
from hypothesis import given
from hypothesis import strategies as st
from language_support import SCALARS, matches, tile_ir
from weft.compiler import signature
from weft.compiler.diagnostics import CompilationError
from weft.language import errors, literals, operators, promotion
from weft.language.value import tensor

NUMBERS = {"bool": True, "small int": 3, "large int": 2**40, "float": 1.5, "double": 1e300}


@pytest.mark.parametrize("division", [False, True], ids=["plain", "division"])
def test_promotion_of_every_pair_is_tritons(division):
    semantic = pytest.importorskip("triton.language.semantic")
    core = pytest.importorskip("triton.language.core")
    theirs = semantic.TritonSemantic(None)
    compared = 0
    for a, b, a_number, b_number in itertools.product(SCALARS, SCALARS, (False, True), (False, True)):
        try:
            expected = str(theirs.computation_type_impl(core.dtype(a), a_number, core.dtype(b), b_number, division))
        except TypeError:
            expected = None
        try:
            got = str(promotion.computation_type(SCALARS[a], a_number, SCALARS[b], b_number, division))
        except errors.KernelError:
            got = None
        assert got == expected, (a, a_number, b, b_number)
        compared += expected is not None
    assert compared > 400


def test_kinds_and_biases_of_types_are_tritons():
    theirs = pytest.importorskip("triton.language.core").dtype
    foreign = {"fp8e4b8", "fp8e5b16"}
    for kind in ("SINT_TYPES", "UINT_TYPES", "FP_TYPES", "STANDARD_FP_TYPES"):
        assert set(getattr(wl.dtype, kind)) == set(getattr(theirs, kind)) - foreign
    for name in wl.dtype.FP_TYPES:
        assert wl.dtype(name).exponent_bias == theirs(name).exponent_bias, name


@given(st.integers(-(2**63), 2**64 - 1) | st.floats() | st.booleans())
def test_the_type_of_a_number_is_tritons(value):
    semantic = pytest.importorskip("triton.language.semantic")
    assert str(literals.number_type(value)) == str(semantic.TritonSemantic(None).to_tensor_type(value))


def c_quotient(a, b):
    """C's division: the quotient's digits, cut toward zero."""
    return int(abs(a) // abs(b)) * (-1 if (a < 0) != (b < 0) else 1)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1).filter(bool))
def test_folded_division_is_cs(a, b):
    if (a, b) == (-(2**31), -1):  # overflows: left to the device
        return
    left, right = tensor(None, wl.int32, a), tensor(None, wl.int32, b)
    quotient, rest = operators.floordiv(left, right), operators.mod(left, right)
    assert quotient.constant == c_quotient(a, b) and quotient.dtype == wl.int32
    assert rest.constant == a - b * c_quotient(a, b) and rest.constant * a >= 0


@pytest.mark.parametrize("source", SCALARS)
@pytest.mark.parametrize("target", SCALARS)
def test_every_cast(source, target):
    @weft.jit
    def kernel(x, y):
        at = wl.arange(0, 16)
        wl.store(y + at, wl.load(x + at).to(y.dtype.element_ty))

    ir = tile_ir(kernel, f"x:*{source}, y:*{target}")
    casts = [line for line in ir.splitlines() if "arith." in line]
    if source == target and source != "int1":
        assert not casts
    a, b = SCALARS[source], SCALARS[target]
    if a.is_int() and b.is_floating():
        matches(ir, "arith.sitofp" if a.is_int_signed() else "arith.uitofp")
    if a.is_floating() and b.is_int() and not b.is_bool():
        matches(ir, "arith.fptosi" if b.is_int_signed() else "arith.fptoui")
    if b.is_bool() and not a.is_bool():
        matches(ir, "arith.cmpf une" if a.is_floating() else "arith.cmpi ne")


@pytest.mark.parametrize("float8", ["fp8e4nv", "fp8e5"])
def test_8_bit_floats(float8):
    @weft.jit
    def kernel(x, y):
        at = wl.arange(0, 16)
        wl.store(y + at, wl.load(x + at).to(wl.float32).to(y.dtype.element_ty))

    matches(tile_ir(kernel, f"x:*{float8}, y:*{float8}"), "arith.extf", "arith.truncf")
    matches(tile_ir(kernel, f"x:*{float8}, y:*i32"), "arith.extf", "arith.fptosi")


@pytest.mark.parametrize("name", SCALARS)
def test_operators_choose_by_signedness(name):
    @weft.jit
    def kernel(x, y):
        at = wl.arange(0, 16)
        a, b = wl.load(x + at), wl.load(x + at + 16)
        wl.store(x + at, wl.minimum(wl.maximum(a, b), a))
        wl.store(y + at, (a < b) & (a >= b))

    ir, kind = tile_ir(kernel, f"x:*{name}, y:*i1"), SCALARS[name]
    if kind.is_floating():
        matches(ir, "arith.maxnumf", "arith.minnumf", "arith.cmpf olt", "arith.cmpf oge")
    elif kind.is_int_signed():
        matches(ir, "arith.maxsi", "arith.minsi", "arith.cmpi slt", "arith.cmpi sge")
    else:
        matches(ir, "arith.maxui", "arith.minui", "arith.cmpi ult", "arith.cmpi uge")


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32])
def test_operators_as_methods(kind, seed):
    @weft.jit
    def kernel(x, y, z):
        at = wl.arange(0, 64)
        a = wl.load(x + at)
        b = a.__lshift__(4).to(a.dtype).__rshift__(4).__and__(7)
        c = b.__add__(1).__radd__(2).__mul__(3).__rsub__(100).__floordiv__(2).__mod__(11).__or__(16).__xor__(3)
        wl.store(y + at, wl.where(c.__gt__(20).__not__(), c.__invert__(), c.__rshift__(3).__rlshift__(1)))
        wl.store(z + at, a.to(wl.float32).__truediv__(4.0).__rtruediv__(1.0).__neg__().__le__(-0.5))

    x = np.random.default_rng(seed).integers(1, 100, 64).astype(kind)
    y, z = np.zeros_like(x), np.zeros(64, np.bool_)
    kernel[1,](x, y, z)
    b = ((x << 4).astype(kind) >> 4) & 7
    c = ((100 - (2 + (b + 1)) * 3) // 2 % 11 | 16) ^ 3
    np.testing.assert_array_equal(y, np.where(c > 20, 1 << (c >> 3), ~c).astype(kind))
    np.testing.assert_array_equal(z, -1 / (x / np.float32(4)) <= -0.5)


def test_methods_that_are_no_operators_are_unknown():
    @weft.jit
    def kernel(x):
        wl.store(x, wl.load(x).__bool__())

    with pytest.raises(CompilationError, match="no attribute '__bool__'"):
        kernel.compile("x:*i32")


def test_dtype_questions():
    assert wl.float16.primitive_bitwidth == 16 and wl.float16.is_floating() and str(wl.float16) == "fp16"
    assert wl.uint8.is_int_unsigned() and wl.int1.is_bool() and not wl.int64.is_int_unsigned()
    assert wl.pointer_type(wl.bfloat16).element_ty == wl.bfloat16 and wl.pointer_type(wl.int8).is_ptr()
    assert (wl.int16.get_int_min_value(), wl.uint16.get_int_max_value()) == (-32768, 65535)
    assert wl.block_type(wl.int8, [2, 4]).numel == 8


def test_constexpr_arithmetic_outside_of_kernels():
    a = wl.constexpr(6)
    assert (a * 2 + 1).value == 13 and (7 - a).value == 1 and (a // 4).value == 1 and a == 6 and list(range(a))[-1] == 5


def test_signature():
    found = signature.parse("x:*fp16:16, n:i32, f : fp64, BLOCK=128, NAME='a, b', SHAPE=(1, 2), T=fp16, FLAG=True")
    assert {name: (signature.short_name(a.type), a.divisibility) for name, a in found.arguments.items()} == {
        "x": ("*fp16", 16),
        "n": ("i32", 1),
        "f": ("fp64", 1),
    }
    assert found.constants == {"BLOCK": 128, "NAME": "a, b", "SHAPE": (1, 2), "T": wl.float16, "FLAG": True}


@pytest.mark.parametrize("name", [*SCALARS, "fp8e4nv", "fp8e5"])
def test_type_names_read_back(name):
    for spelling in (name, f"*{name}", f"**{name}"):
        kind = signature.type_named(spelling)
        assert signature.type_named(signature.short_name(kind)) == kind


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("x", "expected ':' and a type"),
        ("x:f16", "expected a type such as"),
        ("x:*fp16:a", "a positive number after the second ':'"),
        ("x:i32, x:i32", "each name once"),
        ("1:i32", "expected 'name:type'"),
        ("B=foo", "a Python literal or a type"),
    ],
)
def test_malformed_signature(text, part):
    with pytest.raises(weft.CompilationError, match="in the signature at") as caught:
        signature.parse(text)
    assert part in str(caught.value)


def test_signature_against_the_function():
    @weft.jit
    def kernel(x: "*fp32:16", n: wl.int32, BLOCK: wl.constexpr, scale=2.0):  # noqa: F722
        wl.store(x + wl.arange(0, BLOCK), n * scale)

    matches(tile_ir(kernel, "BLOCK=16"), "%arg0: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %arg1: i32)")
    for text, part in {
        "": "a value for 'BLOCK'",
        "BLOCK:i32": "a constant for 'BLOCK'",
        "BLOCK=1, y:i32": "one of the parameters",
    }.items():
        with pytest.raises(weft.CompilationError) as caught:
            tile_ir(kernel, text)
        assert part in str(caught.value)
