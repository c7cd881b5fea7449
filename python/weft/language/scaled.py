# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``dot_scaled``: products of narrow floats that share scales (OCP microscaling formats), as products of what they are
made wide to.
"""

from __future__ import annotations

from typing import Any

from . import errors
from .casts import convert, reread
from .emit import builtin
from .literals import to_tensor
from .maths import where
from .matrix import dot
from .operators import and_, compare, mul, or_, shl, shr
from .promotion import broadcast_to_shape
from .shapes import expand_dims, join, permute, reshape
from .types import bfloat16, dtype, float8e4nv, float8e5, float16, float32, int16, int32, unwrap
from .value import tensor

_FORMATS = {"e2m1": None, "e4m3": float8e4nv, "e5m2": float8e5, "bf16": bfloat16, "fp16": float16}


@builtin
def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: str,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: str,
    acc: Any = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: dtype = float32,
) -> tensor:
    """The product of ``lhs`` [M, K] and ``rhs`` [K, N], whose elements are numbers of a format times scales that groups
    along K share, plus ``acc`` [M, N]; float32. All may have an axis of a batch in front.

    Formats are "e2m1" (two in an element of uint8, along K, or along M and N with ``lhs_k_pack`` and ``rhs_k_pack``
    false, the first in the lower bits), "e4m3" and "e5m2" (as uint8 or the 8-bit float), "bf16" and "fp16". Scales are
    ``lhs_scale`` [M, K / group] and ``rhs_scale`` [N, K / group]: uint8 of e8m0, 2^(s - 127), and no number for 255, or
    float8e4nv; or None. The group is 32 for e8m0 in the standard, any here.

    Operands times scales are multiplied as bfloat16, which holds all of them but those of "fp16", whose product is of
    TF32, where Triton rounds them to bfloat16. ``fast_math`` has no effect: scales that are no number count.

        c = wl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e4m3")
    """
    left, right = _values(lhs, lhs_format, "lhs", -1, lhs_k_pack), _values(rhs, rhs_format, "rhs", -2, rhs_k_pack)
    if left.shape[:-2] != right.shape[:-2] or left.shape[-1] != right.shape[-2]:
        raise errors.dot_shapes(left, right)
    half = float16 in (left.dtype, right.dtype)
    wide = float32 if half else bfloat16
    left = _scaled(left, lhs_scale, "lhs_scale", wide)
    right = _swapped(_scaled(_swapped(right), rhs_scale, "rhs_scale", wide))
    return dot(left, right, acc, "tf32" if half else None, None, None, out_dtype)


def _swapped(value: tensor) -> tensor:
    """The transposed matrix, or each of a batch."""
    rank = len(value.shape)
    return permute(value, (*range(rank - 2), rank - 1, rank - 2))


def _values(operand: Any, form: Any, what: str, axis: int, k_pack: Any) -> tensor:
    """The numbers of an operand, without its scales, of its format's type; those of e2m1 as bfloat16."""
    name = unwrap(form)
    if name not in _FORMATS:
        raise errors.unsupported_option(f"{what}_format", name, " ".join(map(repr, _FORMATS)))
    value = to_tensor(operand, f"'{what}' of 'dot_scaled'")
    kind = _FORMATS[name]
    if len(value.shape) not in (2, 3):
        raise errors.dot_rank(f"'{what}'", value)
    if kind is not None:
        if not unwrap(k_pack):
            raise errors.unsupported_option(f"{what}_k_pack", False, f"True beside {name!r}")
        if value.dtype.is_int() and value.dtype.primitive_bitwidth == kind.primitive_bitwidth:
            value = reread(value, kind)
        if value.dtype != kind:
            raise errors.scaled_type(what, str(kind), value)
        return value
    if not value.dtype.is_int() or value.dtype.primitive_bitwidth != 8:
        raise errors.scaled_type(what, "uint8", value)
    return _pairs(value, axis if unwrap(k_pack) else -3 - axis)


def _pairs(packed: tensor, axis: int) -> tensor:
    """The numbers of e2m1 that lie in pairs, one behind the other along an axis."""
    words = _e2m1(and_(convert(packed, int32), 255))
    low, high = (reread(convert(part, int16), bfloat16) for part in (words, shr(words, 16)))
    both = mul(join(low, high), 2.0**126)
    *batch, rows, columns = packed.shape
    if axis == -1:
        return reshape(both, (*batch, rows, 2 * columns))
    return reshape(_swapped(both), (*batch, 2 * rows, columns))


def _e2m1(pair: tensor) -> tensor:
    """Two codes of a sign, two bits of exponent and one of mantissa, for 0, 0.5, 1, 1.5, 2, 3, 4 or 6: their bits in
    the places that bfloat16 has for them, one in each half of a word. That is the numbers times 2^-126, as exponents
    begin at 1 in the one and at -126 in the other, below the normal numbers too."""
    halves = or_(pair, shl(pair, 12))
    return or_(shl(and_(halves, 0x00070007), 6), shl(and_(halves, 0x00080008), 12))


def _scaled(value: tensor, scale: Any, what: str, wide: dtype) -> tensor:
    """``value`` [R, K], or a batch of such, times its scales [R, K / group]."""
    if unwrap(scale) is None:
        return convert(value, wide)
    scales = to_tensor(scale, f"'{what}' of 'dot_scaled'")
    inner = value.shape[-1]
    if scales.shape[:-1] != value.shape[:-1] or inner % scales.shape[-1]:
        raise errors.scale_shape(what, scales, value.shape)
    if scales.dtype == float8e4nv:
        factors = convert(scales, float32)
    elif scales.dtype.is_int() and scales.dtype.primitive_bitwidth == 8:
        factors = _e8m0(and_(convert(scales, int32), 255))
    else:
        raise errors.scaled_type(what, "uint8 or fp8e4nv", scales)
    group = inner // scales.shape[-1]
    repeated = reshape(broadcast_to_shape(expand_dims(factors, -1), (*scales.shape, group)), value.shape)
    return mul(convert(value, wide), convert(repeated, wide))


def _e8m0(code: tensor) -> tensor:
    """2^(code - 127) as float32; of 0 it is below the normal numbers, of 255 no number."""
    bits = where(compare("==", code, 0), 1 << 22, shl(code, 23))
    return reread(where(compare("==", code, 255), 0x7FC00000, bits), float32)


__all__ = ["dot_scaled"]
