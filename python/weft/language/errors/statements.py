# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Statements and calls."""

from __future__ import annotations

from typing import Any

from ..types import dtype
from .entry import KernelError, is_tensor, numbered, shape_of, type_of


@numbered(601)
def unsupported_syntax(construct: str, remedy: str | None) -> KernelError:
    """Python has this statement or expression, and the language of kernels has not."""
    message = f"expected a statement or expression of the kernel language, but got {construct}"
    return KernelError(message, remedy or "see docs/Language.md for what a kernel may contain")


@numbered(602)
def changes_type_in_loop(name: str, before: Any, after: Any) -> KernelError:
    """A variable that a loop carries has another type or shape after an iteration than before the loop."""
    return KernelError(
        f"expected '{name}' to keep its type {type_of(before)} in the loop, but got {type_of(after)}",
        _loop_remedy(name, before, after),
    )


def _loop_remedy(name: str, before: Any, after: Any) -> str:
    if not (is_tensor(after) and is_tensor(before)):
        return f"give '{name}' a tensor before the loop and keep it one"
    if after.shape != before.shape:
        if after.shape and not after.dtype.is_ptr():
            return f"start from wl.full({shape_of(after.shape)}, ..., wl.{_wl_name(after.dtype)}) before the loop"
        return (
            f"'{name}' has shape {shape_of(before.shape)} before the loop and {shape_of(after.shape)} after "
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
        "fp8e4b15": "float8e4b15",
        "fp8e5": "float8e5",
    }
    return names.get(str(value_type), str(value_type))


@numbered(603)
def differs_between_branches(name: str, then: Any, otherwise: Any) -> KernelError:
    """A variable has one type after the first branch of an if and another after the second."""
    return KernelError(
        f"expected '{name}' to have one type after both branches, but got {type_of(then)} from the "
        f"first and {type_of(otherwise)} from the second",
        "convert one of them with .to(...), or use two names",
    )


@numbered(604)
def returns_differ(a: Any, b: Any) -> KernelError:
    """A function returns values of different types on different ways."""
    return KernelError(
        f"expected every return to give one type, but got {type_of(a)} and {type_of(b)}",
        "convert one of them with .to(...)",
    )


@numbered(605)
def kernel_returns(value: Any) -> KernelError:
    """A kernel that is launched has nobody to return a value to."""
    return KernelError(
        f"expected a kernel to return nothing, but got {type_of(value)}",
        "write results through pointers with wl.store",
    )


@numbered(607)
def wrong_arguments(function: str, reason: str, signature: str) -> KernelError:
    """A call does not fit the parameters of the function."""
    return KernelError(
        f"expected the arguments of '{function}', but got others: {reason}", f"it is '{function}{signature}'"
    )


@numbered(608)
def constexpr_argument(function: str, name: str, value: Any, in_language: bool = False) -> KernelError:
    """A parameter annotated wl.constexpr, or a function of constants, got a value that is known only when the kernel
    runs; the language has a function of the same name where it is ``in_language``."""
    return KernelError(
        f"expected a constant for '{name}' of '{function}', but got {type_of(value)}",
        f"use wl.{function}"
        if in_language
        else f"'{name}' is annotated wl.constexpr; pass a constant, or drop the annotation",
        name,
    )


@numbered(609)
def recursion(function: str) -> KernelError:
    """A function calls itself, directly or by way of others."""
    return KernelError(f"expected no recursion, but '{function}' calls itself", "functions are inlined: use a loop")


@numbered(610)
def condition_not_scalar(value: Any) -> KernelError:
    """The condition of an if, a while or an assertion is a block, of which each element may say something else."""
    return KernelError(
        f"expected a scalar condition, but got {type_of(value)}",
        "select element by element with wl.where, or reduce it with wl.max",
    )


