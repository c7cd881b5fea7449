# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The walk over a function's syntax tree: dispatch, positions, and what turns a mistake into an error with a place."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from ..language import errors
from ..language.emit import Builder
from ..language.errors import KernelError
from .diagnostics import CompilationError
from .frame import Frame

# What Python has and the kernel language has not, and what to do instead.
UNSUPPORTED: dict[str, tuple[str, str | None]] = {
    "AsyncFor": ("'async for'", None),
    "AsyncFunctionDef": ("an 'async def'", None),
    "AsyncWith": ("'async with'", None),
    "Await": ("'await'", None),
    "ClassDef": ("a class", "define it outside of the kernel"),
    "Delete": ("'del'", "leave it out: registers are free when a value is used no more"),
    "Dict": ("a dictionary", "use names, or a tuple"),
    "DictComp": ("a dictionary comprehension", None),
    "FunctionDef": ("a function inside of a kernel", "define it outside and decorate it with @weft.jit"),
    "GeneratorExp": ("a generator expression", "write it in brackets, over a tuple or wl.static_range"),
    "Global": ("'global'", "return the value, or write it through a pointer"),
    "Import": ("'import'", "import at the top of the file"),
    "ImportFrom": ("'import'", "import at the top of the file"),
    "Lambda": ("a lambda", "define a function outside and decorate it with @weft.jit"),
    "Match": ("'match'", "write 'if' and 'elif'"),
    "Nonlocal": ("'nonlocal'", "return the value"),
    "Raise": ("'raise'", "use wl.static_assert or wl.device_assert"),
    "Set": ("a set", "use a tuple"),
    "SetComp": ("a set comprehension", None),
    "Try": ("'try'", "a kernel has no exceptions"),
    "With": ("'with'", "write its body without it: a kernel has no context managers"),
    "Yield": ("'yield'", None),
    "YieldFrom": ("'yield from'", None),
}


class Visitor:
    """State of the walk: the builder, and the functions it is in, innermost last."""

    def __init__(self, builder: Builder, frame: Frame):
        self.builder = builder
        self.frames = [frame]
        self.frame = frame
        self._methods: dict[type, Callable[[Any], Any]] = {}

    def at(self, node: ast.AST) -> None:
        """What is emitted next comes from this node."""
        builder, source = self.builder, self.frame.source
        builder.line = node.lineno + source.first_line - 1  # type: ignore[attr-defined]
        builder.column = node.col_offset + source.indent + 1  # type: ignore[attr-defined]

    def expression(self, node: ast.expr) -> Any:
        """The value of an expression."""
        try:
            return self._method(node)(node)
        except CompilationError:
            raise
        except KernelError as error:
            raise self.located(error, node) from None
        except Exception as error:
            raise self.located(errors.defect(error), node) from error

    def statement(self, node: ast.stmt) -> None:
        """Visit a statement that is neither ``if`` nor ``return``."""
        self.at(node)
        try:
            self._method(node)(node)
        except CompilationError:
            raise
        except KernelError as error:
            raise self.located(error, node) from None
        except Exception as error:
            raise self.located(errors.defect(error), node) from error

    def _method(self, node: ast.AST) -> Callable[[Any], Any]:
        method = self._methods.get(type(node))
        if method is None:
            name = type(node).__name__
            method = getattr(self, f"visit_{name}", None)
            if method is None:
                raise errors.unsupported_syntax(*UNSUPPORTED.get(name, (f"'{name}'", None)))
            self._methods[type(node)] = method
        return method

    def located(self, error: KernelError, node: ast.AST) -> CompilationError:
        """The error at a node; at the argument of a call that it names, if it names one."""
        source = self.frame.source
        if error.argument is not None and isinstance(node, ast.Call):
            node = self._argument_node(node, error.argument) or node
        position = source.position(node)
        return CompilationError(error.message, position, error.remedy, line=source.line(position), number=error.number)

    def _argument_node(self, call: ast.Call, name: str) -> ast.AST | None:
        """The expression that a call passes for a parameter."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        try:
            function = self.expression(call.func)
            names = list(inspect.signature(getattr(function, "fn", function)).parameters)
            index = names.index(name)
        except (CompilationError, ValueError, TypeError):
            return None
        return (
            call.args[index]
            if index < len(call.args) and not any(isinstance(a, ast.Starred) for a in call.args)
            else None
        )
