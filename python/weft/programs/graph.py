# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What tracing records: operations in order, on tensors, mixers and scalars. Sizes are final only when all is recorded,
so the IR is made from this afterwards (emit.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compiler import places
from ..compiler.diagnostics import CompilationError, Position
from ..language.types import dtype
from .sizes import Mismatch, Requirement, Size


@dataclass(frozen=True, eq=False)
class TensorType:
    """Of a whole tensor: its sizes, and the type of an element."""

    sizes: tuple[Size, ...]
    element: dtype


#: operations that take tensors of 8-bit floats: they say where numbers are, or convert them
TAKE_FLOAT8 = ("attn.map", "attn.element", "attn.paged")

# The other types of values are MLIR's spelling itself: "!attn.mixer", "f32", "i32", "i1".
Type = TensorType | str


@dataclass(eq=False)
class Value:
    """What an operation gives, or an argument of the program or of a region."""

    type: Type
    native: Any = None  # set while the IR is made


@dataclass(eq=False)
class Region:
    """Operations on scalars, with arguments; it ends in attn.yield, which ``body`` holds too."""

    arguments: list[Value] = field(default_factory=list)
    body: list[Operation] = field(default_factory=list)


# An attribute is MLIR text, or made of the types when they are known.
Attributes = dict[str, "str | Callable[[Any], Any]"]


@dataclass(eq=False)
class Operation:
    name: str
    operands: Sequence[Value]
    results: list[Value]
    attributes: Attributes
    regions: Sequence[Region]
    position: Position | None


@dataclass(eq=False)
class Input:
    """An argument of the program."""

    name: str
    value: Value
    aligned: bool
    constant: bool = False  # nobody asks for its gradient


class Graph:
    """The program being traced. ``block`` is where operations go now: the program's body, or a region."""

    def __init__(self, name: str):
        self.name = name
        self.inputs: list[Input] = []
        self.outputs: list[tuple[str, Value]] = []
        self.body: list[Operation] = []
        self.block = self.body
        # Tensors captured from outside, by identity of the array: they become inputs when they are first met.
        self.captured: dict[int, tuple[Any, Any]] = {}
        # Whether gradients are asked for, of some inputs only: then others are constants of the backward.
        self.selective = False
        self.position: Position | None = None
        # Tensors that say where packed sequences start, each with the number of tokens.
        self.starts: list[tuple[Value, Any]] = []
        # What is asked of sizes beside that some are equal.
        self.required: list[Requirement] = []
        # Arrays of one number, by the inputs that they are; and whether what one holds is part of the compiled form.
        self.numbers: dict[int, Any] = {}
        self.looked_into = False
        # Whether tensors around a function are read as torch reads them (torch_reads.py), and those that were replaced
        # for it: no other array may take the place of one, by which it is known.
        self.as_torch = False
        self.replaced: list[Any] = []

    def add(
        self,
        name: str,
        operands: Sequence[Value] = (),
        results: Sequence[Type] = (),
        attributes: Attributes | None = None,
        regions: Sequence[Region] = (),
    ) -> Operation:
        """Add an operation of the attn dialect, or of scalars, at the user's line; gives it, with a fresh value for
        each of the types in ``results``."""
        if name not in TAKE_FLOAT8:
            for each in operands:
                if isinstance(each.type, TensorType) and each.type.element.is_fp8():
                    given = f"expected numbers of 16 or 32 bits to compute on, but got {each.type.element}"
                    raise places.error(given, "use .to(dtype)")
        values = [Value(type) for type in results]
        operation = Operation(name, operands, values, attributes or {}, regions, places.user_position())
        self.block.append(operation)
        return operation

    def one(self, name: str, operands: Sequence[Value], result: Type, attributes: Attributes | None = None) -> Value:
        """Add an operation of one result; gives it."""
        return self.add(name, operands, [result], attributes).results[0]

    @contextlib.contextmanager
    def region(self, arguments: Sequence[Type]) -> Iterator[Region]:
        """A region of scalars; operations go into it until the end of the ``with``."""
        region = Region([Value(type) for type in arguments])
        outer, self.block = self.block, region.body
        try:
            yield region
        finally:
            self.block = outer


_state = threading.local()


def present() -> Graph | None:
    """The program that this thread is tracing, if any."""
    return getattr(_state, "graph", None)


def tracing() -> Graph:
    """The program that this thread is tracing; an error outside of one."""
    graph = present()
    if graph is None:
        raise places.error(
            "expected a call inside a program",
            "decorate the function with @weft.program, and call it with arrays",
        )
    return graph


def in_region() -> bool:
    """Whether scalars of a region are being traced, not whole tensors."""
    graph = present()
    return graph is not None and graph.block is not graph.body


def looked_into(value: Any) -> Any:
    """The array of one number that an input of the program being traced is, or the value itself; what it holds is then
    part of the compiled form."""
    graph = present()
    if graph is None:
        return value
    array = graph.numbers.get(id(getattr(value, "value", None)), value)
    graph.looked_into |= array is not value or getattr(type(value), "__setitem__", None) is not None
    return array


@contextlib.contextmanager
def tracing_into(graph: Graph | None) -> Iterator[None]:
    """A ``with`` in which this thread traces into a graph; None stands for none."""
    outer, _state.graph = present(), graph
    try:
        yield
    finally:
        _state.graph = outer


@contextlib.contextmanager
def agreeing(what: str, remedy: str | None = None) -> Iterator[None]:
    """Sizes that do not agree inside become an error at the user's line, begun by ``what``."""
    try:
        yield
    except Mismatch as mismatch:
        raise places.error(f"{what}: {mismatch}", remedy) from None


__all__ = [
    "CompilationError",
    "Graph",
    "Input",
    "Operation",
    "Region",
    "TensorType",
    "Type",
    "Value",
    "agreeing",
    "in_region",
    "looked_into",
    "present",
    "tracing",
    "tracing_into",
]
