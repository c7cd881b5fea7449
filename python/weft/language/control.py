# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What steers a program: its place in the grid, loops, checks and hints."""

from __future__ import annotations

from typing import Any

from . import errors
from .casts import convert
from .emit import builtin, current
from .literals import to_tensor
from .operators import as_bool, compare
from .shapes import constant_int
from .types import float32, int32, int64, uint32, unwrap
from .value import tensor

_AXES = "xyz"


def _grid_axis(axis: Any, operation: str) -> Any:
    index = constant_int(axis, f"the axis of {operation}")
    if index not in (0, 1, 2):
        raise errors.grid_axis(operation, index)
    return current().attribute(f"#tile<axis {_AXES[index]}>")


@builtin
def program_id(axis: int) -> tensor:
    """The index of this program along axis 0, 1 or 2 of the grid; int32."""
    return tensor(current().op("tile.program_id", [], [int32], {"axis": _grid_axis(axis, "program_id")}), int32)


@builtin
def num_programs(axis: int) -> tensor:
    """The number of programs along axis 0, 1 or 2 of the grid; int32."""
    return tensor(current().op("tile.num_programs", [], [int32], {"axis": _grid_axis(axis, "num_programs")}), int32)


class range:
    """``for i in wl.range(...)``: as Python's ``range``, with advice to the compiler.

    ``num_stages`` is how many iterations of the loop's loads are in flight at once (the kernel's ``num_stages`` by
    default). Where copies of whole tiles are made by one thread (sm_90a), warps of their own make them if that pays;
    with ``warp_specialize`` also where a second block of the multiprocessor would hide the waits, as none does for
    kernels with one program for each multiprocessor. ``loop_unroll_factor`` iterations stand one after another, where
    the loop has no products and no loops. Triton's other advice is accepted and has no effect.
    """

    __weft_builtin__ = True

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: int | None = None,
        loop_unroll_factor: int | None = None,
        disallow_acc_multi_buffer: bool = False,
        flatten: bool = False,
        warp_specialize: bool = False,
        disable_licm: bool = False,
    ):
        self.start: Any = 0 if arg2 is None else arg1
        self.end: Any = arg1 if arg2 is None else arg2
        self.step: Any = 1 if step is None else step
        self.warp_specialize = bool(unwrap(warp_specialize))
        self.num_stages = _count(num_stages, "num_stages")
        self.loop_unroll_factor = _count(loop_unroll_factor, "loop_unroll_factor")


def _count(given: Any, name: str) -> int | None:
    """How many iterations an option of ``range`` names; fewer than one are one, as in Triton."""
    return None if unwrap(given) is None else max(constant_int(given, f"{name} of range"), 1)


class static_range:
    """``for i in wl.static_range(...)``: unrolled when the kernel is compiled; the bounds are constant and ``i`` is
    too.
    """

    __weft_builtin__ = True

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = None):
        start: Any = 0 if arg2 is None else arg1
        end: Any = arg1 if arg2 is None else arg2
        self.start = constant_int(start, "the start of static_range")
        self.end = constant_int(end, "the end of static_range")
        self.step = 1 if step is None else constant_int(step, "the step of static_range")
        if self.step == 0:
            raise errors.zero_step("static_range")


@builtin
def static_assert(cond: Any, msg: str = "") -> None:
    """Refuse to compile, with a message, unless a constant condition is true."""
    known = unwrap(cond)
    if isinstance(known, tensor):
        known = known.constant
        if known is None:
            raise errors.not_constant("the condition of static_assert", unwrap(cond))
    if not known:
        raise errors.static_assertion(unwrap(msg))


