# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Expressions: a syntax tree node to a value.

Constants stay Python values and are computed now; the rest becomes IR.
"""

from __future__ import annotations

import ast
import builtins
import operator
import types
from collections.abc import Callable
from typing import Any

from ..language import errors, operators
from ..language.errors import KernelError
from ..language.types import constexpr, describe, dtype, unwrap
from ..language.value import tensor
from .frame import usable_global
from .visitor import Visitor

SYMBOLS: dict[type, str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}

PYTHON: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
}

# Attributes of a tensor that are the front end's own.
_HIDDEN = ("handle", "constant")


def constant(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Compute with constants now; what Python raises becomes the kernel's error."""
    try:
        return unwrap(function(*arguments, **keywords))
    except KernelError:
        raise
    except Exception as error:
        raise errors.python_failure(error) from None


def _is_constant(value: Any) -> bool:
    """Whether a value that is no tensor is a constant, such as a type, and not a pointer to a block or a module."""
    return not isinstance(value, types.ModuleType) and not hasattr(value, "__weft_carried__")


def _is_same(left: Any, right: Any) -> bool:
    """What 'is' says of two constants: types are one object each in Python, numbers and texts as good as that."""
    alike = type(left) is type(right) and isinstance(left, (dtype, int, float, str))
    return left is right or (alike and bool(left == right))


