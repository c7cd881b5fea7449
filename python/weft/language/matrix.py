# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Matrix products."""

from __future__ import annotations

import math
from typing import Any

from . import errors
from .casts import convert, reread
from .emit import builtin, current
from .literals import to_tensor
from .maths import abs as absolute
from .maths import where
from .operators import add, and_, compare, sub
from .promotion import broadcast_to_shape
from .shapes import arange, cat, expand_dims, gather, is_power_of_two, join, permute, reshape, split, zeros_like
from .types import bfloat16, dtype, float16, float32, float64, int8, int32, unwrap
from .value import tensor

_PRECISIONS = ("tf32", "tf32rz", "tf32x3", "bf16x3", "bf16x6", "ieee")
MIN_SIZE = 16  # of a matrix instruction's operands, as a rule; smaller ones are filled up with zeros


@builtin
def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: dtype | None = None,
) -> tensor:
    """The matrix product of ``input`` [M, K] and ``other`` [K, N], plus ``acc`` [M, N] where given; of [B, M, K] and
    [B, K, N] the B products, with more axes before the last two as with one. ``acc += dot(a, b)`` is one product that
    begins with ``acc``, as ``acc = dot(a, b, acc)``.

    Both operands have one type: float16, bfloat16, float32, float64, an 8-bit float or int8. The result is float32
    (int32 for int8; float64 for float64; float16 where ``out_dtype`` or ``acc`` asks for it).
    ``input_precision`` says how float32 operands are multiplied: "tf32" (default), rounded to TF32, where Triton
    truncates; "tf32rz", truncated as there; "tf32x3", as the sum of three products of their parts in TF32; "bf16x3" and
    "bf16x6", of that many in bfloat16; or "ieee". Infinities stay infinite in all of them. 8-bit floats are multiplied
    as float16, which holds them, or by instructions of their own, whose sums keep about 14 bits:
    ``max_num_imprecise_acc`` says how many products along K may be summed so. None is those of one ``dot``, whose sum
    is then added to ``acc`` in float32; more than K, those of all dots in a row; fewer than K, none: they are
    multiplied as float16. Sizes below 16, for int8 K below 32, for float64 M and N below 8 and K below 4, are filled up
    with zeros.
    """
    batched = _flat_batch(input, other, acc)
    if batched is not None:
        shape, flat = batched
        options = (input_precision, allow_tf32, max_num_imprecise_acc, out_dtype)
        return reshape(dot(*flat, *options), shape)
    lhs, rhs = _operand(input, "the first operand"), _operand(other, "the second operand")
    if lhs.dtype != rhs.dtype:
        raise errors.dot_types_differ(lhs, rhs)
    _check_shapes(lhs, rhs)
    accumulator = None if unwrap(acc) is None else to_tensor(acc, "'acc' of 'dot'")
    result_type = _result_type(lhs.dtype, accumulator, unwrap(out_dtype))
    run = _imprecise_run(max_num_imprecise_acc)
    if lhs.dtype.is_fp8() and not _fills_fp8_instructions(lhs, rhs, result_type, run):
        lhs, rhs = convert(lhs, float16), convert(rhs, float16)  # every 8-bit float is one
    result = result_type.with_shape((*lhs.shape[:-1], rhs.shape[-1]))
    if accumulator is not None and accumulator.type != result:
        raise errors.dot_accumulator(accumulator, result)
    precision = _precision(input_precision, allow_tf32, current().options)
    if lhs.dtype.is_fp8():
        beyond = run is not None and run > lhs.shape[1]
        return _one_product(lhs, rhs, accumulator, result, {"tile.imprecise_sums": "unit"} if beyond else {})
    if precision == "tf32rz":
        precision = "tf32"
        if lhs.dtype == float32:
            lhs, rhs = _truncated(lhs), _truncated(rhs)
    return _products(lhs, rhs, accumulator, result, precision)


def _truncated(value: tensor) -> tensor:
    """Numbers of float32 without the bits that TF32 has not."""
    return reread(and_(reread(value, int32), -(1 << 13)), float32)


