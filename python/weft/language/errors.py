# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The catalogue of what can be wrong with a kernel. Each entry says what was expected, what came, and what to do about
it.

The compiler adds where: the file, the line with a caret, and the calls that led there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from .types import describe, dtype


class KernelError(Exception):
    """A mistake in a kernel, before the compiler has said where.

    ``argument`` names the parameter at fault, where one is.
    """

    def __init__(self, message: str, remedy: str, argument: str | None = None):
        super().__init__(message)
        self.message, self.remedy, self.argument = message, remedy, argument


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "constant") and hasattr(value, "type")  # value.py imports this file


def _type_of(value: Any) -> str:
    """What a value is, in the words of a message."""
    if _is_tensor(value):
        return describe(value.type)
    if value is None:
        return "None"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function '{value.__name__}'"
    return f"{value!r} of type '{type(value).__name__}'"


def _shape(shape: Iterable[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _closest(name: str, candidates: Iterable[str]) -> str | None:
    matches = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return f"did you mean '{matches[0]}'?" if matches else None


# ---- Names
# ----------------------------------------------------------------------------------------------------------------


def outside_kernel() -> KernelError:
    return KernelError(
        "expected a kernel being compiled, but got a call from plain Python",
        "call this from a function decorated with @weft.jit",
    )


def unknown_name(name: str, candidates: Iterable[str]) -> KernelError:
    return KernelError(
        f"expected a defined name, but got '{name}'", _closest(name, candidates) or f"define '{name}' before this line"
    )


# What Triton's language has and this one has not: no other name is meant by one of these.
ABSENT = frozenset(
    (
        *("atomic_load", "atomic_poll", "atomic_store", "bitonic_merge", "device_print", "dot_scaled", "flip"),
        *("histogram", "inline_asm_elementwise", "load_tensor_descriptor", "make_block_ptr", "make_tensor_descriptor"),
        *("map_elementwise", "philox", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x", "sort", "squeeze"),
        *("expect_zero", "pair_uniform_to_normal", "philox_impl", "store_tensor_descriptor", "swizzle2d", "to_tensor"),
        *("topk", "uint_to_uniform_float", "unsqueeze"),
    )
)


def unknown_attribute(owner: str, name: str, candidates: Iterable[str]) -> KernelError:
    if name in ABSENT:
        message = f"expected a function of weft.language, but got '{name}', which only Triton's language has"
        return KernelError(message, "see docs/Language.md for the functions there are")
    close = _closest(name, (c for c in candidates if not c.startswith("_")))
    return KernelError(f"{owner} has no attribute '{name}'", close or "see docs/Language.md for the names there are")


def not_defined_here(name: str, reason: str, remedy: str) -> KernelError:
    return KernelError(f"'{name}' may have no value here: {reason}", remedy)


def plain_global(name: str, value: Any) -> KernelError:
    return KernelError(
        f"expected '{name}' to be a constexpr, a @weft.jit function or a module, but got the global {_type_of(value)}",
        f"write '{name} = wl.constexpr(...)' where it is defined, or pass it as an argument",
    )


def plain_function(name: str) -> KernelError:
    return KernelError(
        "expected a function of the language or one decorated with @weft.jit, but got the plain "
        f"Python function '{name}'",
        f"decorate '{name}' with @weft.jit, or with @wl.constexpr_function if it computes constants from constants",
    )


def not_callable(value: Any) -> KernelError:
    remedy = "call a function of the language or one decorated with @weft.jit"
    return KernelError(f"expected a function, but got {_type_of(value)}", remedy)


# ---- Types
# ----------------------------------------------------------------------------------------------------------------


def expected_value(what: str, value: Any) -> KernelError:
    remedy = "assign a number or a tensor first" if value is None else "use a number or a tensor"
    return KernelError(f"expected {what} to be a number or a tensor, but got {_type_of(value)}", remedy)


def tensor_as_python_value(wanted: str, value: Any) -> KernelError:
    return KernelError(
        f"expected a constant for '{wanted}', but got {_type_of(value)}, which is known only when the kernel runs",
        "combine conditions with & and |, or mark what decides as wl.constexpr",
    )


def expected_scalar(what: str, value: Any) -> KernelError:
    return KernelError(
        f"expected {what} to be a scalar, but got {_type_of(value)}",
        "reduce it first, for example with wl.sum or wl.max",
    )


def expected_dtype(operation: str, value: Any) -> KernelError:
    return KernelError(
        f"expected a type for 'dtype' of '{operation}', but got {_type_of(value)}",
        "name one, for example wl.float32",
        "dtype",
    )


def no_common_type(a: dtype, b: dtype) -> KernelError:
    return KernelError(f"expected operands with a common type, but got {a} and {b}", "cast one of them with .to(...)")


def signedness_differs(a: dtype, b: dtype) -> KernelError:
    return KernelError(
        f"expected operands of division with the same signedness, but got {a} and {b}",
        f"cast one of them, for example with .to(wl.{a})",
    )


def negative_with_unsigned(value: Any, other: dtype) -> KernelError:
    return KernelError(
        f"expected a number that {other} holds, but got {value}", "cast the tensor to a signed type with .to(...)"
    )


def number_out_of_range(value: Any, what: str) -> KernelError:
    return KernelError(
        f"expected a number that fits {what}, but got {value}", "cast the other operand to a wider type with .to(...)"
    )


def needs_integers(operation: str, got: dtype, remedy: str) -> KernelError:
    return KernelError(f"expected integers for '{operation}', but got {got}", remedy)


def needs_floats(operation: str, got: dtype) -> KernelError:
    return KernelError(f"expected floats for '{operation}', but got {got}", "convert first with .to(wl.float32)")


def no_fp8_arithmetic(operation: str, got: dtype) -> KernelError:
    return KernelError(
        f"expected operands of at least 16 bits for '{operation}', but got {got}", "convert first with .to(wl.float16)"
    )


def unary_operand(operation: str, got: dtype) -> KernelError:
    remedy = "pointers move by adding integers" if got.is_ptr() else "cast the operand with .to(...)"
    return KernelError(f"expected a number that '{operation}' takes, but got {got}", remedy)


def division_by_zero() -> KernelError:
    return KernelError(
        "expected a divisor other than 0, but got the constant 0", "check the constants this divisor is made from"
    )


def bitcast_width(source: dtype, target: dtype) -> KernelError:
    return KernelError(
        f"expected a type of {source.primitive_bitwidth} bits to reread {source} as, but got {target} "
        f"of {target.primitive_bitwidth}",
        "drop bitcast=True to convert the value",
    )


def unsupported_option(name: str, value: Any, allowed: str) -> KernelError:
    return KernelError(f"expected '{name}' to be one of {allowed}, but got {value!r}", "use one of these", name)


def options_exclude(operation: str, given: list[str]) -> KernelError:
    names = " and ".join(f"'{name}'" for name in given)
    return KernelError(
        f"expected one of 'cache_modifier', 'eviction_policy' and 'volatile' of '{operation}', but got {names}",
        "an access of the machine has one of these",
        given[-1],
    )


# ---- Shapes
# ---------------------------------------------------------------------------------------------------------------


def not_broadcastable(a: tuple[int, ...], b: tuple[int, ...], axis: int, x: int, y: int) -> KernelError:
    remedy = f"axis {axis} is {x} on the left and {y} on the right; sizes must be equal or 1"
    if len(a) == len(b) == 1:
        remedy += ", so index one with [:, None] and the other with [None, :] to combine every pair"
    return KernelError(f"expected shapes that broadcast together, but got {_shape(a)} and {_shape(b)}", remedy)


def cannot_broadcast_to(source: tuple[int, ...], target: tuple[int, ...]) -> KernelError:
    return KernelError(
        f"expected a shape that broadcasts to {_shape(target)}, but got {_shape(source)}",
        "only axes of size 1 are repeated; add them with [:, None]",
    )


def not_power_of_two(what: str, size: int, shape: tuple[int, ...]) -> KernelError:
    up = 1 if size < 1 else 1 << (size - 1).bit_length()
    return KernelError(
        f"expected sizes that are powers of two for {what}, but got {size} in {_shape(shape)}",
        f"use {up} and mask what is too much; weft.next_power_of_2 computes it",
    )


def too_many_elements(what: str, shape: tuple[int, ...], elements: int, most: int) -> KernelError:
    return KernelError(
        f"expected at most {most} elements for {what}, but got {elements} in {_shape(shape)}",
        "use smaller blocks and a loop",
    )


def empty_range(first: int, last: int) -> KernelError:
    return KernelError(
        f"expected the end of arange to be greater than its start, but got {first} and {last}",
        "write wl.arange(0, SIZE)",
    )


def not_constant(what: str, value: Any) -> KernelError:
    return KernelError(
        f"expected {what} to be a constant integer, but got {_type_of(value)}"
        if "condition" not in what
        else f"expected {what} to be a constant, but got {_type_of(value)}",
        "annotate the parameter it comes from with wl.constexpr, or assign it with ': wl.constexpr ='",
    )


def axis_out_of_range(what: str, axis: int, rank: int) -> KernelError:
    return KernelError(
        f"expected an axis of {what} from {-rank} to {rank - 1}, but got {axis}",
        "axes count from 0, and from -1 backwards",
        "axis",
    )


def grid_axis(operation: str, axis: int) -> KernelError:
    return KernelError(
        f"expected 0, 1 or 2 for the axis of {operation}, but got {axis}", "a grid has three axes", "axis"
    )


def element_count(operation: str, source: tuple[int, ...], target: tuple[int, ...]) -> KernelError:
    return KernelError(
        f"expected a shape with as many elements as {_shape(source)} for '{operation}', but got {_shape(target)}",
        "the sizes must multiply to the same number",
    )


def not_a_permutation(order: list[int], rank: int) -> KernelError:
    return KernelError(
        f"expected each of the axes 0 to {rank - 1} once, but got {_shape(order)}", "name every axis once"
    )


def rank_too_small(operation: str, value: Any, rank: int) -> KernelError:
    axes = "axis" if rank == 1 else "axes"
    message = f"expected a block with at least {rank} {axes} for '{operation}', but got {_type_of(value)}"
    return KernelError(
        message, "insert an axis with [:, None]" if value.shape else "a scalar has no axes; build a block with wl.full"
    )


def last_axis_of_two(operation: str, value: Any) -> KernelError:
    return KernelError(
        f"expected a block whose last axis has size 2 for '{operation}', but got {_type_of(value)}", "reshape it first"
    )


def gather_shapes(source: Any, index: Any, axis: int) -> KernelError:
    return KernelError(
        f"expected an index with the shape of what it picks from but along axis {axis}, but got {_shape(index.shape)} "
        f"for {_shape(source.shape)}",
        "broadcast the index along the other axes with wl.broadcast_to",
        "index",
    )


def unsupported_index(value: Any) -> KernelError:
    return KernelError(
        "expected only ':' and None between the brackets of a block, but got something else",
        "a block has no elements to pick out: select with wl.where and reduce, or load what you need through a pointer",
    )


def too_many_indices(value: Any, count: int) -> KernelError:
    return KernelError(
        f"expected at most {len(value.shape)} ':' for {_type_of(value)}, but got {count}", "write one ':' for each axis"
    )


def hint_values(operation: str, values: list[int], value: Any) -> KernelError:
    return KernelError(
        f"expected one positive number an axis for '{operation}' of {_type_of(value)}, but got {_shape(values)}",
        "give a number for a block of one axis, a tuple for more",
        "values",
    )


# ---- Memory
# ---------------------------------------------------------------------------------------------------------------


def pointer_operand(operation: str, a: dtype, b: dtype) -> KernelError:
    if operation in ("+", "-") and (a.is_floating() or b.is_floating()):
        remedy = "a pointer moves by whole elements: use integers, for example offsets.to(wl.int32)"
    elif operation == "+":
        remedy = "add an integer offset to one pointer"
    else:
        remedy = "load the values first with wl.load"
    return KernelError(f"expected operands that '{operation}' takes, but got {a} and {b}", remedy)


def expected_pointer(operation: str, value: Any) -> KernelError:
    return KernelError(
        f"expected a pointer for '{operation}', but got {_type_of(value)}",
        "add offsets to a pointer argument: wl.load(x + offsets)",
        "pointer",
    )


def pointer_cast(source: dtype, target: dtype) -> KernelError:
    return KernelError(
        f"expected an integer of 64 bits or a pointer to convert with a pointer, but got {source} and {target}",
        "addresses are 64-bit integers: convert with .to(wl.int64) first",
    )


def block_with_scalar_pointer(operation: str, argument: str, value: Any) -> KernelError:
    return KernelError(
        f"expected '{argument}' of '{operation}' to be a scalar, as the pointer is, but got {_type_of(value)}",
        "add a block of offsets to the pointer, for example pointer + wl.arange(0, BLOCK)",
        argument,
    )


def not_pointer_shape(operation: str, argument: str, value: Any, pointer: Any) -> KernelError:
    return KernelError(
        f"expected '{argument}' of '{operation}' to broadcast to the pointers' shape "
        f"{_shape(pointer.shape)}, but got {_type_of(value)}",
        "build the pointers, the mask and the value from the same offsets",
        argument,
    )


def expected_mask(operation: str, value: Any) -> KernelError:
    return KernelError(
        f"expected 'mask' of '{operation}' to be int1, but got {_type_of(value)}",
        "compare to make one: offsets < n",
        "mask",
    )


def other_without_mask() -> KernelError:
    return KernelError(
        "expected a mask beside 'other' of 'load', but got none",
        "'other' stands where the mask is false: add mask=..., or drop other",
        "other",
    )


def element_type(operation: str, argument: str, value: Any, element: dtype) -> KernelError:
    remedy = "load the value that the pointer points to first" if value.dtype.is_ptr() else "pass a pointer"
    return KernelError(
        f"expected '{argument}' of '{operation}' to be {element}, which the pointer points to, but "
        f"got {_type_of(value)}",
        remedy,
        argument,
    )


def store_to_constant(pointer: dtype) -> KernelError:
    return KernelError(
        f"expected a pointer that may be written through, but got the constant {pointer}",
        "drop the 'k' from the parameter's type in the signature",
        "pointer",
    )


def needs_block_pointer(operation: str) -> KernelError:
    return KernelError(
        f"expected no 'boundary_check' or 'padding_option' for '{operation}' of plain pointers, but got one",
        "use mask= and other=",
        "boundary_check",
    )


def atomic_type(operation: str, got: dtype) -> KernelError:
    return KernelError(
        f"expected a type that '{operation}' takes, but got {got}",
        "see docs/Language.md for the types of each atomic",
        "pointer",
    )


# ---- Products, reductions
# -------------------------------------------------------------------------------------------------


def dot_rank(what: str, value: Any) -> KernelError:
    return KernelError(
        f"expected {what} of 'dot' to have two axes, but got {_type_of(value)}",
        "make a matrix of it with [:, None] or wl.reshape",
    )


def dot_type(what: str, value: Any) -> KernelError:
    return KernelError(
        f"expected {what} of 'dot' to be fp16, bf16, fp32, an 8-bit float or int8, but got {_type_of(value)}",
        "convert it with .to(wl.float16)",
    )


def dot_types_differ(a: Any, b: Any) -> KernelError:
    return KernelError(
        f"expected both operands of 'dot' to have one type, but got {_type_of(a)} and {_type_of(b)}",
        f"convert one, for example with .to(wl.{b.dtype})"
        if str(b.dtype).startswith("int")
        else "convert one with .to(other.dtype)",
    )


def dot_shapes(a: Any, b: Any) -> KernelError:
    swapped = a.shape[1] == b.shape[1]
    return KernelError(
        f"expected [M, K] and [K, N] for 'dot', but got {_type_of(a)} and {_type_of(b)}",
        f"K is {a.shape[1]} on the left and {b.shape[0]} on the right"
        + ("; transpose the second operand with wl.trans" if swapped else ""),
    )


def dot_too_small(a: Any, b: Any, least: int) -> KernelError:
    return KernelError(
        f"expected M, N and K of at least {least} for 'dot', but got {_type_of(a)} and {_type_of(b)}",
        "use larger blocks and mask them, or multiply and wl.sum",
    )


def dot_accumulator(value: Any, wanted: Any) -> KernelError:
    return KernelError(
        f"expected 'acc' of 'dot' to be {describe(wanted)}, but got {_type_of(value)}",
        f"start from wl.zeros({_shape(wanted.shape)}, ...)",
        "acc",
    )


def dot_result_type(operand: dtype, wanted: dtype, allowed: Iterable[dtype]) -> KernelError:
    names = " or ".join(map(str, allowed))
    return KernelError(
        f"expected {names} for the result of 'dot' of {operand}, but got {wanted}",
        "convert the result with .to(...)",
        "out_dtype",
    )


def input_shapes(operation: str, a: Any, b: Any) -> KernelError:
    return KernelError(
        f"expected blocks of one shape for '{operation}', but got {_type_of(a)} and {_type_of(b)}",
        "broadcast them first",
    )


def combine_count(operation: str, wanted: int, got: int) -> KernelError:
    return KernelError(
        f"expected the combine function of '{operation}' to return {wanted} values, but got {got}",
        "it takes two elements of each block, and gives one of each",
        "combine_fn",
    )


def combine_type(operation: str, wanted: dtype, got: Any) -> KernelError:
    return KernelError(
        f"expected the combine function of '{operation}' to return {wanted}, but got {_type_of(got)}",
        "convert inside it with .to(...)",
        "combine_fn",
    )


# ---- Statements
# -----------------------------------------------------------------------------------------------------------


def unsupported_syntax(construct: str, remedy: str | None) -> KernelError:
    message = f"expected a statement or expression of the kernel language, but got {construct}"
    return KernelError(message, remedy or "see docs/Language.md for what a kernel may contain")


def changes_type_in_loop(name: str, before: Any, after: Any) -> KernelError:
    return KernelError(
        f"expected '{name}' to keep its type {_type_of(before)} in the loop, but got {_type_of(after)}",
        _loop_remedy(name, before, after),
    )


def _loop_remedy(name: str, before: Any, after: Any) -> str:
    if not (_is_tensor(after) and _is_tensor(before)):
        return f"give '{name}' a tensor before the loop and keep it one"
    if after.shape != before.shape:
        if after.shape and not after.dtype.is_ptr():
            return f"start from wl.full({_shape(after.shape)}, ..., wl.{_wl_name(after.dtype)}) before the loop"
        return (
            f"'{name}' has shape {_shape(before.shape)} before the loop and {_shape(after.shape)} after "
            "an iteration; use another name"
        )
    if before.constant is not None and after.dtype.is_floating():
        return f"start from a float, or from wl.full((), ..., wl.{_wl_name(after.dtype)}), before the loop"
    return (
        f"convert what is assigned with .to(wl.{_wl_name(before.dtype)}), or start with "
        f"{_wl_name(after.dtype)} before the loop"
    )


def _wl_name(value_type: dtype) -> str:
    names = {
        "fp16": "float16",
        "bf16": "bfloat16",
        "fp32": "float32",
        "fp64": "float64",
        "fp8e4nv": "float8e4nv",
        "fp8e5": "float8e5",
    }
    return names.get(str(value_type), str(value_type))


def differs_between_branches(name: str, then: Any, otherwise: Any) -> KernelError:
    return KernelError(
        f"expected '{name}' to have one type after both branches, but got {_type_of(then)} from the "
        f"first and {_type_of(otherwise)} from the second",
        "convert one of them with .to(...), or use two names",
    )


def returns_differ(a: Any, b: Any) -> KernelError:
    return KernelError(
        f"expected every return to give one type, but got {_type_of(a)} and {_type_of(b)}",
        "convert one of them with .to(...)",
    )


def kernel_returns(value: Any) -> KernelError:
    return KernelError(
        f"expected a kernel to return nothing, but got {_type_of(value)}",
        "write results through pointers with wl.store",
    )


def return_in_loop() -> KernelError:
    return KernelError(
        "expected a loop without 'return', but got one",
        "keep a flag and test it after the loop; a loop over wl.static_range may return",
    )


def wrong_arguments(function: str, reason: str, signature: str) -> KernelError:
    return KernelError(
        f"expected the arguments of '{function}', but got others: {reason}", f"it is '{function}{signature}'"
    )


def constexpr_argument(function: str, name: str, value: Any) -> KernelError:
    return KernelError(
        f"expected a constant for '{name}' of '{function}', but got {_type_of(value)}",
        f"'{name}' is annotated wl.constexpr; pass a constant, or drop the annotation",
        name,
    )


def recursion(function: str) -> KernelError:
    return KernelError(f"expected no recursion, but '{function}' calls itself", "functions are inlined: use a loop")


def condition_not_scalar(value: Any) -> KernelError:
    return KernelError(
        f"expected a scalar condition, but got {_type_of(value)}",
        "select element by element with wl.where, or reduce it with wl.max",
    )


def loop_bound(what: str, value: Any) -> KernelError:
    return KernelError(
        f"expected {what} of the loop to be a scalar integer, but got {_type_of(value)}",
        "convert it with .to(wl.int32)",
    )


def zero_step(operation: str) -> KernelError:
    return KernelError(f"expected a step other than 0 for {operation}, but got 0", "count up with 1 or down with -1")


def not_iterable(value: Any) -> KernelError:
    return KernelError(
        f"expected range(...), wl.range(...), wl.static_range(...) or a tuple to loop over, but got {_type_of(value)}",
        "write 'for i in range(n)'",
    )


def endless_loop() -> KernelError:
    return KernelError(
        "expected a loop that can end, but got a condition that is always true", "test something that the loop changes"
    )


def cannot_unpack(value: Any, wanted: int) -> KernelError:
    got = f"{len(value)} values" if isinstance(value, (tuple, list)) else _type_of(value)
    return KernelError(f"expected {wanted} values to unpack, but got {got}", "give as many names as there are values")


def constexpr_reassigned(name: str) -> KernelError:
    return KernelError(
        f"expected '{name}' to be assigned once, as a constexpr is, but it has a value already", "use another name"
    )


def static_assertion(message: Any) -> KernelError:
    return KernelError(
        f"static assertion failed{f': {message}' if message else ''}", "the condition is false for these arguments"
    )


def python_failure(error: Exception) -> KernelError:
    return KernelError(
        f"a constant expression failed: {type(error).__name__}: {error}", "check the constants in this expression"
    )


def defect(error: Exception) -> KernelError:
    return KernelError(
        f"the compiler failed at this expression: {type(error).__name__}: {error}",
        "this is a defect in Weft, not in the kernel; write the line another way and report it",
    )
