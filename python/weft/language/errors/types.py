# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Numbers and their types."""

from __future__ import annotations

from typing import Any

from ..types import dtype
from .entry import KernelError, numbered, type_of


@numbered(201)
def expected_value(what: str, value: Any) -> KernelError:
    """An operation was given something that is neither a number nor a tensor, such as a text, a type or None."""
    remedy = "assign a number or a tensor first" if value is None else "use a number or a tensor"
    return KernelError(f"expected {what} to be a number or a tensor, but got {type_of(value)}", remedy)


@numbered(202)
def tensor_as_python_value(wanted: str, value: Any) -> KernelError:
    """Python asked for the truth or the number of a value that is known only when the kernel runs, as 'and', 'or',
    'not' and int() do."""
    return KernelError(
        f"expected a constant for '{wanted}', but got {type_of(value)}, which is known only when the kernel runs",
        "combine conditions with & and |, or mark what decides as wl.constexpr",
    )


@numbered(203)
def expected_scalar(what: str, value: Any) -> KernelError:
    """A block stands where one number is needed."""
    return KernelError(
        f"expected {what} to be a scalar, but got {type_of(value)}",
        "reduce it first, for example with wl.sum or wl.max",
    )


@numbered(204)
def expected_dtype(operation: str, value: Any) -> KernelError:
    """The argument 'dtype' of a conversion is no type."""
    return KernelError(
        f"expected a type for 'dtype' of '{operation}', but got {type_of(value)}",
        "name one, for example wl.float32",
        "dtype",
    )


@numbered(205)
def no_common_type(a: dtype, b: dtype) -> KernelError:
    """A tensor of 8-bit floats meets one of integers, and neither is promoted to the other."""
    return KernelError(f"expected operands with a common type, but got {a} and {b}", "cast one of them with .to(...)")


@numbered(206)
def signedness_differs(a: dtype, b: dtype) -> KernelError:
    """A signed and an unsigned integer are divided: the quotient depends on which of the two types the other takes."""
    return KernelError(
        f"expected operands of division with the same signedness, but got {a} and {b}",
        f"cast one of them, for example with .to(wl.{a})",
    )


@numbered(207)
def negative_with_unsigned(value: Any, other: dtype) -> KernelError:
    """A negative number meets a tensor of unsigned integers, whose type it would take."""
    return KernelError(
        f"expected a number that {other} holds, but got {value}", "cast the tensor to a signed type with .to(...)"
    )


@numbered(208)
def number_out_of_range(value: Any, what: str) -> KernelError:
    """A number in the source has more bits than the type that it takes."""
    return KernelError(
        f"expected a number that fits {what}, but got {value}", "cast the other operand to a wider type with .to(...)"
    )


@numbered(209)
def needs_integers(operation: str, got: dtype, remedy: str) -> KernelError:
    """An operation of integers was given floats or pointers."""
    return KernelError(f"expected integers for '{operation}', but got {got}", remedy)


@numbered(210)
def needs_floats(operation: str, got: dtype) -> KernelError:
    """An operation of floats was given integers or pointers."""
    return KernelError(f"expected floats for '{operation}', but got {got}", "convert first with .to(wl.float32)")


@numbered(211)
def no_fp8_arithmetic(operation: str, got: dtype) -> KernelError:
    """Arithmetic on 8-bit floats, which machines convert and multiply as matrices but do not add."""
    return KernelError(
        f"expected operands of at least 16 bits for '{operation}', but got {got}", "convert first with .to(wl.float16)"
    )


@numbered(212)
def unary_operand(operation: str, got: dtype) -> KernelError:
    """A sign, '~' or 'abs' of a value that has none, such as a pointer."""
    remedy = "pointers move by adding integers" if got.is_ptr() else "cast the operand with .to(...)"
    return KernelError(f"expected a number that '{operation}' takes, but got {got}", remedy)


@numbered(213)
def division_by_zero() -> KernelError:
    """The divisor is the constant 0."""
    return KernelError(
        "expected a divisor other than 0, but got the constant 0", "check the constants this divisor is made from"
    )


@numbered(214)
def bitcast_width(source: dtype, target: dtype) -> KernelError:
    """bitcast=True keeps the bits, so both types need as many."""
    return KernelError(
        f"expected a type of {source.primitive_bitwidth} bits to reread {source} as, but got {target} "
        f"of {target.primitive_bitwidth}",
        "drop bitcast=True to convert the value",
    )


@numbered(215)
def unsupported_option(name: str, value: Any, allowed: str) -> KernelError:
    """An argument takes one of a few values, and got another."""
    return KernelError(f"expected '{name}' to be one of {allowed}, but got {value!r}", "use one of these", name)


@numbered(216)
def options_exclude(operation: str, given: list[str]) -> KernelError:
    """An access was given two options of which the instruction has room for one (PTX ISA, ld and st)."""
    names = " and ".join(f"'{name}'" for name in given)
    return KernelError(
        f"expected one of 'cache_modifier', 'eviction_policy' and 'volatile' of '{operation}', but got {names}",
        "an access of the machine has one of these",
        given[-1],
    )


@numbered(217)
def rounding_toward_zero(source: Any, target: Any) -> KernelError:
    """Rounding toward zero is there for float32 as a 16-bit float."""
    return KernelError(
        f"expected fp32 and a 16-bit float to round toward zero, but got {source} and {target}",
        "convert to float32 first, or leave out fp_downcast_rounding",
        "fp_downcast_rounding",
    )


@numbered(218)
def expected_text(name: str, operation: str, value: Any) -> KernelError:
    """An operation needs a text that is known when the kernel is compiled."""
    return KernelError(
        f"expected '{name}' of '{operation}' to be a text, but got {type_of(value)}", "write it out", name
    )
