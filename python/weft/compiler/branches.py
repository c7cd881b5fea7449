# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Branches. One whose condition is a constant is decided now. Any other becomes ``scf.if``, whose results are the
variables that its two sides leave different.

Where a side returns, or leaves an iteration, what follows the ``if`` belongs to the sides: each is visited to the end
of the function, or of the loop's body. So a guard (``if c: continue``) costs one branch.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ..language import errors, operators
from ..language.combine import to_scalar
from ..language.literals import to_tensor
from ..language.value import tensor
from .calls import Calls
from .exits import FELL_THROUGH, Exit, zeros
from .scope import Missing
from .structure import alike, as_variable, flatten, rebuild, same_constant, same_structure

# A side of a branch that was visited: its region, the variables after it, and its result.
Side = tuple[Any, dict[str, Any], Any]
Pair = tuple[Any, Any]


class Branches(Calls):
    """``if``, and expressions with conditions."""

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
        sides = self.side(then, before), self.side(otherwise, before)
        self.frame.variables = before
        self.merge(node, condition, *sides, [])

    def merge(self, node: ast.AST, condition: tensor, then: Side, otherwise: Side, others: list[Pair]) -> list[Any]:
        """End both sides of a branch: variables hold what either left in them. Gives what ``others``, values of the two
        sides, become."""
        line = self.frame.source.position(node).line
        merged, names, pairs = dict(self.frame.variables), [], []
        for name in {**then[1], **otherwise[1]}:
            a, b = then[1].get(name), otherwise[1].get(name)
            if name not in then[1] or name not in otherwise[1]:
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
                    names.append(name)
                    pairs.append((a, b))
        pairs += others
        results = self.join(condition, (then[0], [a for a, _ in pairs]), (otherwise[0], [b for _, b in pairs]))
        merged.update(zip(names, results, strict=False))
        self.frame.variables = merged
        return results[len(names) :]

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

    def branch_out(
        self,
        node: ast.AST,
        condition: Any,
        then: Callable[[], Exit | None],
        otherwise: Callable[[], Exit | None],
    ) -> Exit:
        """A branch whose sides go to the end of the function, or of the loop's body: gives how that was left."""
        if self.frame.loops:
            return self.branch_in_loop(node, condition, then, otherwise)
        before = self.frame.variables
        then_region, _, then_outcome = self.side(then, before)
        else_region, _, else_outcome = self.side(otherwise, before)
        self.frame.variables = before
        a, b = (as_variable(outcome.value) if outcome is not None else None for outcome in (then_outcome, else_outcome))
        a, b = self._one_type(node, (a, then_outcome), (b, else_outcome))
        if a is None:
            self.join(condition, (then_region, []), (else_region, []))
            return Exit(False, True)
        return Exit(False, True, self.join(condition, (then_region, [a]), (else_region, [b]))[0])

    def branch_in_loop(
        self,
        node: ast.AST,
        condition: tensor,
        then: Callable[[], Exit | None],
        otherwise: Callable[[], Exit | None],
    ) -> Exit:
        """A branch whose sides go to the end of an iteration. Each gives how it was left, and both do together."""
        before = self.frame.variables
        sides = self.side(then, before), self.side(otherwise, before)
        self.frame.variables = before
        a, b = (side[2] or FELL_THROUGH for side in sides)
        others = self._values(node, a, b, sides[0][0], sides[1][0])
        truths = [(a.goes_on, b.goes_on), (a.returned, b.returned)]
        unknown = [not (isinstance(p, bool) and p is q) for p, q in truths]
        pairs = [(to_tensor(p), to_tensor(q)) for (p, q), wanted in zip(truths, unknown, strict=True) if wanted]
        results = iter(self.merge(node, condition, *sides, [*pairs, *others]))
        goes_on, returned = (next(results) if wanted else p for (p, _), wanted in zip(truths, unknown, strict=True))
        return Exit(goes_on, returned, next(results, None), b.node if a.returned is False else a.node)

    def _values(self, node: ast.AST, a: Exit, b: Exit, then: Any, otherwise: Any) -> list[Pair]:
        """What the two sides of a branch in a loop return, zeros where one does not; nothing where they return no
        value."""
        x, y = as_variable(a.value), as_variable(b.value)
        if a.returned is False and b.returned is not False:
            x, y = self._one_type(node, (y, b), (y, b))
            with self.builder.inside(then):
                x = zeros(x)
        elif b.returned is False and a.returned is not False:
            x, y = self._one_type(node, (x, a), (x, a))
            with self.builder.inside(otherwise):
                y = zeros(y)
        else:
            x, y = self._one_type(node, (x, a), (y, b))
        return [] if x is None else [(x, y)]

    def _one_type(self, node: ast.AST, *ends: tuple[Any, Exit | None]) -> tuple[Any, Any]:
        """What two ends return, which must be of one type."""
        (a, first), (b, second) = ends
        a, b = alike(a, b)
        if a is None and b is None:
            return None, None
        if flatten(a) is None or flatten(b) is None or not same_structure(a, b):
            at = next((o.node for o in (second, first) if o is not None and o.node is not None), node)
            raise self.located(errors.returns_differ(a, b), at)
        return a, b

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """``a if condition else b``: of a condition known now only one side is visited, else each in its branch."""
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.expression(node.body if condition else node.orelse)
        self.at(node)
        before = self.frame.variables
        then = self.side(lambda: self.expression(node.body), before)
        otherwise = self.side(lambda: self.expression(node.orelse), before)
        self.frame.variables = before
        a, b = alike(as_variable(then[2]), as_variable(otherwise[2]))
        nothing = a is None and b is None  # both sides are calls that give nothing
        if not nothing and (flatten(a) is None or flatten(b) is None or not same_structure(a, b)):
            raise errors.differs_between_branches("the value of this expression", a, b)
        self.at(node)
        results = self.merge(node, condition, then, otherwise, [] if nothing else [(a, b)])
        return None if nothing else results[0]


def _only_in_one_branch(name: str, line: int) -> errors.KernelError:
    reason = f"it is assigned in only one branch of the 'if' at line {line}"
    return errors.not_defined_here(name, reason, f"assign '{name}' before the 'if', or in both branches")