def _products(lhs: tensor, rhs: tensor, acc: tensor | None, result: Any, precision: str) -> tensor:
    """Products of a batch side by side or one by one, those of parts of float32 one after another, small ones filled
    up."""
    beside = len(lhs.shape) == 3 and _fit_side_by_side(lhs, rhs, precision)
    if len(lhs.shape) == 3 and not beside:
        return _batch(lhs, rhs, acc, result, precision)
    if precision.startswith("bf16"):
        if lhs.dtype == float32:
            return _in_parts(lhs, rhs, acc, result, 2 if precision == "bf16x3" else 3)
        precision = "tf32"
    if beside:
        return _side_by_side(lhs, rhs, acc, result, precision)
    least, least_inner = _least_sizes(lhs.dtype)
    if min(lhs.shape[0], rhs.shape[1]) < least or lhs.shape[1] < least_inner:
        return _small(lhs, rhs, acc, result, precision)
    return _one_product(lhs, rhs, acc, result, {"precision": f"#tile<precision {precision}>"})


def _one_product(lhs: tensor, rhs: tensor, acc: tensor | None, result: Any, texts: dict[str, str]) -> tensor:
    builder = current()
    start = builder.constant(0, result) if acc is None else acc.handle
    attributes = {name: builder.attribute(text) for name, text in texts.items()}
    return tensor(builder.op("tile.dot", [lhs.handle, rhs.handle, start], [result], attributes), result)


def _least_sizes(operand: dtype) -> tuple[int, int]:
    """The least outer and inner sizes of a matrix instruction: 16, or 32 bytes; 8 and 4 of float64."""
    if operand == float64:
        return 8, 4
    return MIN_SIZE, 2 * MIN_SIZE if operand == int8 else MIN_SIZE


def _imprecise_run(max_num_imprecise_acc: Any) -> int | None:
    """How many products along K may be summed with fewer bits than float32 has."""
    run = unwrap(max_num_imprecise_acc)
    if run is not None and (isinstance(run, bool) or not isinstance(run, int) or run < 0):
        raise errors.unsupported_option("max_num_imprecise_acc", run, "None and the integers from 0 on")
    return run


def _fills_fp8_instructions(lhs: tensor, rhs: tensor, result: dtype, run: int | None) -> bool:
    """Whether a product of 8-bit floats may be left to instructions for them: one matrix, no sum of which is to be
    shorter than K."""
    if not (lhs.dtype.is_fp8e4nv() or lhs.dtype.is_fp8e5()) or len(lhs.shape) == 3:
        return False
    if run is not None and run < lhs.shape[1]:
        return False
    return min(lhs.shape[0], rhs.shape[1]) >= MIN_SIZE and lhs.shape[1] >= 2 * MIN_SIZE


def _fit_side_by_side(lhs: tensor, rhs: tensor, precision: str) -> bool:
    """Whether matrix instructions make the products of a batch all at once, each by its own warps."""
    sizes = (*lhs.shape, rhs.shape[2])
    count, rows, inner, columns = sizes
    least, least_inner = _least_sizes(lhs.dtype)
    by_instructions = lhs.dtype != float32 or precision != "ieee"
    fills = min(rows, columns) >= least and inner >= least_inner
    return count > 1 and by_instructions and fills and all(map(is_power_of_two, sizes))


def _side_by_side(lhs: tensor, rhs: tensor, acc: tensor | None, result: Any, precision: str) -> tensor:
    """Products of a batch, whose rows lie one after another in the first factor and the result, and whose columns in
    the second."""
    count, rows, inner, columns = (*lhs.shape, rhs.shape[2])
    flat = result.scalar.with_shape((count * rows, columns))
    one = _one_product(
        reshape(lhs, (count * rows, inner)),
        reshape(permute(rhs, (1, 0, 2)), (inner, count * columns)),
        None if acc is None else reshape(acc, flat.shape),
        flat,
        {"precision": f"#tile<precision {precision}>", "batch": f"{count} : i32"},
    )
    return reshape(one, result.shape)


