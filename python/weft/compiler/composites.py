# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Arguments that are made of others: tuples, lists, and descriptors made on the host. A kernel is launched with their
parts, ``x[0]``, ``x[1].base``; signatures spell these, and the kernel's body gets them together again.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..language.descriptors import make_tensor_descriptor
from ..runtime.descriptors import is_composite, parts
from .parameters import Parameter
from .signature import root


def spread(parameters: Sequence[Parameter], values: Sequence[Any]) -> tuple[Sequence[Parameter], Sequence[Any]]:
    """Parameters and values, a composite's parts in its place. Constants stay whole."""
    if not any(is_composite(v) and not p.is_constexpr for p, v in zip(parameters, values, strict=True)):
        return parameters, values
    all_parameters: list[Parameter] = []
    all_values: list[Any] = []
    for parameter, value in zip(parameters, values, strict=True):
        if parameter.is_constexpr or not is_composite(value):
            all_parameters.append(parameter)
            all_values.append(value)
            continue
        for name, part, constant in parts(parameter.name, value):
            all_parameters.append(dataclasses.replace(parameter, name=name, is_constexpr=constant, type=None))
            all_values.append(part)
    return all_parameters, all_values


def together(name: str, known: Mapping[str, Any]) -> Any:
    """The value of a parameter from those of its parts. Raises KeyError where there are none."""
    if name in known:
        return known[name]
    if f"{name}.block_shape" in known:
        shape, strides = together(f"{name}.shape", known), together(f"{name}.strides", known)
        sizes, padding = known[f"{name}.block_shape"], known.get(f"{name}.padding", "zero")
        return make_tensor_descriptor(known[f"{name}.base"], shape, strides, sizes, padding)
    below = [each[len(name) :] for each in known if each.startswith((f"{name}[", f"{name}."))]
    fields = dict.fromkeys(re.split(r"[.\[]", each[1:], maxsplit=1)[0] for each in below if each[0] == ".")
    if fields:
        values = [together(f"{name}.{field}", known) for field in fields]
        return collections.namedtuple(root(name), fields)(*values)
    count = len({each[1 : each.index("]")] for each in below})
    if not count:
        raise KeyError(name)
    return tuple(together(f"{name}[{i}]", known) for i in range(count))
