# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How a list of statements was left before its end: by ``return``, ``break`` or ``continue``, always or where the
program finds so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..language.casts import cast
from ..language.emit import current
from ..language.literals import to_tensor
from ..language.types import block_type, int64
from ..language.value import tensor
from .structure import flatten, rebuild


@dataclass(frozen=True)
class Exit:
    """What follows statements that were left. Each truth is known now, or one that the program computes."""

    goes_on: bool | tensor  # whether the loop goes on with its next iteration
    returned: bool | tensor = False  # whether the function ends
    value: Any = None  # what it returns then
    node: ast.AST | None = None

    @property
    def ends_iteration_alone(self) -> bool:
        """Whether the loop surely goes on."""
        return self.goes_on is True and self.returned is False

    def state(self) -> list[tensor]:
        """What the loop must know after the iteration: whether it goes on and, where it may return, whether it did and
        what."""
        if self.returned is False:
            return [to_tensor(self.goes_on)]
        return [to_tensor(self.goes_on), to_tensor(self.returned), *(flatten(self.value) or [])]

    def after_loop(self, state: list[tensor]) -> Exit | None:
        """What leaves the loop, by its state at the end; None where the function goes on in any case."""
        if self.returned is False:
            return None
        value = self.value if self.value is None else rebuild(self.value, iter(state[2:]))
        return Exit(False, state[1], value, self.node)


FELL_THROUGH = Exit(goes_on=True)


def zeros(value: Any) -> Any:
    """A value of the same structure, of zeros: for where there is none."""
    if value is None:
        return None
    return rebuild(value, iter([_zero(leaf) for leaf in flatten(value) or []]))


def _zero(leaf: tensor) -> tensor:
    if not leaf.dtype.is_ptr():
        return tensor(current().constant(0, leaf.type), leaf.type)
    wide = int64.with_shape(leaf.shape) if isinstance(leaf.type, block_type) else int64
    return cast(tensor(current().constant(0, wide), wide), leaf.dtype)


def leaves(statements: Iterable[ast.stmt]) -> bool:
    """Whether any of the statements may leave the list: a ``return`` anywhere, a ``break`` or ``continue`` of a loop
    around them."""
    return any(_leaving(statements, own_loops=True))


def _leaving(statements: Iterable[ast.stmt], own_loops: bool) -> Iterator[bool]:
    for statement in statements:
        if isinstance(statement, ast.Return):
            yield True
        elif isinstance(statement, (ast.Break, ast.Continue)):
            yield own_loops
        elif isinstance(statement, ast.If):
            yield from _leaving([*statement.body, *statement.orelse], own_loops)
        elif isinstance(statement, (ast.For, ast.While)):
            yield from _leaving(statement.body, own_loops=False)
