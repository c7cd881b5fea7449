# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Statements: assignment, return, and lists of statements. Branches are in branches.py, loops in loops.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from .. import language
from ..language import control, errors
from ..language.block_pointers import block_pointer
from ..language.emit import current
from ..language.types import constexpr
from ..language.value import tensor
from .branches import Branches
from .exits import Exit, leaves
from .scope import Missing
from .structure import as_variable

# Functions that do more than give a value, or whose functions may; and promises.
_ACTS = re.compile(r"load|atomic_|inline_asm|map_elementwise|reduce|associative_scan|multiple_of|max_con|expect_zero")


class Statements(Branches):
    """Every statement but loops."""

    def body(self, statements: list[ast.stmt]) -> Any:
        """Visit a function's statements; gives what it returns, None where it returns nothing."""
        outcome = self.block(statements)
        return outcome.value if outcome is not None else None

    def block(self, statements: Sequence[ast.stmt]) -> Exit | None:
        """Visit statements in order up to the first that leaves the list; gives how, None at the end."""
        for index, statement in enumerate(statements):
            rest = statements[index + 1 :]
            if isinstance(statement, ast.Return):
                return self._return(statement)
            if isinstance(statement, (ast.Break, ast.Continue)):
                return Exit(goes_on=isinstance(statement, ast.Continue), node=statement)
            if isinstance(statement, ast.If):
                done, outcome = self._if(statement, rest)
                if done:
                    return outcome
            elif isinstance(statement, (ast.For, ast.While)):
                outcome = self.loop(statement)
                if outcome is not None:
                    return self._after_loop(statement, outcome, rest)
            else:
                self.statement(statement)
        return None

    def inner(self, statements: Sequence[ast.stmt]) -> Exit | None:
        """Visit the statements of a loop or a branch: what they promise of a variable that they do not assign is said
        of values within it, and ends with it."""
        frame = self.frame
        outer, frame.promises = frame.promises, []
        outcome = self.block(statements)
        for name, promised, before in reversed(frame.promises):
            if frame.variables.get(name) is promised:
                frame.variables[name] = before
        frame.promises = outer
        return outcome

    def loop(self, statement: ast.For | ast.While) -> Exit | None:
        """Visit a loop; gives the return in it that the function may end with."""
        raise NotImplementedError

    def _after_loop(self, loop: ast.stmt, outcome: Exit, rest: Sequence[ast.stmt]) -> Exit | None:
        """What follows a loop in which the function may have returned."""
        if outcome.returned is True:
            return outcome
        self.at(loop)
        ended = Exit(False, True, outcome.value, outcome.node)
        return self.branch_out(loop, outcome.returned, lambda: ended, lambda: self.inner(rest))

    def _return(self, node: ast.Return) -> Exit:
        value = None if node.value is None else self.expression(node.value)
        if len(self.frames) == 1 and value is not None:
            raise self.located(errors.kernel_returns(value), node)
        return Exit(False, True, value, node)

    def _if(self, node: ast.If, rest: Sequence[ast.stmt]) -> tuple[bool, Exit | None]:
        """Visit an ``if``; gives whether the rest was visited with it (or is dead), and the outcome then."""
        self.at(node)
        condition = self.condition(node.test)
        out = leaves([node])
        if isinstance(condition, bool):
            chosen = node.body if condition else node.orelse
            return (True, self.block([*chosen, *rest])) if out else (False, self.block(chosen))
        self.at(node)
        if out:
            then, otherwise = [*node.body, *rest], [*node.orelse, *rest]
            return True, self.branch_out(node, condition, lambda: self.inner(then), lambda: self.inner(otherwise))
        self.branch(node, condition, lambda: self.inner(node.body), lambda: self.inner(node.orelse))
        return False, None

    # ---- Assignments

    def assign(self, name: str, value: Any) -> None:
        """Give a variable of the kernel a value; None makes it undefined."""
        self.frame.variables[name] = value

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.expression(node.value)
        variable = as_variable(value)
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.frame.declared:
                self.assign_constant(target.id, value)
            else:
                self.assign_target(target, variable)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.visit_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))
        return self.frame.lookup(node.target.id)

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
        if not isinstance(node.target, ast.Name):
            raise errors.unsupported_syntax("an annotation of something that is no name", "leave it out")
        name, is_constant = node.target.id, self.is_constexpr_annotation(node.annotation)
        if node.value is None:  # of what a later line assigns
            if is_constant:
                self.frame.declared.add(name)
            return
        value = self.expression(node.value)
        if is_constant:
            self.assign_constant(name, value)
        else:
            self.assign(name, as_variable(value))

    def assign_constant(self, name: str, value: Any) -> None:
        """Give a name that is annotated constexpr its value. What is computed when the kernel runs stays that, as in
        Triton."""
        if name in self.frame.variables and not isinstance(self.frame.variables[name], Missing):
            raise errors.constexpr_reassigned(name)
        self.frame.declared.discard(name)
        self.assign(name, self.constant_of(value))

    def is_constexpr_annotation(self, annotation: ast.expr) -> bool:
        """Whether an annotation is ``wl.constexpr``, also as text."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return annotation.value.split(".")[-1] == "constexpr"
        return self.expression(annotation) is constexpr

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            value = self.expression(node.value)
            if isinstance(value, tensor) and value.handle in current().promised:
                self.keep_promise(node.value, value)
            elif isinstance(node.value, ast.Call) and isinstance(value, (tensor, block_pointer)):
                self.note_unused(node.value, value)

    def note_unused(self, call: ast.Call, value: Any) -> None:
        """A call of the language that does nothing but give a value, which goes nowhere: values do not change."""
        spelled = ast.unparse(call.func)
        name = spelled.rpartition(".")[2]
        if isinstance(value, block_pointer):
            raise errors.unused_pointer(spelled)
        if name == "to" or (hasattr(getattr(language, name, None), "__weft_builtin__") and not _ACTS.match(name)):
            current().warn(f"the result of '{spelled}' is not used: values do not change, so assign it or leave it out")

    def keep_promise(self, call: ast.expr, promised: tensor) -> None:
        """A promise on a variable, as a statement, holds for the variable from there on, as in Triton."""
        named = call.args[0] if isinstance(call, ast.Call) and call.args else None
        if isinstance(named, ast.Name):
            self.frame.promises.append((named.id, promised, self.frame.variables.get(named.id)))
            self.assign(named.id, promised)
        else:
            name = current().promised[promised.handle]
            current().warn(f"'{name}' of what a loop carries holds for its result, which is not used: assign it")

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
