# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Launches with descriptors made on the host that are known again.

A descriptor's array, sizes and strides are arguments like others. What is left of descriptors, their blocks' sizes and
padding, makes a *form* of calls, and each form has its own known launches.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ..runtime.descriptors import TensorDescriptor
from .known import Launch, Launches
from .parameters import Parameter
from .reads import Reads
from .specialise import compared, token

_MOST_FORMS = 64
_CONSTANTS = (".block_shape", ".padding")  # of a descriptor's parts


class Unpacked(NamedTuple):
    """A call with the parts of its descriptors in their place; constants are in ``form`` alone."""

    form: Hashable
    args: tuple[Any, ...]
    keywords: dict[str, Any]


def _unpack(value: TensorDescriptor) -> tuple[tuple[Any, ...], list[Any]]:
    shape, strides = value.shape, value.strides
    form = (len(shape), len(strides), tuple(value.block_shape), value.padding)
    return form, [value.base, *shape, *strides]


@functools.cache
def _names(name: str, rank: int, strides: int) -> tuple[str, ...]:
    """What a descriptor's parts are called, in the order of ``_unpack``."""
    shape = (f"{name}.shape[{axis}]" for axis in range(rank))
    return (f"{name}.base", *shape, *(f"{name}.strides[{axis}]" for axis in range(strides)))


def unpacked(args: tuple[Any, ...], keywords: dict[str, Any]) -> Unpacked | None:
    """None where no argument is a descriptor, or one is a tuple or a list, which may hold some."""
    form: list[Any] = []
    values: list[Any] = []
    named: dict[str, Any] = {}
    for place, value in itertools.chain(enumerate(args), keywords.items()):
        if isinstance(value, (tuple, list)):
            return None
        names: tuple[Any, ...] = (place,)
        parts = [value]
        if type(value) is TensorDescriptor:
            constants, parts = _unpack(value)
            form.append((place, constants))
            names = _names(str(place), *constants[:2])
        if isinstance(place, int):
            values += parts
        else:
            named.update(zip(names, parts, strict=True))
    return Unpacked(tuple(form), tuple(values), named) if form else None


class DescribedLaunches:
    """The known launches of one kernel function with descriptors."""

    def __init__(self) -> None:
        self._of: dict[Hashable, Launches] = {}

    def renew(self) -> None:
        """Forget all."""
        self._of = {}

    def find(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Launch, tuple[Any, ...]] | None:
        """As Launches.find."""
        if not self._of or (call := unpacked(args, keywords)) is None:
            return None
        known = self._of.get(call.form)
        return None if known is None else known.find(call.args, call.keywords)

    def keep(
        self,
        reads: Reads,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        parameters: Sequence[Parameter],
        parts: Sequence[Any],
        runtime: Sequence[int],
        launch: Launch,
    ) -> None:
        """As Launches.keep; ``parameters`` and ``parts`` are the kernel's, descriptors' parts in their place, which
        ``runtime`` numbers. A call with other constants that have no key is not kept."""
        call = unpacked(args, keywords)
        places = [i for i, parameter in enumerate(parameters) if not parameter.name.endswith(_CONSTANTS)]
        if call is None or compared(tuple(token(parameters[i], parts[i]) for i in places)):
            return
        known = self._of.get(call.form)
        if known is None:
            if len(self._of) >= _MOST_FORMS:
                self._of = {}
            known = self._of[call.form] = Launches([parameters[i] for i in places])
            known.renew(reads)
        place_of = {i: place for place, i in enumerate(places)}
        known.keep(reads, call.args, call.keywords, [place_of[i] for i in runtime], launch)
