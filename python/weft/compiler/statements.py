# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Statements: assignment, branches, return. Loops are in loops.py.

A branch whose condition is a constant is decided now. Any other becomes ``scf.if``, whose results are the variables
that its two sides leave
different. Where a side returns, what follows the ``if`` belongs to the sides: each is visited to the end of the
function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..language import control, errors, operators
from ..language.combine import to_scalar
from ..language.types import constexpr
from ..language.value import tensor
from .calls import Calls
from .scope import Missing, returns
from .structure import alike, as_variable, flatten, rebuild, same_constant, same_structure


@dataclass(frozen=True)
class Returned:
    """What a list of statements gave when it ran into a ``return``."""

    value: Any
    node: ast.AST | None = None


class Statements(Calls):
    """Every statement but loops."""

    def body(self, statements: list[ast.stmt]) -> Any:
        """Visit a function's statements; gives what it returns, None where it returns nothing."""
        outcome = self.block(statements)
        return outcome.value if outcome is not None else None

    def block(self, statements: Sequence[ast.stmt]) -> Returned | None:
        """Visit statements in order up to the first return; gives it, or None without one."""
        for index, statement in enumerate(statements):
            if isinstance(statement, ast.Return):
                return self._return(statement)
            if isinstance(statement, ast.If):
                done, outcome = self._if(statement, statements[index + 1 :])
                if done:
                    return outcome
            elif isinstance(statement, (ast.For, ast.While)):
                outcome = self.loop(statement)
                if outcome is not None:
                    return outcome
            else:
                self.statement(statement)
        return None

    def loop(self, statement: ast.For | ast.While) -> Returned | None:
        """Visit a loop; gives the return that an unrolled one ran into."""
        raise NotImplementedError

    def _return(self, node: ast.Return) -> Returned:
        value = None if node.value is None else self.expression(node.value)
        if len(self.frames) == 1 and value is not None:
            raise self.located(errors.kernel_returns(value), node)
        return Returned(value, node)

    # ---- Assignments

    def assign(self, name: str, value: Any) -> None:
        """Give a variable of the kernel a value; None makes it undefined."""
        self.frame.variables[name] = value

    def visit_Assign(self, node: ast.Assign) -> None:
        value = as_variable(self.expression(node.value))
        for target in node.targets:
            self.assign_target(target, value)

    def assign_target(self, target: ast.expr, value: Any) -> None:
        """Bind a name, or the parts of a tuple."""
        if isinstance(target, ast.Name):
            self.assign(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            if any(isinstance(element, ast.Starred) for element in target.elts):
                raise self.located(errors.unsupported_syntax("a starred target", "name every part"), target)
            if not isinstance(value, tuple) or len(value) != len(target.elts):
                raise self.located(errors.cannot_unpack(value, len(target.elts)), target)
            for element, part in zip(target.elts, value, strict=True):
                self.assign_target(element, part)
        elif isinstance(target, ast.Subscript):
            raise self.located(
                errors.unsupported_syntax(
                    "an assignment to an element", "make a new block with wl.where, or store through a pointer"
                ),
                target,
            )
        else:
            raise self.located(errors.unsupported_syntax("an assignment to an attribute", "assign to a name"), target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.assign_target(node.target, None)  # which says what is wrong with it
            return
        left, right = self.frame.lookup(node.target.id), self.expression(node.value)
        self.at(node)
        self.assign(node.target.id, as_variable(self.binary(node.op, left, right)))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None or not isinstance(node.target, ast.Name):
            raise errors.unsupported_syntax("an annotation without a value", "assign a value on the same line")
        value = self.expression(node.value)
        if self.is_constexpr_annotation(node.annotation):
            if node.target.id in self.frame.variables and not isinstance(self.frame.variables[node.target.id], Missing):
                raise errors.constexpr_reassigned(node.target.id)
            value = self.constant_of(value)
            if isinstance(value, tensor):
                raise errors.constexpr_argument(self.frame.function.__name__, node.target.id, value)
            self.assign(node.target.id, value)
        else:
            self.assign(node.target.id, as_variable(value))

    def is_constexpr_annotation(self, annotation: ast.expr) -> bool:
        """Whether an annotation is ``wl.constexpr``, also as text."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return annotation.value.split(".")[-1] == "constexpr"
        return self.expression(annotation) is constexpr

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.expression(node.value)

    def visit_Pass(self, node: ast.Pass) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        condition = self.expression(node.test)
        message = self.expression(node.msg) if node.msg is not None else ""
        self.at(node)
        if self.known(condition) is not None:
            control.static_assert(condition, message)
        else:
            control.device_assert(condition, message)

    # ---- Branches

    def condition(self, node: ast.expr) -> tensor | bool:
        """A condition: True or False where it is known, else a scalar int1."""
        value = self.expression(node)
        known = self.known(value)
        if known is not None:
            return known[0]
        if value.shape and value.numel != 1:
            raise self.located(errors.condition_not_scalar(value), node)
        self.at(node)
        if value.shape:
            value = to_scalar(value)
        return operators.as_bool(value, "the condition")

    def _if(self, node: ast.If, rest: Sequence[ast.stmt]) -> tuple[bool, Returned | None]:
        """Visit an ``if``; gives whether the rest was visited with it (or is dead), and the outcome then."""
        self.at(node)
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            outcome = self.block(node.body if condition else node.orelse)
            return outcome is not None, outcome
        self.at(node)
        if returns([node]):
            return True, self._branch_to_end(node, condition, rest)
        self.branch(node, condition, lambda: self.block(node.body), lambda: self.block(node.orelse))
        return False, None

    def side(self, visit: Callable[[], Any], variables: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        """Visit one side of a branch in a region of its own; gives the region, the variables after it and its
        result.
        """
        self.frame.variables = dict(variables)
        with self.builder.region([]) as region:
            result = visit()
        return region, self.frame.variables, result

    def branch(self, node: ast.AST, condition: tensor, then: Callable[[], Any], otherwise: Callable[[], Any]) -> None:
        """``scf.if`` whose results are the variables that differ between its sides."""
        before = self.frame.variables
        then_region, then_variables, _ = self.side(then, before)
        else_region, else_variables, _ = self.side(otherwise, before)
        line = self.frame.source.position(node).line
        merged, names = dict(before), []
        for name in {**then_variables, **else_variables}:
            a, b = then_variables.get(name), else_variables.get(name)
            if name not in then_variables or name not in else_variables:
                merged[name] = Missing(_only_in_one_branch, name, line)
            elif same_constant(a, b):
                merged[name] = a
            elif isinstance(a, Missing) or isinstance(b, Missing):
                merged[name] = a if isinstance(a, Missing) else b
            else:
                a, b = alike(as_variable(a), as_variable(b))
                if flatten(a) is None or not same_structure(a, b):
                    merged[name] = Missing(errors.differs_between_branches, name, a, b)
                else:
                    names.append((name, a, b))
        results = self.join(condition, (then_region, [a for _, a, _ in names]), (else_region, [b for _, _, b in names]))
        for (name, _, _), value in zip(names, results, strict=True):
            merged[name] = value
        self.frame.variables = merged

    def join(self, condition: tensor, then: tuple[Any, list[Any]], otherwise: tuple[Any, list[Any]]) -> list[Any]:
        """End both regions with their values, and make the ``scf.if``; gives the merged values."""
        builder = self.builder
        types: list[Any] = []
        for region, values in (then, otherwise):
            with builder.inside(region):
                leaves = [leaf for value in values for leaf in flatten(value) or []]
                builder.op("scf.yield", [leaf.handle for leaf in leaves])
            types = [leaf.type for leaf in leaves]
        made = builder.op("scf.if", [condition.handle], types, {}, [then[0], otherwise[0]])
        handles = () if not types else (made,) if len(types) == 1 else made
        leaves_iterator = iter([tensor(handle, t) for handle, t in zip(handles, types, strict=True)])
        return [rebuild(value, leaves_iterator) for value in then[1]]

    def _branch_to_end(self, node: ast.If, condition: tensor, rest: Sequence[ast.stmt]) -> Returned:
        """An ``if`` with a return in it: both sides run to the end of the function, and its value is what they
        return.
        """
        before = self.frame.variables
        then_region, _, then_outcome = self.side(lambda: self.block([*node.body, *rest]), before)
        else_region, _, else_outcome = self.side(lambda: self.block([*node.orelse, *rest]), before)
        self.frame.variables = before
        a, b = (as_variable(outcome.value) if outcome is not None else None for outcome in (then_outcome, else_outcome))
        a, b = alike(a, b)
        if a is None and b is None:
            self.join(condition, (then_region, []), (else_region, []))
            return Returned(None)
        if flatten(a) is None or flatten(b) is None or not same_structure(a, b):
            at = next((o.node for o in (else_outcome, then_outcome) if o is not None and o.node is not None), node)
            raise self.located(errors.returns_differ(a, b), at)
        return Returned(self.join(condition, (then_region, [a]), (else_region, [b]))[0])

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """``a if condition else b``: of a condition known now only one side is visited, else each in its branch."""
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.expression(node.body if condition else node.orelse)
        self.at(node)
        before = self.frame.variables
        then_region, _, a = self.side(lambda: self.expression(node.body), before)
        else_region, _, b = self.side(lambda: self.expression(node.orelse), before)
        self.frame.variables = before
        a, b = alike(as_variable(a), as_variable(b))
        if flatten(a) is None or flatten(b) is None or not same_structure(a, b):
            raise errors.differs_between_branches("the value of this expression", a, b)
        self.at(node)
        return self.join(condition, (then_region, [a]), (else_region, [b]))[0]


def _only_in_one_branch(name: str, line: int) -> errors.KernelError:
    reason = f"it is assigned in only one branch of the 'if' at line {line}"
    return errors.not_defined_here(name, reason, f"assign '{name}' before the 'if', or in both branches")