@builtin
def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Print when the kernel is compiled: constants as they are, other values as their type."""
    print(*(unwrap(v) for v in values), sep=unwrap(sep), end=unwrap(end), flush=bool(unwrap(flush)))


@builtin
def device_assert(cond: Any, msg: str = "", mask: Any = None) -> None:
    """Trap when the kernel runs, with a message, where a condition is false.

    Only in kernels launched with ``debug=True``.
    """
    builder = current()
    if not builder.options.debug:
        return
    condition = as_bool(cond, "the condition of 'device_assert'")
    if unwrap(mask) is not None:
        condition = condition | ~as_bool(mask, "the mask of 'device_assert'")
    text = f"{builder.file}:{builder.line}: {unwrap(msg) or 'the condition is false'}"
    builder.op("tile.assert", [condition.handle], [], {"message": builder.string(text)})


@builtin
def expect_zero(x: Any, mask: Any) -> tensor:
    """``x``, which is said to be 0 where ``mask`` is true; kernels launched with ``debug=True`` check that."""
    value = to_tensor(x, "the argument of 'expect_zero'")
    if current().options.debug:
        device_assert(compare("==", value, 0), "expected 0 where the mask of 'expect_zero' is true", mask)
    return value


@builtin
def device_print(prefix: str, *args: Any, hex: bool = False) -> None:
    """Print values when the kernel runs, each element on a line of its own with the program's and its own indices.

    The order of lines is not specified. Floats of less than 32 bits are printed as float32, pointers as addresses;
    ``hex`` prints integers in hexadecimal. Without values the text is printed once for each program.

        wl.device_print("x", wl.arange(0, 2))    # pid (0, 0, 0) idx (0) x: 0
    """
    text = unwrap(prefix)
    if not isinstance(text, str) or not (text + " ").isprintable() or not text.isascii():
        raise errors.printed_text(text)
    builder = current()
    values = [_printed(arg) for arg in args]
    label = f" {text.strip()}" + ("" if not values or text.strip().endswith(":") or not text.strip() else ":")
    for index, (value, as_hex, unsigned) in enumerate(values):
        spelled = f"{label} (operand {index}) " if len(values) > 1 else f"{label} "
        attributes = {"text": builder.string(spelled)}
        attributes |= {"hex": builder.native.unit} if as_hex or unwrap(hex) else {}
        attributes |= {"isUnsigned": builder.native.unit} if unsigned else {}
        builder.op("tile.print", [value.handle], [], attributes)
    if not values:
        builder.op("tile.print", [], [], {"text": builder.string(label)})


def _printed(arg: Any) -> tuple[tensor, bool, bool]:
    """A value as it is printed, whether in hexadecimal, and whether it is unsigned."""
    value = to_tensor(arg, "a value of 'device_print'")
    if value.dtype.is_ptr():
        return convert(value, int64), True, False
    unsigned = value.dtype.is_int_unsigned()
    if value.dtype.primitive_bitwidth < 32:
        wide = float32 if value.dtype.is_floating() else int32 if not unsigned or value.dtype.is_bool() else uint32
        value = convert(value, wide)
    return value, False, unsigned


@builtin
def debug_barrier() -> None:
    """Wait until every thread of the program arrives; memory written before is visible after."""
    current().op("tile.barrier")


@builtin
def assume(cond: Any) -> None:
    """A promise that a condition holds, of a scalar or of every element of a block. Where it does not, what the kernel
    computes is undefined.

    Comparisons of integers with constants (``n >= 0``) and remainders that are 0 (``n % 16 == 0``), also joined by
    ``and`` or ``&``, widen loads and stores; they count in the block of statements that the value is made in.

        wl.assume((N >= 0) & (N % 16 == 0))
    """
    condition = as_bool(cond, "the condition of 'assume'")
    if condition.is_constant and not condition.constant:
        raise errors.false_promise()
    if not condition.is_constant:
        current().op("tile.assume", [condition.handle])


def _hint(input: Any, name: str, values: Any) -> tensor:
    """Attach per-axis promises to the operation that computes a value, or to the kernel's argument that it is."""
    if not isinstance(input, tensor):
        raise errors.expected_value(f"the argument of '{name}'", input)
    values = unwrap(values)
    numbers = [
        constant_int(v, f"a value of {name}") for v in (values if isinstance(values, (tuple, list)) else (values,))
    ]
    if any(n < 1 for n in numbers) or len(numbers) != (len(input.shape) or 1):
        raise errors.hint_values(name, numbers, input)
    builder = current()
    attribute = {
        "multiple_of": "tile.divisibility",
        "max_contiguous": "tile.contiguity",
        "max_constancy": "tile.constancy",
    }[name]
    text = f"array<i32: {', '.join(map(str, numbers))}>" if input.shape else f"{numbers[0]} : i32"
    if not input.is_constant and not input.handle.set_attribute(attribute, builder.attribute(text)):
        # An argument of a block: the kernel's operation keeps the promise; what a loop carries has an op for it.
        if input.handle in builder.arguments:
            builder.argument_hints.setdefault(input.handle, {})[attribute] = text
        else:
            promised = builder.op("tile.promise", [input.handle], [input.type], {attribute: builder.attribute(text)})
            builder.promised[promised] = name
            return tensor(promised, input.type)
    return input


@builtin
def multiple_of(input: tensor, values: Any) -> tensor:
    """A promise: the first element of every run of contiguous ones is a multiple of ``values``, one number an axis.
    Gives ``input``.

        at = wl.multiple_of(wl.program_id(0) * M, 16) + wl.arange(0, 64)
    """
    return _hint(input, "multiple_of", values)


@builtin
def max_contiguous(input: tensor, values: Any) -> tensor:
    """A promise: elements come in runs of at least ``values`` consecutive numbers, one number an axis.

    Gives ``input``.
    """
    return _hint(input, "max_contiguous", values)


@builtin
def max_constancy(input: tensor, values: Any) -> tensor:
    """A promise: elements come in runs of at least ``values`` equal numbers, one number an axis. Gives ``input``."""
    return _hint(input, "max_constancy", values)


__all__ = [
    "assume",
    "debug_barrier",
    "device_assert",
    "device_print",
    "expect_zero",
    "max_constancy",
    "max_contiguous",
    "multiple_of",
    "num_programs",
    "program_id",
    "range",
    "static_assert",
    "static_print",
    "static_range",
]