def _batch(lhs: tensor, rhs: tensor, acc: tensor | None, result: Any, precision: str) -> tensor:
    count = lhs.shape[0]
    if count == 1:
        flat = None if acc is None else reshape(acc, acc.shape[1:])
        one = _products(reshape(lhs, lhs.shape[1:]), reshape(rhs, rhs.shape[1:]), flat, _matrix(result), precision)
        return expand_dims(one, 0)
    if not is_power_of_two(count):
        return _uneven_batch(lhs, rhs, acc, result, precision)
    halves = [_halves(each) for each in ((lhs, rhs) if acc is None else (lhs, rhs, acc))]
    half = result.scalar.with_shape((count // 2, *result.shape[1:]))
    parts = [_products(h[0], h[1], h[2] if len(h) > 2 else None, half, precision) for h in zip(*halves, strict=True)]
    return reshape(permute(join(*parts), (3, 0, 1, 2)), result.shape)


def _uneven_batch(lhs: tensor, rhs: tensor, acc: tensor | None, result: Any, precision: str) -> tensor:
    """Products of as many matrices as there are, laid side by side as those of a power of two, the last repeated."""
    count, matrix = lhs.shape[0], _matrix(result)
    given = (lhs, rhs) if acc is None else (lhs, rhs, acc)
    each = [[_one_of(value, place) for value in given] for place in range(count)]
    products = [_products(v[0], v[1], v[2] if len(v) > 2 else None, matrix, precision) for v in each]
    up = 1 << count.bit_length()
    made = [products[min(place, count - 1)] for place in range(up)]
    while len(made) > 1:  # the axes that join adds are the bits of a place, the highest first
        half = len(made) // 2
        made = [join(a, b) for a, b in zip(made[:half], made[half:], strict=True)]
    side_by_side = permute(made[0], (*range(2, len(made[0].shape)), 0, 1))
    whole = reshape(side_by_side, (up, *matrix.shape))
    return gather(whole, _batch_places(count, matrix.shape, 0), 0)


def _batch_places(count: int, shape: tuple[int, ...], first: int) -> tensor:
    places = arange(first, first + count)
    return broadcast_to_shape(expand_dims(places, (1, 2)), (count, *shape))


def _one_of(value: tensor, place: int) -> tensor:
    """A matrix of a batch."""
    return reshape(gather(value, _batch_places(1, value.shape[1:], place), 0), value.shape[1:])


def _matrix(result: Any) -> Any:
    return result.scalar.with_shape(result.shape[1:])


def _halves(value: tensor) -> tuple[tensor, tensor]:
    """The two halves of a block along its first axis."""
    pairs = reshape(value, (2, value.shape[0] // 2, *value.shape[1:]))
    return split(permute(pairs, (*range(1, len(pairs.shape)), 0)))


def _in_parts(lhs: tensor, rhs: tensor, acc: tensor | None, result: Any, count: int) -> tensor:
    """A product of float32 as products of parts in bfloat16, the least first; those beyond float32's bits are left
    out."""
    left, right = _parts(lhs, count), _parts(rhs, count)
    rest: tensor | None = None
    for order in reversed(range(1, count)):
        for i in range(order + 1):
            rest = _products(left[i], right[order - i], rest, result, "tf32")
    assert rest is not None
    # An infinity times a part that is 0 is no number, where the whole product is infinite.
    rest = where(compare("<", absolute(rest), float("inf")), rest, 0.0)
    return _products(left[0], right[0], rest if acc is None else add(acc, rest), result, "tf32")


def _parts(value: tensor, count: int) -> list[tensor]:
    """Numbers of bfloat16 whose sum is nearly the value, the greatest first. What is infinite has no rest."""
    found = []
    for _ in range(count):
        part = convert(value, bfloat16)
        found.append(part)
        wide = convert(part, float32)
        value = where(compare("<", absolute(wide), float("inf")), sub(value, wide), 0.0)
    return found


def _small(lhs: tensor, rhs: tensor, acc: tensor | None, result: Any, precision: str) -> tensor:
    m, k, n = lhs.shape[0], lhs.shape[1], rhs.shape[1]
    least, least_inner = _least_sizes(lhs.dtype)
    rows, inner, columns = _doubled(m, least), _doubled(k, least_inner), _doubled(n, least)
    left, right = _filled(lhs, (rows, inner)), _filled(rhs, (inner, columns))
    whole = result.scalar.with_shape((rows, columns))
    start = None if acc is None else _filled(acc, (rows, columns))
    return _corner(_products(left, right, start, whole, precision), (m, n))


def _doubled(size: int, least: int) -> int:
    """A size, doubled until it is at least ``least``."""
    while size < least:
        size *= 2
    return size


def _filled(value: tensor, shape: tuple[int, ...]) -> tensor:
    """A matrix with zeros after its rows and columns."""
    for axis in (0, 1):
        while value.shape[axis] < shape[axis]:
            value = cat(value, zeros_like(value), dim=axis)
    return value


def _corner(value: tensor, shape: tuple[int, ...]) -> tensor:
    """The first rows and columns of a matrix."""
    for axis in (0, 1):
        while value.shape[axis] > shape[axis]:
            ordered = value if axis == 0 else permute(value, (1, 0))
            ordered = _halves(ordered)[0]
            value = ordered if axis == 0 else permute(ordered, (1, 0))
    return value


def _operand(value: Any, what: str) -> tensor:
    operand = to_tensor(value, f"{what} of 'dot'")
    if len(operand.shape) not in (2, 3):
        raise errors.dot_rank(what, operand)
    if operand.dtype.is_ptr() or not (operand.dtype.is_floating() or operand.dtype == int8):
        raise errors.dot_type(what, operand)
    return operand


def _flat_batch(lhs: Any, rhs: Any, acc: Any) -> tuple[tuple[int, ...], tuple[tensor | None, ...]] | None:
    """Of blocks with several axes before the last two: the shape of their product, and they and the accumulator with
    these axes as one; None of others."""
    lhs, rhs, acc = unwrap(lhs), unwrap(rhs), unwrap(acc)
    if not isinstance(lhs, tensor) or not isinstance(rhs, tensor) or len(lhs.shape) < 4 or len(rhs.shape) < 4:
        return None
    _check_shapes(lhs, rhs)
    shape = (*lhs.shape[:-1], rhs.shape[-1])
    if acc is not None and to_tensor(acc, "'acc' of 'dot'").shape != shape:
        raise errors.dot_accumulator(to_tensor(acc), to_tensor(acc).dtype.with_shape(shape))
    count = math.prod(shape[:-2])
    return shape, tuple(None if v is None else reshape(to_tensor(v), (count, *v.shape[-2:])) for v in (lhs, rhs, acc))


def _check_shapes(lhs: tensor, rhs: tensor) -> None:
    if lhs.shape[:-2] != rhs.shape[:-2] or lhs.shape[-1] != rhs.shape[-2]:
        raise errors.dot_shapes(lhs, rhs)


def _result_type(operand: dtype, accumulator: tensor | None, wanted: dtype | None) -> dtype:
    if operand in (int8, float64):
        return int32 if operand == int8 else float64
    if wanted is None:
        wanted = float32 if accumulator is None else accumulator.dtype
    allowed = (float32, float16) if operand == float16 or operand.is_fp8() else (float32,)
    if wanted not in allowed:
        raise errors.dot_result_type(operand, wanted, allowed)
    return wanted


def _precision(input_precision: Any, allow_tf32: Any, options: Any) -> str:
    precision = unwrap(input_precision)
    if precision is None:
        precision = "ieee" if unwrap(allow_tf32) is False else "tf32"
    if precision not in _PRECISIONS:
        raise errors.unsupported_option("input_precision", precision, " ".join(repr(p) for p in _PRECISIONS))
    return str(precision)
