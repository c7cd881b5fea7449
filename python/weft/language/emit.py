# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The IR being built: one builder for the kernel that this thread is compiling, and what every language op needs to add
to it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import errors
from .types import dtype, e4b15_bits


class NativeContext:
    """A compiler context and the types and attributes made in it so far, by their Python value."""

    def __init__(self, native: Any):
        self.native = native
        self.context = native.Context()
        self.types: dict[Any, Any] = {}
        self.attributes: dict[str, Any] = {}
        self.i32 = self.context.type("i32")
        self.i64 = self.context.type("i64")
        self.unit = self.context.unit()

    def type(self, value_type: Any) -> Any:
        """The native type of a dtype or block type."""
        found = self.types.get(value_type)
        if found is None:
            found = self.types[value_type] = self.context.type(value_type.mlir)
        return found

    def attribute(self, text: str) -> Any:
        """The attribute that MLIR text spells."""
        found = self.attributes.get(text)
        if found is None:
            found = self.attributes[text] = self.context.attribute(text)
        return found


class Builder:
    """Adds operations to one module, each at the source position that is set."""

    def __init__(self, native: NativeContext, file: str, options: Any, call: Callable[..., Any]):
        self.native = native
        self.options = options
        self.target = ""  # what is compiled for
        # Inlines a @weft.jit function: call(function, args, kwargs) -> value. Ops that take functions (reduce) use it.
        self.call = call
        self.file, self.line, self.column = file, 1, 1
        self.caller: Any = None  # the location that the present function was inlined at
        self._location: Any = None
        self._located: tuple[Any, ...] = ()
        self.module = native.context.module(self.location())
        self.arguments: set[Any] = set()  # of the kernel
        # Hints about arguments of the kernel, by argument: the kernel's operation takes them when it is made.
        self.argument_hints: dict[Any, dict[str, str]] = {}
        # Promises of what a loop carries, by their results: what made them.
        self.promised: dict[Any, str] = {}
        self.warnings: list[str] = []  # what the kernel's author should know, with its place

    def location(self) -> Any:
        """The native location of the present source position."""
        key = (self.file, self.line, self.column, self.caller)
        if key != self._located:
            location = self.native.context.location(self.file, self.line, self.column)
            self._location = location if self.caller is None else self.native.native.inlined(location, self.caller)
            self._located = key
        return self._location

    def warn(self, text: str) -> None:
        """Say something of the present source position, now and whenever the kernel is taken from a cache."""
        self.warnings.append(f"{self.file}:{self.line}: {text}")

    def op(
        self,
        name: str,
        operands: Sequence[Any] = (),
        results: Sequence[Any] = (),
        attributes: dict[str, Any] | None = None,
        regions: Sequence[Any] = (),
    ) -> Any:
        """Add an operation; operands are native values, results types of the language.

        Gives its native result, or a tuple of them.
        """
        native_type = self.native.type
        return self.module.create(
            name, self.location(), operands, [native_type(r) for r in results], attributes or {}, regions
        )

    def constant(self, value: int | float | bool, value_type: Any) -> Any:
        """A native constant: the value itself, or a block filled with it."""
        native = self.native
        ir_type = native.type(value_type)
        if value_type.scalar.is_fp8e4b15():
            attribute = native.native.integer(ir_type, _wrapped(e4b15_bits(float(value)), 8))
        elif value_type.is_floating():
            attribute = native.native.float_(ir_type, float(value))
        else:
            attribute = native.native.integer(ir_type, _wrapped(int(value), value_type.scalar.primitive_bitwidth))
        return self.module.create("arith.constant", self.location(), (), [ir_type], {"value": attribute}, ())

    @contextlib.contextmanager
    def region(self, arguments: Sequence[Any]) -> Iterator[Any]:
        """A new region with arguments of these types; operations go into it until the end of the ``with``."""
        region = self.module.region([self.native.type(a) for a in arguments], self.location())
        with self.inside(region):
            yield region

    @contextlib.contextmanager
    def inside(self, region: Any) -> Iterator[None]:
        """Operations go to the end of a region that was begun before."""
        outer = self.module.insertion
        self.module.insertion = region.block
        try:
            yield
        finally:
            self.module.insertion = outer

    def extend(self, region: Any, arguments: Sequence[Any]) -> None:
        """Give a region that was begun before more arguments, after those it has."""
        for argument in arguments:
            region.add_argument(self.native.type(argument), self.location())

    def i32(self, value: int) -> Any:
        """An integer attribute of 32 bits."""
        return self.native.native.integer(self.native.i32, value)

    def i64(self, value: int) -> Any:
        """An integer attribute of 64 bits."""
        return self.native.native.integer(self.native.i64, value)

    def i32_array(self, values: Sequence[int]) -> Any:
        """A dense array attribute of integers of 32 bits."""
        return self.native.context.i32_array(values)

    def string(self, text: str) -> Any:
        """A string attribute."""
        return self.native.context.string(text)

    def attribute(self, text: str) -> Any:
        """The attribute that MLIR text spells."""
        return self.native.attribute(text)


def _wrapped(value: int, bits: int) -> int:
    """The signed 64-bit integer with the same low bits as ``value``; 1 and 0 for a bool."""
    if bits == 1:
        return int(bool(value))
    value &= (1 << bits) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


_state = threading.local()


def current_or_none() -> Builder | None:
    """The builder of the kernel being compiled, where one is."""
    builder: Builder | None = getattr(_state, "builder", None)
    return builder


def current() -> Builder:
    """The builder of the kernel being compiled; an error outside of one."""
    builder = current_or_none()
    if builder is None:
        raise errors.outside_kernel()
    return builder


@contextlib.contextmanager
def building(builder: Builder) -> Iterator[Builder]:
    """Make a builder the current one of this thread."""
    outer = getattr(_state, "builder", None)
    _state.builder = builder
    try:
        yield builder
    finally:
        _state.builder = outer


def builtin(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as part of the language: kernels may call it, and it is given the values of its arguments."""
    function.__weft_builtin__ = True  # type: ignore[attr-defined]
    return function


def is_dtype(value: Any) -> bool:
    """Whether a value is a type of elements or of pointers; a block's is not."""
    return isinstance(value, dtype)
