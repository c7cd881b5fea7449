# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches that are known again: what a call of a kernel became, under a key of its arguments that is made in one step.

``python/bindings/CallKeys.cpp`` says what a key has. A call without one, and one that follows a change of what the
kernel reads, goes the long way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import native
from .parameters import Parameter
from .reads import MISSING, Reads

_MOST = 512


class Launch(NamedTuple):
    """What a call became: a kernel on a device."""

    kernel: Any
    module: Any
    threads: int
    debug: bool


class Launches:
    """The launches of one kernel function that are known."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self._parameters = [(parameter.name, parameter.is_constexpr) for parameter in parameters]
        self._calls: Any = None
        self._launches: dict[int, Launch] = {}
        self._read: tuple[Reads, int, list[Any], list[Any]] | None = None  # with its generation
        self._made = 0

    def renew(self, reads: Reads | None) -> None:
        """Forget all: what the kernel reads is now that which ``reads`` met."""
        self._read = None
        self._launches = {}
        variables = None if reads is None else reads.variables
        if self._calls is None:
            self._calls = native.load("_runtime").KernelCalls(self._parameters, MISSING)
        self._made += 1
        self._calls.renew(self._made)
        if reads is not None and variables is not None:
            self._read = (reads, self._made, *variables)

    def find(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Launch, tuple[Any, ...]] | None:
        """The launch of a call that is known, and the values that it takes."""
        read = self._read
        if read is None:
            return None
        found = self._calls.find(read[1], args, keywords, read[2], read[3])
        launch = None if found is None else self._launches.get(found[0])
        return None if launch is None else (launch, found[1])

    def keep(
        self,
        reads: Reads | None,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        runtime: Sequence[int],
        launch: Launch,
    ) -> None:
        """Know a call again, which took ``reads``; ``runtime`` numbers the parameters that the kernel is launched
        with."""
        read = self._read
        if read is None or read[0] is not reads:
            return
        if len(self._launches) >= _MOST:
            self.renew(reads)
            return
        self._made += 1
        self._launches[self._made] = launch
        self._calls.keep(read[1], args, keywords, self._made, list(runtime))
