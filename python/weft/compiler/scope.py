# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Questions about a function's names: which a statement assigns, which globals the function reads."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..language.errors import KernelError
from .code import Names


class Missing:
    """Stands for a variable that may have no value, or no one type: reading it is the error that ``make`` makes."""

    __slots__ = ("arguments", "make")

    def __init__(self, make: Callable[..., KernelError], *arguments: Any):
        self.make, self.arguments = make, arguments

    def error(self) -> KernelError:
        """What is wrong with reading the variable."""
        return self.make(*self.arguments)


def assigned(
    statements: Iterable[ast.stmt], decided: Callable[[ast.expr], bool | None] = lambda test: None
) -> dict[str, ast.stmt]:
    """The names that statements assign, in order of first appearance, with the last statement that assigns each; but
    for those of branches that are not taken, where ``decided`` says of a condition whether it holds."""
    names: dict[str, ast.stmt] = {}
    for statement in statements:
        for name, where in _assignments(statement, decided):
            names[name] = where
    return names


def _assignments(statement: ast.stmt, decided: Callable[[ast.expr], bool | None]) -> Iterator[tuple[str, ast.stmt]]:
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr):
            yield from ((name, statement) for name in named_within(child))
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from ((name, statement) for name in _targets(target))
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        yield from ((name, statement) for name in _targets(statement.target))
    elif isinstance(statement, ast.For):
        yield from ((name, statement) for name in _targets(statement.target))
        yield from assigned(statement.body, decided).items()
    elif isinstance(statement, (ast.If, ast.While)):
        holds = decided(statement.test) if isinstance(statement, ast.If) else None
        if holds is not False:
            yield from assigned(statement.body, decided).items()
        if holds is not True:
            yield from assigned(statement.orelse, decided).items()


@functools.lru_cache(4096)
def named_within(expression: ast.expr) -> tuple[str, ...]:
    """The names to which an expression gives values by ``:=``. Every loop around it asks, twice."""
    return tuple(node.target.id for node in ast.walk(expression) if isinstance(node, ast.NamedExpr))


def _targets(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _targets(element)
    elif isinstance(target, ast.Starred):
        yield from _targets(target.value)


def only_advanced(statements: Iterable[ast.stmt], name: str) -> bool:
    """Whether every assignment of a name in statements is of the form ``name = ....advance(name, ...)``."""
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                if not all(
                    _advances(value, name) for target in node.targets for value in _given(target, node.value, name)
                ):
                    return False
            elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)) and name in _targets(
                node.target
            ):
                return False
    return True


def _given(target: ast.expr, value: ast.expr | None, name: str) -> Iterator[ast.expr | None]:
    """What an assignment gives a name; None where the source does not show it."""
    if isinstance(target, ast.Name):
        if target.id == name:
            yield value
    elif isinstance(target, (ast.Tuple, ast.List)):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts) else None
        for index, part in enumerate(target.elts):
            yield from _given(part, parts[index] if parts else None, name)
    elif name in _targets(target):
        yield None


def _advances(call: ast.expr | None, name: str) -> bool:
    if not (isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Name)):
        return False
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return function == "advance" and call.args[0].id == name


def names(tree: ast.FunctionDef, variables: Iterable[str]) -> Names:
    """The names that a function's source reads and that are none of its variables, and those of attributes: also text,
    for getattr."""
    own = set(variables)
    found: dict[str, None] = {}
    attributes: set[str] = set()
    looked_at: set[ast.AST] = set()
    bare: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            attributes.add(node.attr)
            looked_at.add(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            attributes.add(node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own:
            found[node.id] = None
            if node not in looked_at:  # ast.walk comes to what holds a node before the node
                bare.add(node.id)
    return Names(tuple(found), frozenset(attributes), frozenset(bare), imports=False)
