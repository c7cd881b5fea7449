# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""From a recorded program to a module of attn IR, when all sizes are settled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..compiler.diagnostics import Position, from_native
from ..compiler.lower import native_context
from .graph import Graph, Input, Operation, Region, TensorType, Type, Value
from .sizes import Requirement, Size, name_all, spell


class Emitter:
    """Writes one program into a module. ``names`` are the symbols' names, by identity."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.context = native_context()
        self.names = name_all(_sizes(graph))
        self.file = graph.position.file if graph.position else "<program>"
        self.module = self.context.context.module(self._location(graph.position))

    # ---- What attributes are made of

    def string(self, text: str) -> Any:
        """A string attribute."""
        return self.context.context.string(text)

    def real(self, value: float) -> Any:
        """An f32 attribute, infinities and NaN too."""
        return self.context.native.float_(self.context.context.type("f32"), value)

    def spelled(self, type: Type) -> str:
        """A type as MLIR spells it."""
        if isinstance(type, str):
            return type
        dims = (spell(size, self.names) for size in type.sizes)
        quoted = ", ".join(d if d.isalnum() else f'"{d}"' for d in dims)
        return f"!attn.tensor<[{quoted}], {type.element.mlir}>"

    # ---- The program

    def emit(self) -> Any:
        """The module, verified. Raises CompilationError at the user's line."""
        self.context.context.take_diagnostics()
        graph = self.graph
        region = self.module.region([self._type(i.value.type) for i in graph.inputs], self._location(graph.position))
        for index, argument in enumerate(graph.inputs):
            argument.value.native = region.argument(index)
        self._fill(region, graph.body)
        self._inside(region, lambda: self._create("func.return", [v.native for _, v in graph.outputs]))
        self._create("func.func", [], [], self._attributes(), [region])
        if not self.module.verify():
            raise from_native("the program breaks a rule of the attn dialect", self.context.context.take_diagnostics())
        return self.module

    def _attributes(self) -> dict[str, Any]:
        graph = self.graph
        arguments = ", ".join(self.spelled(i.value.type) for i in graph.inputs)
        results = ", ".join(self.spelled(v.type) for _, v in graph.outputs)
        facts = ", ".join(f"{{{', '.join([*_facts(each), *self._starts(each)])}}}" for each in graph.inputs)
        given = ", ".join(f'{{attn.name = "{name}"}}' for name, _ in graph.outputs)
        required = ", ".join(dict.fromkeys(self._required(each) for each in graph.required if not each.settled))
        return {
            "sym_name": self.string(graph.name),
            "function_type": self._attribute(f"({arguments}) -> ({results})"),
            "attn.program": self.context.unit,
            **({"attn.requires": self._attribute(f"[{required}]")} if required else {}),
            "arg_attrs": self._attribute(f"[{facts}]"),
            "res_attrs": self._attribute(f"[{given}]"),
        }

    def _starts(self, argument: Input) -> list[str]:
        """That an input says where packed sequences start: of how many tokens, for the runtime to check."""
        tokens = [spell(size, self.names) for value, size in self.graph.starts if value is argument.value]
        spelled = ", ".join(f'"{each}"' for each in dict.fromkeys(tokens))
        return [f"attn.starts = [{spelled}]"] if tokens else []

    def _required(self, each: Requirement) -> str:
        size, least = (spell(one, self.names) for one in (each.size, each.at_least))
        return f'{{size = "{size}", at_least = "{least}", what = "{each.what}"}}'

    def _fill(self, region: Any, body: Iterable[Operation]) -> None:
        def each() -> None:
            for operation in body:
                self._operation(operation)

        self._inside(region, each)

    def _inside(self, region: Any, action: Any) -> None:
        outer, self.module.insertion = self.module.insertion, region.block
        action()
        self.module.insertion = outer

    def _operation(self, operation: Operation) -> None:
        regions = [self._region(region, operation.position) for region in operation.regions]
        attributes = {
            name: self._attribute(value) if isinstance(value, str) else value(self)
            for name, value in operation.attributes.items()
        }
        made = self._create(
            operation.name,
            [v.native for v in operation.operands],
            [self._type(v.type) for v in operation.results],
            attributes,
            regions,
            operation.position,
        )
        results = made if isinstance(made, tuple) else (made,)
        for value, native in zip(operation.results, results, strict=False):
            value.native = native

    def _region(self, region: Region, position: Position | None) -> Any:
        made = self.module.region([self._type(a.type) for a in region.arguments], self._location(position))
        for index, argument in enumerate(region.arguments):
            argument.native = made.argument(index)
        self._fill(made, region.body)
        return made

    def _create(
        self,
        name: str,
        operands: Sequence[Any] = (),
        results: Sequence[Any] = (),
        attributes: dict[str, Any] | None = None,
        regions: Sequence[Any] = (),
        position: Position | None = None,
    ) -> Any:
        where = self._location(position or self.graph.position)
        return self.module.create(name, where, operands, results, attributes or {}, regions)

    def _type(self, type: Type) -> Any:
        return self.context.context.type(self.spelled(type))

    def _attribute(self, text: str) -> Any:
        return self.context.attribute(text)

    def _location(self, position: Position | None) -> Any:
        if position is None:
            return self.context.context.location("<program>", 1, 1)
        return self.context.context.location(position.file, position.line, position.column)


def _facts(argument: Input) -> list[str]:
    """An input's attributes."""
    given = [f'attn.name = "{argument.name}"']
    given += ["attn.aligned"] if argument.aligned else []
    given += ["attn.constant"] if argument.constant else []
    return given


def _sizes(graph: Graph) -> list[Size]:
    """Every size that the program's types name, those of the inputs first."""
    values: list[Value] = [i.value for i in graph.inputs]

    def walk(body: Iterable[Operation]) -> None:
        for operation in body:
            values.extend(operation.results)
            for region in operation.regions:
                walk(region.body)

    walk(graph.body)
    return [size for value in values if isinstance(value.type, TensorType) for size in value.type.sizes]