@numbered(611)
def loop_bound(what: str, value: Any) -> KernelError:
    """The start, end or step of a loop is no scalar integer."""
    return KernelError(
        f"expected {what} of the loop to be a scalar integer, but got {type_of(value)}",
        "convert it with .to(wl.int32)",
    )


@numbered(612)
def zero_step(operation: str) -> KernelError:
    """A range with step 0 would never end."""
    return KernelError(f"expected a step other than 0 for {operation}, but got 0", "count up with 1 or down with -1")


@numbered(613)
def not_iterable(value: Any) -> KernelError:
    """A for loop goes over something that is neither a range nor a tuple."""
    return KernelError(
        f"expected range(...), wl.range(...), wl.static_range(...) or a tuple to loop over, but got {type_of(value)}",
        "write 'for i in range(n)'",
    )


@numbered(614)
def endless_loop() -> KernelError:
    """The condition of a while loop is the constant True, and nothing leaves the loop."""
    return KernelError(
        "expected a loop that can end, but got a condition that is always true", "test something that the loop changes"
    )


@numbered(615)
def cannot_unpack(value: Any, wanted: int) -> KernelError:
    """There are more or fewer names on the left than values on the right."""
    got = f"{len(value)} values" if isinstance(value, (tuple, list)) else type_of(value)
    return KernelError(f"expected {wanted} values to unpack, but got {got}", "give as many names as there are values")


@numbered(616)
def constexpr_reassigned(name: str) -> KernelError:
    """A variable that was assigned with the annotation wl.constexpr is assigned again."""
    return KernelError(
        f"expected '{name}' to be assigned once, as a constexpr is, but it has a value already", "use another name"
    )


@numbered(617)
def static_assertion(message: Any) -> KernelError:
    """A wl.static_assert is false for the constants and types of this compilation."""
    return KernelError(
        f"static assertion failed{f': {message}' if message else ''}", "the condition is false for these arguments"
    )


@numbered(618)
def python_failure(error: Exception) -> KernelError:
    """An expression of constants is computed by Python, which raised an exception."""
    return KernelError(
        f"a constant expression failed: {type(error).__name__}: {error}", "check the constants in this expression"
    )


@numbered(619)
def defect(error: Exception) -> KernelError:
    """The compiler raised an exception of its own."""
    return KernelError(
        f"the compiler failed at this expression: {type(error).__name__}: {error}",
        "this is a defect in Weft, not in the kernel; write the line another way and report it",
    )


@numbered(620)
def false_promise() -> KernelError:
    """A condition that 'assume' promises is false already when the kernel is compiled."""
    return KernelError("expected a condition that can hold for 'assume', but got one that is false", "leave it out")


@numbered(621)
def printed_text(value: Any) -> KernelError:
    """The text that a value is printed with is no text, or has characters that a line of ASCII has not."""
    return KernelError(
        f"expected a line of printable ASCII text for 'device_print', but got {type_of(value)}",
        'write it out: wl.device_print("x", x)',
    )


@numbered(622)
def aggregate_field(owner: str, name: str, fields: tuple[str, ...]) -> KernelError:
    """Only the fields that a class's annotations name are assigned, once, by its constructor."""
    return KernelError(
        f"expected an instance of '{owner}' to be given {_listed(fields)}, once each, but got '{name}'",
        "annotate the field in the class; 'aggregate_replace' makes an instance with another value",
    )


@numbered(623)
def aggregate_missing(owner: str, name: str, fields: tuple[str, ...]) -> KernelError:
    """A constructor gives every field a value."""
    return KernelError(
        f"expected an instance of '{owner}' to be given {_listed(fields)}, but '{name}' has no value",
        "pass it, or assign it in '__init__'",
    )


@numbered(624)
def unused_pointer(call: str) -> KernelError:
    """A block pointer is moved, or made, by a statement, and the result goes nowhere: the pointer itself stays."""
    return KernelError(
        f"expected the block pointer that '{call}' gives to be used, but got a statement",
        "assign it: block pointers do not change",
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "nothing"
