# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loops. ``for`` over a range becomes ``scf.for`` and ``while`` becomes ``scf.while``: the variables that the body
assigns and that had a value before are
carried from one iteration to the next, and must keep their type. ``wl.static_range`` and tuples are unrolled.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ..language import control, errors, operators
from ..language.casts import convert
from ..language.literals import is_number, to_tensor
from ..language.promotion import promote_integers
from ..language.types import dtype, int1
from ..language.value import tensor
from .diagnostics import CompilationError
from .scope import Missing, assigned, only_advanced, returns
from .statements import Returned, Statements
from .structure import alike, as_variable, flatten, moving, rebuild, same_constant, same_structure


@dataclass(frozen=True)
class Carried:
    """A variable that a loop carries, with its value before the loop and the last statement of the body that assigns
    it.
    """

    name: str
    before: Any
    assignment: ast.stmt


class Loops(Statements):
    """``for`` and ``while``."""

    def loop(self, statement: ast.For | ast.While) -> Returned | None:
        """Visit a loop; gives what a ``return`` in it gave, None without one. Errors are at the loop."""
        self.at(statement)
        try:
            if statement.orelse:
                raise errors.unsupported_syntax("'else' after a loop", "test a flag after the loop")
            if isinstance(statement, ast.While):
                self._while(statement)
                return None
            return self._for(statement)
        except CompilationError:
            raise
        except errors.KernelError as error:
            raise self.located(error, statement) from None
        except Exception as error:
            raise self.located(errors.defect(error), statement) from error

    def _for(self, node: ast.For) -> Returned | None:
        iterator = self.expression(node.iter)
        self.at(node)
        if isinstance(iterator, control.static_range):
            return self._unrolled(node, list(range(iterator.start, iterator.end, iterator.step)))
        if isinstance(iterator, tuple):
            return self._unrolled(node, list(iterator))
        if not isinstance(iterator, control.range):
            raise self.located(errors.not_iterable(iterator), node.iter)
        self._counted(node, iterator)
        return None

    def _unrolled(self, node: ast.For, items: list[Any]) -> Returned | None:
        for item in items:
            self.assign_target(node.target, item)
            outcome = self.block(node.body)
            if outcome is not None:
                return outcome
        return None

    # ---- What a loop carries

    def carried(self, body: list[ast.stmt], line: int, but: str | None = None) -> list[Carried]:
        """The variables that the body assigns and that hold tensors before it.

        Those that hold something else have no value at its start.
        """
        found = []
        for name, statement in assigned(body).items():
            if name == but or name not in self.frame.variables:
                continue
            before = as_variable(self.frame.variables[name])
            if not only_advanced(body, name):
                before = moving(before)
            if isinstance(before, Missing):
                continue
            if flatten(before) is None:
                self.frame.variables[name] = Missing(_not_carried, name, before, line)
            else:
                found.append(Carried(name, before, statement))
        return found

    def after_iteration(self, carried: list[Carried]) -> list[tensor]:
        """The carried variables at the end of the body, which must have kept their types."""
        leaves: list[tensor] = []
        for variable in carried:
            after = as_variable(self.frame.variables.get(variable.name))
            if isinstance(after, Missing):
                raise self.located(after.error(), variable.assignment)
            _, after = alike(variable.before, after)
            if not same_structure(variable.before, after):
                raise self.located(
                    errors.changes_type_in_loop(variable.name, variable.before, after), variable.assignment
                )
            leaves += flatten(after) or []
        return leaves

    def set_carried(self, carried: list[Carried], values: list[tensor]) -> None:
        """Give the carried variables new values."""
        remaining = iter(values)
        for variable in carried:
            self.frame.variables[variable.name] = rebuild(variable.before, remaining)

    def leave(self, before: dict[str, Any], carried: list[Carried], results: list[tensor], line: int) -> None:
        """The variables after a loop: those before it, the carried ones changed; names that only the body assigns may
        have no value.
        """
        inside = self.frame.variables
        after = dict(before)
        for name, value in inside.items():
            if (
                name not in before
                or isinstance(value, Missing)
                or not (value is before[name] or same_constant(value, before[name]))
            ):
                after[name] = Missing(_only_in_loop, name, line)
        self.frame.variables = after
        self.set_carried(carried, results)

    # ---- for

    def _counted(self, node: ast.For, iterator: control.range) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.located(
                errors.unsupported_syntax("a loop variable that is no name", "loop over a single name"), node.target
            )
        if returns(node.body):
            raise self.located(errors.return_in_loop(), _first_return(node.body))
        lower, upper, step, backwards, kind = self._bounds(node, iterator)
        line = self.frame.source.position(node).line
        before = dict(self.frame.variables)
        carried = self.carried(node.body, line, but=node.target.id)
        initial = [leaf for variable in carried for leaf in flatten(variable.before) or []]
        types = [leaf.type for leaf in initial]
        initial_handles = [leaf.handle for leaf in initial]
        bounds = [lower.handle, upper.handle, step.handle]
        builder = self.builder
        with builder.region([kind, *types]) as region:
            counter = tensor(region.argument(0), kind)
            if backwards:  # counts up from the last bound: i = upper - counter + lower
                counter = operators.add(operators.sub(upper, counter), lower)
            self.assign(node.target.id, counter)
            self.set_carried(carried, [tensor(region.argument(i + 1), t) for i, t in enumerate(types)])
            self.block(node.body)
            values = self.after_iteration(carried)
            builder.op("scf.yield", [value.handle for value in values])
        self.at(node)
        attributes = {}
        if iterator.num_stages is not None:
            attributes["tile.num_stages"] = builder.i32(iterator.num_stages)
        made = builder.op("scf.for", [*bounds, *initial_handles], types, attributes, [region])
        handles = () if not types else (made,) if len(types) == 1 else made
        self.leave(before, carried, [tensor(handle, t) for handle, t in zip(handles, types, strict=True)], line)

    def _bounds(self, node: ast.For, iterator: control.range) -> tuple[tensor, tensor, tensor, bool, dtype]:
        """Lower bound, upper bound and step of one integer type; whether to count backwards."""
        step = self.constant_of(iterator.step)
        backwards = is_number(step) and step < 0
        start, end = iterator.start, iterator.end
        if is_number(step) and step == 0:
            raise self.located(errors.zero_step("the loop"), node.iter)
        if backwards:
            start, end, step = end, start, -step
        bounds = []
        for what, value in (("the start", start), ("the end", end), ("the step", step)):
            bound = to_tensor(value, f"{what} of the loop")
            if bound.shape or not bound.dtype.is_int():
                raise self.located(errors.loop_bound(what, bound), node.iter)
            bounds.append(bound)
        kind = promote_integers(promote_integers(bounds[0].dtype, bounds[1].dtype), bounds[2].dtype)
        lower, upper, by = (convert(bound, kind) for bound in bounds)
        return lower, upper, by, backwards, kind

    # ---- while

    def _while(self, node: ast.While) -> None:
        if returns(node.body):
            raise self.located(errors.return_in_loop(), _first_return(node.body))
        line = self.frame.source.position(node).line
        before = dict(self.frame.variables)
        carried = self.carried(node.body, line)
        initial = [leaf for variable in carried for leaf in flatten(variable.before) or []]
        types = [leaf.type for leaf in initial]
        handles = [leaf.handle for leaf in initial]
        builder, at_start = self.builder, dict(self.frame.variables)
        with builder.region(types) as test:
            arguments = [test.argument(i) for i in range(len(types))]
            self.set_carried(carried, [tensor(a, t) for a, t in zip(arguments, types, strict=True)])
            condition = self.condition(node.test)
            if condition is True:
                raise self.located(errors.endless_loop(), node.test)
            flag = builder.constant(False, int1) if condition is False else condition.handle
            builder.op("scf.condition", [flag, *arguments])
        self.frame.variables = at_start
        with builder.region(types) as body:
            self.set_carried(carried, [tensor(body.argument(i), t) for i, t in enumerate(types)])
            self.block(node.body)
            values = self.after_iteration(carried)
            builder.op("scf.yield", [value.handle for value in values])
        self.at(node)
        made = builder.op("scf.while", handles, types, {}, [test, body])
        results = () if not types else (made,) if len(types) == 1 else made
        self.leave(before, carried, [tensor(handle, t) for handle, t in zip(results, types, strict=True)], line)


def _first_return(statements: list[ast.stmt]) -> ast.AST:
    return next(node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Return))


def _only_in_loop(name: str, line: int) -> errors.KernelError:
    return errors.not_defined_here(
        name,
        f"it is assigned only inside of the loop at line {line}, which may not run",
        f"assign '{name}' before the loop",
    )


def _not_carried(name: str, before: Any, line: int) -> errors.KernelError:
    return errors.not_defined_here(
        name,
        f"it is {before!r} before the loop at line {line} and assigned inside of it",
        f"give '{name}' a tensor before the loop",
    )
