# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Calls: of the language's functions, of Python's own with constants, and of other @weft.jit functions, which are
inlined.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from .. import language
from ..language import control, errors, maths
from ..language.casts import cast
from ..language.literals import is_number
from ..language.types import block_type, constexpr, dtype, pointer_type, unwrap
from ..language.value import tensor
from .diagnostics import CompilationError
from .expressions import Expressions, constant
from .frame import Frame, is_jit

MAX_DEPTH = 64


class Calls(Expressions):
    """Function calls."""

    def visit_Call(self, node: ast.Call) -> Any:
        function = self.expression(node.func)
        arguments = self.elements(node.args)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.located(errors.unsupported_syntax("'**' in a call", "name the arguments"), keyword.value)
            keywords[keyword.arg] = self.expression(keyword.value)
        self.at(node)
        return self.apply(function, arguments, keywords, node)

    def apply(self, function: Any, arguments: list[Any], keywords: dict[str, Any], node: ast.AST | None = None) -> Any:
        """The value of a call."""
        if is_jit(function):
            return self.inline(function, arguments, keywords, node)
        if isinstance(function, constexpr):  # of a Python function, as @wl.constexpr makes them
            return self._call_with_constants(function.value, arguments, keywords)
        if function is constexpr:
            return self.constant_of(arguments[0])
        if isinstance(function, dtype):  # wl.float32(0.0)
            return self._call_checked(functools.partial(cast, dtype=function), str(function), arguments, keywords)
        if not callable(function):
            raise errors.not_callable(function)
        if function is dtype:
            return self._call_with_constants(function, arguments, keywords)
        if getattr(function, "__weft_builtin__", False):
            return self._call_checked(function, function.__name__, arguments, keywords)
        if getattr(function, "__weft_constexpr__", False) or getattr(function, "__module__", None) == math.__name__:
            return self._call_with_constants(function, arguments, keywords)
        if getattr(function, "__triton_builtin__", False):
            return self._call_triton_builtin(function, arguments, keywords)
        if isinstance(getattr(function, "__self__", None), (dtype, block_type, str, tuple, int, float)):
            return self._call_with_constants(function, arguments, keywords)  # a method of a constant
        if isinstance(function, type) and issubclass(function, tuple) and hasattr(function, "_fields"):
            return self._call_checked(function, function.__name__, arguments, keywords)  # a named tuple
        python = _PYTHON.get(function) if getattr(function, "__hash__", None) else None
        if python is not None:
            return self._call_checked(functools.partial(python, self), function.__name__, arguments, keywords)
        name = getattr(function, "__name__", repr(function))
        raise errors.plain_function(name, _in_language(name))

    def _call_checked(
        self, function: Callable[..., Any], name: str, arguments: list[Any], keywords: dict[str, Any]
    ) -> Any:
        """Call what computes a value; arguments that it does not take are the kernel's mistake."""
        try:
            return function(*arguments, **keywords)
        except TypeError:
            signature = inspect.signature(function)
            try:
                signature.bind(*arguments, **keywords)
            except TypeError as reason:
                raise errors.wrong_arguments(name, str(reason), plain_signature(signature)) from None
            raise

    def _call_with_constants(self, function: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> Any:
        arguments = [self.constant_of(a) for a in arguments]
        keywords = {name: self.constant_of(value) for name, value in keywords.items()}
        for index, value in enumerate([*arguments, *keywords.values()]):
            if isinstance(value, tensor):
                name = getattr(function, "__name__", "function")
                raise errors.constexpr_argument(
                    name,
                    list(keywords)[index - len(arguments)] if index >= len(arguments) else f"argument {index + 1}",
                    value,
                    getattr(function, "__module__", None) == math.__name__ and _in_language(name),
                )
        return constant(function, *arguments, **keywords)

    def _call_triton_builtin(self, function: Callable[..., Any], arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Call a function that its author has marked as one of Triton's own: it runs now, and its constants come as
        ``constexpr``."""
        given = [each if isinstance(each, tensor) else constexpr(unwrap(each)) for each in arguments]
        named = {name: each if isinstance(each, tensor) else constexpr(unwrap(each)) for name, each in keywords.items()}
        return unwrap(self._call_checked(function, getattr(function, "__name__", "function"), given, named))

    def inline(self, function: Any, arguments: list[Any], keywords: dict[str, Any], node: ast.AST | None) -> Any:
        """Visit a @weft.jit function's body here, with its parameters bound; gives what it returns."""
        if any(frame.function is function for frame in self.frames) or len(self.frames) > MAX_DEPTH:
            raise errors.recursion(function.__name__)
        frame = Frame(function, function.source, self.bind(function, arguments, keywords))
        builder, caller = self.builder, self.frame
        outer = (builder.file, builder.line, builder.column, builder.caller)
        builder.caller, builder.file = builder.location(), frame.source.file
        self.frames.append(frame)
        self.frame = frame
        try:
            return self.body(frame.source.tree.body)
        except CompilationError as error:
            place = caller.source.position(node) if node is not None else f"{outer[0]}:{outer[1]}:{outer[2]}"
            error.notes.append(f"in '{function.__name__}', called from {place}")
            raise
        finally:
            self.frames.pop()
            self.frame = caller
            builder.file, builder.line, builder.column, builder.caller = outer

    def bind(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """The variables a function starts with: its parameters, constants where they are annotated constexpr."""
        try:
            bound = function.signature.bind(*arguments, **keywords)
        except TypeError as reason:
            raise errors.wrong_arguments(function.__name__, str(reason), plain_signature(function.signature)) from None
        bound.apply_defaults()
        variables = {}
        for parameter in function.params:
            value = bound.arguments[parameter.name]
            value = value.value if isinstance(value, constexpr) else value
            if parameter.is_constexpr:
                value = self.constant_of(value)  # of a tensor, as in Triton, the tensor: what needs a constant says so
            variables[parameter.name] = value
        return variables

    def body(self, statements: list[ast.stmt]) -> Any:
        """Visit a function's statements; gives what they return, None without a return."""
        raise NotImplementedError


def _in_language(name: str) -> bool:
    return hasattr(getattr(language, name, None), "__weft_builtin__")


def plain_signature(signature: inspect.Signature) -> str:
    """A signature as the user would write it: names and defaults, no annotations."""
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(parameters))


def _minimum(visitor: Calls, *values: Any) -> Any:
    return _extremum(min, maths.minimum, values)


def _maximum(visitor: Calls, *values: Any) -> Any:
    return _extremum(max, maths.maximum, values)


def _extremum(python: Callable[..., Any], language: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    items = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
    if not any(isinstance(item, tensor) for item in items):
        return constant(python, *items)
    result = items[0]
    for item in items[1:]:
        result = language(result, item)
    return result


def _absolute(visitor: Calls, value: Any) -> Any:
    return maths.abs(value) if isinstance(value, tensor) else constant(abs, value)


def _length(visitor: Calls, value: Any) -> Any:
    if isinstance(value, tensor):
        if not value.shape:
            raise errors.rank_too_small("len", value, 1)
        return value.shape[0]
    return constant(len, value)


def _number(python: type, remedy: str) -> Callable[..., Any]:
    def convert(visitor: Calls, value: Any = 0) -> Any:
        value = visitor.constant_of(value)
        if isinstance(value, tensor):
            error = errors.tensor_as_python_value(python.__name__, value)
            error.remedy = remedy
            raise error
        return constant(python, value)

    return convert


def _range(visitor: Calls, *bounds: Any, **advice: Any) -> control.range:
    """Python's ``range``: a loop that runs on the device, with what ``wl.range`` takes by name."""
    if not 1 <= len(bounds) <= 3:
        raise errors.wrong_arguments("range", f"{len(bounds)} of them", "(stop) or range(start, stop, step=1)")
    return visitor._call_checked(control.range, "range", list(bounds), advice)


def _instance(visitor: Calls, value: Any, kind: Any) -> bool:
    given = kind if isinstance(kind, tuple) else (kind,)
    kinds = tuple(each for k in given for each in getattr(k, "__weft_instances__", (k,)))
    if constexpr in kinds and (is_number(value) or isinstance(value, str) or value is None):
        return True
    return isinstance(value, tuple(k for k in kinds if isinstance(k, type)))


def _attribute(visitor: Calls, value: Any, name: str, *default: Any) -> Any:
    return constant(getattr, value, name, *default)


_PYTHON: dict[Any, Callable[..., Any]] = {
    min: _minimum,
    max: _maximum,
    abs: _absolute,
    len: _length,
    int: _number(int, "convert with .to(wl.int32)"),
    float: _number(float, "convert with .to(wl.float32)"),
    bool: _number(bool, "convert with .to(wl.int1)"),
    isinstance: _instance,
    getattr: _attribute,
    hasattr: lambda visitor, value, name: hasattr(value, name),
    tuple: lambda visitor, value=(): tuple(value),
    list: lambda visitor, value=(): tuple(value),
    print: lambda visitor, prefix, *values, hex=False: control.device_print(prefix, *values, hex=hex),
    range: _range,
    pointer_type: lambda visitor, *arguments, **keywords: constant(pointer_type, *arguments, **keywords),
}
