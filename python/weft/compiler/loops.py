# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loops. ``for`` over a range becomes ``scf.for`` and ``while`` becomes ``scf.while``: the variables that the body
assigns and that had a value before are carried from one iteration to the next, and must keep their type.
``wl.static_range`` and tuples are unrolled.

A loop that is left in the middle carries besides whether it goes on, and what the function returns: ``for`` is
``scf.while`` then. Iterations that are unrolled run each under that condition.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any

from ..language import control, errors, operators
from ..language.casts import convert
from ..language.literals import is_number, to_tensor
from ..language.promotion import promote_integers
from ..language.types import dtype, int1
from ..language.value import tensor
from .diagnostics import CompilationError
from .exits import FELL_THROUGH, Exit, zeros
from .scope import Missing, assigned, named_within, only_advanced
from .statements import Statements
from .structure import alike, as_variable, flatten, moving, rebuild, same_constant, same_structure

# What a condition that is known before it is reached is written with, besides 'and' and 'or'.
_OF_CONSTANTS = (
    *(ast.Attribute, ast.BinOp, ast.Compare, ast.Constant, ast.UnaryOp),
    *(ast.cmpop, ast.expr_context, ast.operator, ast.unaryop),
)


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

    def loop(self, statement: ast.For | ast.While) -> Exit | None:
        """Visit a loop; gives the return in it that the function may end with. Errors are at the loop."""
        self.at(statement)
        try:
            if statement.orelse:
                raise errors.unsupported_syntax("'else' after a loop", "test a flag after the loop")
            return self._while(statement) if isinstance(statement, ast.While) else self._for(statement)
        except CompilationError:
            raise
        except errors.KernelError as error:
            raise self.located(error, statement) from None
        except Exception as error:
            raise self.located(errors.defect(error), statement) from error

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        """``[f(x) for x in values if g(x)]`` of a tuple or ``static_range``: unrolled, a tuple here. Its names are its
        own, as in Python."""
        before = self.frame.variables
        if any(named_within(node)):
            raise errors.unsupported_syntax("':=' in a comprehension", "assign in a statement of its own")
        self.frame.variables = dict(before)
        try:
            return tuple(self._comprehended(node.elt, node.generators))
        finally:
            self.frame.variables = before

    def _comprehended(self, element: ast.expr, generators: list[ast.comprehension]) -> Iterator[Any]:
        """The values of an element for all that the generators, the outermost first, give."""
        if not generators:
            yield self.expression(element)
            return
        outer, *inner = generators
        items = _known_items(self.expression(outer.iter))
        if items is None:
            remedy = "write it over a tuple or wl.static_range"
            raise self.located(
                errors.unsupported_syntax("a comprehension of what is not known now", remedy), outer.iter
            )
        for item in items:
            self.assign_target(outer.target, item)
            wanted = [self.condition(test) for test in outer.ifs]
            for truth, test in zip(wanted, outer.ifs, strict=True):
                if isinstance(truth, tensor):
                    raise self.located(
                        errors.unsupported_syntax("a comprehension's 'if' of a tensor", "use wl.where"), test
                    )
            if all(wanted):
                yield from self._comprehended(element, inner)

    def _for(self, node: ast.For) -> Exit | None:
        iterator = self.expression(node.iter)
        self.at(node)
        items = _known_items(iterator)
        if items is not None:
            return self._unrolled(node, items)
        if not isinstance(iterator, control.range):
            raise self.located(errors.not_iterable(iterator), node.iter)
        return self._counted(node, iterator)

    def _unrolled(self, node: ast.For, items: list[Any]) -> Exit | None:
        """Every iteration by itself; under a condition where one before it may have left the loop."""
        left = FELL_THROUGH
        for item in items:
            if isinstance(left.goes_on, tensor):
                self.at(node)
                ended = Exit(False, left.returned, left.value, left.node)
                runs = functools.partial(self._with, node, item)
                left = self.branch_in_loop(node, left.goes_on, runs, functools.partial(_as_it_is, ended))
            else:
                left = self._with(node, item)
            if left.goes_on is False:
                break
        return None if left.returned is False else left

    def _with(self, node: ast.For, item: Any) -> Exit:
        self.assign_target(node.target, item)
        return self.iteration(node.body)

    def iteration(self, body: list[ast.stmt]) -> Exit:
        """Visit a loop's body; gives how it is left."""
        self.frame.loops += 1
        outcome = self.inner(body) or FELL_THROUGH
        self.frame.loops -= 1
        if outcome.returned is not False and outcome.value is not None:
            value = as_variable(outcome.value)
            if flatten(value) is None:
                raise self.located(errors.returns_differ(value, value), outcome.node or body[0])
            return Exit(outcome.goes_on, outcome.returned, value, outcome.node)
        return outcome

    # ---- What a loop carries

    def carried(self, body: list[ast.stmt], line: int, but: str | None = None) -> list[Carried]:
        """The variables that the body assigns and that hold tensors before it.

        Those that hold something else have no value at its start. What branches assign that are not taken is kept.
        """
        found = []
        changing = assigned(body)
        for name, statement in assigned(body, lambda test: self.decided(test, changing)).items():
            if name == but or name not in self.frame.variables:
                continue
            before = as_variable(self.frame.variables[name])
            if type(before) is not tensor and not only_advanced(body, name):
                before = moving(before)
            if isinstance(before, Missing):
                continue
            if flatten(before) is None:
                self.frame.variables[name] = Missing(_not_carried, name, before, line)
            else:
                found.append(Carried(name, before, statement))
        return found

    def decided(self, test: ast.expr, changing: Container[str]) -> bool | None:
        """Whether a condition of constants holds; None where it has others, or names that are ``changing``."""
        if isinstance(test, ast.BoolOp):
            ends = isinstance(test.op, ast.Or)
            for part in test.values:
                holds = self.decided(part, changing)
                if holds is None or holds is ends:
                    return holds
            return not ends
        identity = isinstance(test, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops)
        for node in ast.walk(test):
            if isinstance(node, ast.Name):
                held = self.frame.variables.get(node.id)
                if node.id in changing or (isinstance(held, (tensor, tuple)) and not identity):
                    return None
            elif not isinstance(node, _OF_CONSTANTS):
                return None
        try:
            known = self.condition(test)
        except (CompilationError, errors.KernelError):
            return None  # an error where it is, if it is reached
        return known if isinstance(known, bool) else None

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

    def _counted(self, node: ast.For, iterator: control.range) -> Exit | None:
        if not isinstance(node.target, ast.Name):
            raise self.located(
                errors.unsupported_syntax("a loop variable that is no name", "loop over a single name"), node.target
            )
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
            shown = counter
            if backwards:  # counts up from the last bound: i = upper - counter + lower
                shown = operators.add(operators.sub(upper, counter), lower)
            self.assign(node.target.id, shown)
            self.set_carried(carried, [tensor(region.argument(i + 1), t) for i, t in enumerate(types)])
            left = self.iteration(node.body)
            values = self.after_iteration(carried)
            if left.ends_iteration_alone:
                builder.op("scf.yield", [value.handle for value in values])
            else:
                values = [operators.add(counter, step), *values]
        self.at(node)
        if left.ends_iteration_alone:
            attributes = {}
            if iterator.num_stages is not None:
                attributes["tile.num_stages"] = builder.i32(iterator.num_stages)
            if iterator.loop_unroll_factor is not None:
                attributes["tile.unroll_factor"] = builder.i32(iterator.loop_unroll_factor)
            if iterator.warp_specialize:
                attributes["tile.warp_specialize"] = builder.native.unit
            results = builder.op("scf.for", [*bounds, *initial_handles], types, attributes, [region])
            self.leave(before, carried, _tensors(results, types), line)
            return None

        def in_range(state: list[tensor]) -> tensor:
            return operators.compare("<", state[0], upper)

        results = self._until_left(region, left, [lower, *initial], values, in_range)
        self.leave(before, carried, results[1 : 1 + len(types)], line)
        return left.after_loop(results[1 + len(types) :])

    def _until_left(
        self, body: Any, left: Exit, initial: list[tensor], values: list[tensor], test: Callable[[list[tensor]], Any]
    ) -> list[tensor]:
        """``scf.while`` around a body that may leave it. What it carries, ``initial`` at first and ``values`` after an
        iteration, is followed by the state of ``left``. ``test`` is asked of what is carried while the loop goes on."""
        builder = self.builder
        with builder.inside(body):
            state = left.state()
            builder.op("scf.yield", [value.handle for value in [*values, *state]])
        types = [value.type for value in [*values, *state]]
        builder.extend(body, [value.type for value in state])
        start = [to_tensor(True), to_tensor(False)][: len(state)] + (
            flatten(zeros(left.value)) or [] if len(state) > 2 else []
        )
        with builder.region(types) as before:
            arguments = [tensor(before.argument(i), t) for i, t in enumerate(types)]
            goes_on = arguments[len(values)]
            with builder.region([]) as asked:
                found = test(arguments[: len(values)])
                builder.op("scf.yield", [to_tensor(found).handle])
            with builder.region([]) as not_asked:
                builder.op("scf.yield", [builder.constant(False, int1)])
            flag = builder.op("scf.if", [goes_on.handle], [int1], {}, [asked, not_asked])
            builder.op("scf.condition", [flag, *(a.handle for a in arguments)])
        made = builder.op("scf.while", [v.handle for v in [*initial, *start]], types, {}, [before, body])
        return _tensors(made, types)

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

    def _while(self, node: ast.While) -> Exit | None:
        if any(named_within(node.test)):
            node = _tested_inside(node)
        line = self.frame.source.position(node).line
        before = dict(self.frame.variables)
        carried = self.carried(node.body, line)
        initial = [leaf for variable in carried for leaf in flatten(variable.before) or []]
        types = [leaf.type for leaf in initial]
        handles = [leaf.handle for leaf in initial]
        builder, at_start = self.builder, dict(self.frame.variables)

        def test(state: list[tensor]) -> tensor | bool:
            self.frame.variables = dict(at_start)
            self.set_carried(carried, state)
            return self.condition(node.test)

        with builder.region(types) as body:
            self.set_carried(carried, [tensor(body.argument(i), t) for i, t in enumerate(types)])
            left = self.iteration(node.body)
            values = self.after_iteration(carried)
            if left.ends_iteration_alone:
                builder.op("scf.yield", [value.handle for value in values])
        inside = self.frame.variables
        self.at(node)
        if left.ends_iteration_alone:
            with builder.region(types) as tested:
                arguments = [tensor(tested.argument(i), t) for i, t in enumerate(types)]
                condition = test(arguments)
                if condition is True:
                    raise self.located(errors.endless_loop(), node.test)
                builder.op("scf.condition", [to_tensor(condition).handle, *(a.handle for a in arguments)])
            results = _tensors(builder.op("scf.while", handles, types, {}, [tested, body]), types)
        else:
            results = self._until_left(body, left, initial, values, test)
        self.frame.variables = inside
        self.leave(before, carried, results[: len(types)], line)
        return left.after_loop(results[len(types) :])


def _tested_inside(node: ast.While) -> ast.While:
    """A loop that tests in its body, so that what its test assigns is a variable like others."""
    test = ast.If(node.test, node.body, [ast.Break()])
    loop = ast.copy_location(ast.While(ast.Constant(True), [ast.copy_location(test, node)], []), node)
    return ast.fix_missing_locations(loop)


def _as_it_is(ended: Exit) -> Exit:
    return ended


def _tensors(made: Any, types: list[Any]) -> list[tensor]:
    """The results of an operation."""
    handles = () if not types else (made,) if len(types) == 1 else made
    return [tensor(handle, t) for handle, t in zip(handles, types, strict=True)]


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


def _known_items(values: Any) -> list[Any] | None:
    """What a loop that is unrolled runs over; None of one that runs on the device, and of what is no loop."""
    if isinstance(values, control.static_range):
        return list(range(values.start, values.end, values.step))
    return list(values) if isinstance(values, tuple) else None
