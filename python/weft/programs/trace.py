# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tracing: a Python function run once over symbolic tensors, and the form of the program that comes of it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..compiler import places
from ..compiler.diagnostics import CompilationError, Position
from ..compiler.names import SAVED
from ..compiler.names import check as check_names
from ..compiler.signature import short_name
from ..runtime.elements import is_float
from . import foreign
from . import graph as graphs
from .captures import add_input
from .emit import Emitter
from .facts import Facts
from .graph import Graph, TensorType
from .inputs import Node, Slot, Static, rebuild
from .signature import Declared
from .sizes import Mismatch, Requirement, Size, forget, spell
from .tensors import Tensor


@dataclass(frozen=True)
class Traced:
    """A program for one set of types and static sizes.

    ``text`` is its attn IR with locations, ``plain`` without; ``inputs`` and ``outputs`` have the types, their sizes
    spelled; ``result`` is the structure of what the function gave, with Slots for its outputs or, below 0, its inputs.
    """

    name: str
    position: Position | None
    text: str
    plain: str
    inputs: tuple[Signature, ...]
    outputs: tuple[Signature, ...]
    result: Any
    captured: tuple[Any, ...]
    sizes: tuple[tuple[Size, ...], ...]
    general: bool = True  # it is for other arrays too: none was met on the way, and none looked into
    required: tuple[Requirement, ...] = ()  # of its sizes
    starts: tuple[tuple[int, str], ...] = ()  # inputs that say where packed sequences start, of how many tokens

    @property
    def differentiable(self) -> bool:
        """Whether it has a backward: one of its results is of floats."""
        return any(is_float(each.type) for each in self.outputs)

    def aligned(self) -> Traced | None:
        """The same for inputs all of which are aligned; None where these are."""
        if all(each.aligned for each in self.inputs):
            return None
        inputs = tuple(dataclasses.replace(each, aligned=True) for each in self.inputs)
        text, plain = _with_aligned(self.text), _with_aligned(self.plain)
        return dataclasses.replace(self, inputs=inputs, text=text, plain=plain)

    def accepts(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether this form is for arrays of these shapes: static sizes are met, and symbols have one value each."""
        bound: dict[int, int] = {}
        for sizes, shape in zip(self.sizes, shapes, strict=False):
            for size, given in zip(sizes, shape, strict=True):
                found = size.resolved
                if found.symbol is None:
                    if found.factor != given:
                        return False
                    continue
                number, rest = given // found.factor, given % found.factor
                if rest or number < found.symbol.least or bound.setdefault(id(found.symbol), number) != number:
                    return False

        def known(size: Size) -> int | None:
            found = size.resolved
            one = 1 if found.symbol is None else bound.get(id(found.symbol))  # none of a captured array's
            return None if one is None else found.factor * one

        return all(each.holds(known) for each in self.required)


def _with_aligned(text: str) -> str:
    """A program's IR with the promise that its arguments are aligned."""
    head, arrow, rest = text.partition(") -> (")
    return re.sub(r"\{(?!attn\.aligned)((?:attn\.constant, )?attn\.name = )", r"{attn.aligned, \1", head) + arrow + rest


@dataclass(frozen=True)
class Signature:
    """One input or output: its name, element type and sizes, as the manifest of a library spells them."""

    name: str
    type: str
    dims: tuple[str, ...]
    aligned: bool = False


def trace(
    function: Callable[..., Any],
    name: str,
    names: Sequence[str],
    facts: Sequence[Facts | Declared],
    arguments: Callable[[Callable[[int], Any]], tuple[tuple[Any, ...], dict[str, Any]]],
    position: Position | None = None,
    sizes: Sequence[tuple[Size, ...]] | None = None,
    selective: bool = False,
    arrays: Sequence[Any] = (),
) -> Traced:
    """Run a function over symbolic tensors. ``arguments`` makes its arguments, given the tensor of each number;
    ``arrays`` are those of the call, where there is one.

    Raises CompilationError at the user's line.
    """
    graph = Graph(name)
    graph.position = position or places.user_position()
    graph.selective = selective
    check_names("program", name, names, graph.position)
    with graphs.tracing_into(graph), foreign.tracing():
        tensors = [
            Tensor(add_input(graph, n, f, sizes[i] if sizes else None, arrays[i] if arrays else None))
            for i, (n, f) in enumerate(zip(names, facts, strict=True))
        ]
        args, keywords = arguments(lambda number: tensors[number])
        try:
            given = function(*args, **keywords)
        except Mismatch as error:  # what no operation has put in its own words
            raise CompilationError(str(error), graph.position) from None
        result = _outputs(graph, given)
    emitter = Emitter(graph)
    module = emitter.emit()

    def signature(name: str, type: Any, aligned: bool = False) -> Signature:
        dims = tuple(spell(size, emitter.names) for size in type.sizes)
        return Signature(name, _manifest_name(type), dims, aligned)

    numbers = {id(each.value): number for number, each in enumerate(graph.inputs)}
    for each in graph.inputs:  # the form outlives the call, whose sizes may be symbols of torch's
        forget(each.value.type.sizes if isinstance(each.value.type, TensorType) else ())
    return Traced(
        name,
        graph.position,
        module.text(locations=True),
        module.text(),
        tuple(signature(i.name, i.value.type, i.aligned) for i in graph.inputs),
        tuple(signature(n, v.type) for n, v in graph.outputs),
        result,
        tuple(array for array, _ in graph.captured.values()),
        tuple(i.value.type.sizes for i in graph.inputs if isinstance(i.value.type, TensorType)),
        not graph.captured and not graph.looked_into,
        tuple(each for each in graph.required if not each.settled),
        tuple(
            {
                (numbers[id(value)], spell(size, emitter.names)): None
                for value, size in graph.starts
                if id(value) in numbers
            }
        ),
    )


def _manifest_name(type: TensorType) -> str:
    return short_name(type.element)


def _written(result: Tensor, graph: Graph) -> None:
    if result.dtype.is_fp8():
        raise CompilationError(
            f"expected '{graph.name}' to give tensors of 16 bits or more, but got {result.dtype}", graph.position,
            "use .to(dtype)",
        )  # fmt: skip


#: for what a program may give in a tensor's place
_REMEDIES = {
    "Mixer": "apply it to values: A @ v",
    "Scalar": "let one of its arguments be a tensor; of numbers alone, Python's own min, max and if give a number",
}


def _output_name(wanted: str, graph: Graph) -> str:
    """The name of an output: of the letters that libraries have, another one than those before, and than what a forward
    saves for its backward. The backward's argument d_NAME is no input's name either, and no output's that it takes."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
    if not re.match(r"[A-Za-z_]", name) or name.startswith(SAVED):
        name = f"out_{name}"
    inputs, taken = {each.name for each in graph.inputs}, {each for each, _ in graph.outputs}
    while name in taken or f"d_{name}" in inputs | taken or name.removeprefix("d_") in taken:
        name += "_"
    return name


def _outputs(graph: Graph, given: Any) -> Any:
    """The structure of a function's result; its tensors become the program's outputs."""

    def walk(value: Any, name: str) -> Any:
        if isinstance(value, Tensor):
            given = next((i for i, each in enumerate(graph.inputs) if each.value is value.value), None)
            if given is not None:  # an input itself, which no kernel needs to copy: -1 for the first
                return Slot(-1 - given)
            made = next((i for i, (_, each) in enumerate(graph.outputs) if each is value.value), None)
            if made is None:
                _written(value, graph)
                graph.outputs.append((_output_name(name, graph), value.value))
            return Slot(len(graph.outputs) - 1 if made is None else made)
        if isinstance(value, (tuple, list)):
            return Node(type(value), tuple((str(i), walk(v, f"{name}{i}")) for i, v in enumerate(value)))
        if isinstance(value, dict):
            return Node(dict, tuple((k, walk(v, str(k))) for k, v in value.items()))
        if value is None:
            return Static(None)
        kind = type(value).__name__
        raise CompilationError(
            f"expected '{graph.name}' to give tensors, but got '{kind}'", graph.position, _REMEDIES.get(kind)
        )

    result = walk(given, "out")
    if not graph.outputs:
        given_back = "none" if given is None else "none but its inputs"
        raise CompilationError(f"expected '{graph.name}' to give a tensor, but got {given_back}", graph.position)
    return result


__all__ = ["Facts", "Signature", "Traced", "rebuild", "trace"]