class Expressions(Visitor):
    """The expressions that need no other function."""

    def visit_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, (bytes, complex)):
            raise errors.unsupported_syntax(f"a {type(node.value).__name__} literal", None)
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        return self.frame.lookup(node.id)

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self.elements(node.elts))

    visit_List = visit_Tuple

    def elements(self, nodes: list[ast.expr]) -> list[Any]:
        """The values of expressions, with ``*tuple`` spread."""
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self.expression(node.value)
                if not isinstance(inner, tuple):
                    raise self.located(errors.not_iterable(inner), node)
                values += inner
            else:
                values.append(self.expression(node))
        return values

    def visit_Starred(self, node: ast.Starred) -> Any:
        raise errors.unsupported_syntax("a starred expression here", None)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.expression(node.left), self.expression(node.right)
        self.at(node)
        return self.binary(node.op, left, right)

    def binary(self, kind: ast.operator, left: Any, right: Any) -> Any:
        """``left op right``: of constants by Python, else by the language."""
        if not isinstance(left, tensor) and not isinstance(right, tensor):
            if None in (left, right):
                raise errors.expected_value("an operand", None)
            return constant(PYTHON[type(kind)], left, right)
        symbol = SYMBOLS.get(type(kind))
        if symbol is None:
            remedy = "use wl.dot" if isinstance(kind, ast.MatMult) else "multiply, or use wl.exp2(y * wl.log2(x))"
            raise errors.unsupported_syntax(f"'{'@' if isinstance(kind, ast.MatMult) else '**'}' of tensors", remedy)
        return operators.BINARY[symbol](left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.expression(node.operand)
        self.at(node)
        if not isinstance(value, tensor):
            python: dict[type, Callable[[Any], Any]] = {
                ast.USub: operator.neg,
                ast.UAdd: operator.pos,
                ast.Invert: operator.invert,
                ast.Not: operator.not_,
            }
            return constant(python[type(node.op)], value)
        if isinstance(node.op, ast.UAdd):
            return value
        return {ast.USub: operators.neg, ast.Invert: operators.invert, ast.Not: operators.logical_not}[type(node.op)](
            value
        )

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """``and`` and ``or``: constants decide as in Python; of tensors all operands are computed."""
        is_and = isinstance(node.op, ast.And)
        result = self.expression(node.values[0])
        for operand in node.values[1:]:
            known = self.known(result)
            if known is not None:
                if known[0] != is_and:
                    return result
                result = self.expression(operand)
                continue
            value = self.expression(operand)
            self.at(node)
            other = None if isinstance(value, tensor) and value.shape else self.known(value)
            if other is None:
                result = (operators.logical_and if is_and else operators.logical_or)(result, value)
            elif other[0] != is_and:  # decides alone, so that what it guards is left out, as in Triton
                return value
        return result

    def known(self, value: Any) -> tuple[bool] | None:
        """The truth of a value known at compile time, in a tuple; None of one that is not."""
        if isinstance(value, tensor):
            return None if value.constant is None else (bool(value.constant),)
        return (bool(value),)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1:
            raise errors.unsupported_syntax(
                "a chained comparison", "write 'a < b and b < c', or '(a < b) & (b < c)' for blocks"
            )
        left, right, kind = self.expression(node.left), self.expression(node.comparators[0]), node.ops[0]
        self.at(node)
        if isinstance(kind, (ast.Is, ast.IsNot)):
            if isinstance(left, tensor) or isinstance(right, tensor):
                if not (left is None or right is None):
                    raise errors.unsupported_syntax("'is' of a tensor", "compare with '==', or test 'is None'")
                return PYTHON[type(kind)](left, right)
            return _is_same(left, right) == isinstance(kind, ast.Is)
        if isinstance(left, tensor) or isinstance(right, tensor):
            if isinstance(kind, (ast.In, ast.NotIn)):
                raise errors.unsupported_syntax("'in' of a tensor", "compare with '=='")
            if left is None or right is None:
                return isinstance(kind, ast.NotEq)
            return operators.compare(SYMBOLS[type(kind)], left, right)
        return constant(PYTHON[type(kind)], left, right)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        owner, name = self.expression(node.value), node.attr
        self.at(node)
        if isinstance(owner, tensor):
            is_named = name in operators.METHODS or not (name.startswith("_") or name in _HIDDEN)
            if not is_named or not hasattr(type(owner), name):
                public = [n for n in dir(tensor) if not n.startswith("_") and n not in _HIDDEN]
                raise errors.unknown_attribute(f"a tensor of type {describe(owner.type)}", name, public)
            return getattr(owner, name)
        if name == "value" and not hasattr(owner, name) and _is_constant(owner):
            return owner  # what was a constexpr in Triton is the constant itself here
        if not hasattr(owner, name):
            what = (
                f"the module '{owner.__name__}'" if isinstance(owner, types.ModuleType) else f"the constant {owner!r}"
            )
            raise errors.unknown_attribute(what, name, dir(owner))
        value = getattr(owner, name)
        if isinstance(owner, types.ModuleType):
            if owner.__name__ == "math" and isinstance(value, float):
                return value
            return usable_global(f"{owner.__name__}.{name}", value)
        return unwrap(value)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        owner, index = self.expression(node.value), self.expression(node.slice)
        self.at(node)
        if isinstance(owner, tensor):
            return owner[index]
        if isinstance(index, tensor) and index.constant is not None:
            index = index.constant
        if not hasattr(owner, "__getitem__"):
            raise errors.expected_value("what is indexed", owner)
        return constant(operator.getitem, owner, index)

    def visit_Slice(self, node: ast.Slice) -> Any:
        return builtins.slice(
            *(None if part is None else self.expression(part) for part in (node.lower, node.upper, node.step))
        )

    def visit_JoinedStr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.expression(part)) for part in node.values)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> str:
        value = self.expression(node.value)
        if isinstance(value, tensor):
            value = value.constant if value.constant is not None else value.type
        if node.conversion != -1:
            conversions: dict[int, Callable[[Any], str]] = {115: str, 114: repr, 97: ascii}
            value = conversions[node.conversion](value)
        return constant(format, value, self.expression(node.format_spec) if node.format_spec else "")

    def constant_of(self, value: Any) -> Any:
        """A value as the constant it is, or the value itself where it is none."""
        if isinstance(value, tensor) and value.constant is not None:
            return value.constant
        return value.value if isinstance(value, constexpr) else value
