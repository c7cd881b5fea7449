# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Makes failing programs smaller, of whatever kind."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Program = TypeVar("Program")


def smallest(
    program: Program, smaller: Callable[[Program], Iterable[Program]], fails: Callable[[Program], bool]
) -> Program:
    """The smallest program found that still fails: the first of the smaller ones that does, and on from there."""
    while True:
        found = next(filter(fails, smaller(program)), None)
        if found is None:
            return program
        program = found
