# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Floating-point operations of programs for torch.utils.flop_counter: two for each multiply-add of the matrix products
that the plan lists (docs/LibraryFormat.md, "Products").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import flop_counter

from .plans import bind_shapes, evaluate


def register(operator: Any, name: str, plan: Mapping[str, Any]) -> None:
    """Let FlopCounterMode count calls of an operator, modes that are active already too."""

    def formula(*shapes: Any, **_: Any) -> int:
        return operations(name, plan, shapes)

    packet = operator.overloadpacket
    flop_counter.register_flop_formula(packet)(formula)
    counted = flop_counter.flop_registry[packet]
    for mode in torch.utils._python_dispatch._get_current_dispatch_mode_stack():
        counter = getattr(mode, "counter", None)
        if isinstance(counter, flop_counter.FlopCounterMode):
            counter.flop_registry.setdefault(packet, counted)


def operations(name: str, plan: Mapping[str, Any], shapes: Sequence[Sequence[int]]) -> int:
    """The operations of a program on inputs of these shapes."""
    if "products" not in plan:
        raise NotImplementedError(
            f"'{name}': expected a plan that lists its products, but got one without: compile the library again"
        )
    sizes = bind_shapes(plan, shapes)
    return sum(_product(each, sizes) for each in plan["products"])


def _product(product: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    each = evaluate(product["flops"], sizes)
    if "queries" not in product:
        return each
    queries, keys = evaluate(product["queries"], sizes), evaluate(product["keys"], sizes)
    if "pairs" not in product:
        return each * queries * keys
    positions = np.arange(int(keys) - int(queries), int(keys), dtype=np.int64)
    known = {**sizes, "p": positions}
    total = sum((_keys(term, known, positions, int(keys)) for term in product["pairs"]), np.int64(0))
    return each * int(np.minimum(total, int(keys)).sum())


def _keys(term: Mapping[str, Any], known: Mapping[str, Any], positions: Any, keys: int) -> Any:
    """How many keys each query has: those in one of the bands, and no more than are said."""
    count = np.full(len(positions), keys)
    if "bands" in term:
        ranges = _by_start([_range(band, known, positions, keys) for band in term["bands"]], len(positions))
        count, past = np.zeros(len(positions), np.int64), np.zeros(len(positions), np.int64)
        for start, end in ranges:
            count += np.maximum(end - np.maximum(start, past), 0)
            past = np.maximum(past, end)
    return np.minimum(count, term.get("most", keys))


def _range(band: Mapping[str, Any], known: Mapping[str, Any], positions: Any, keys: int) -> Any:
    """[2, queries]: each query's first key in a band, and the one past the last."""

    def bounds(name: str) -> list[Any]:
        return [np.broadcast_to(evaluate(each, known), positions.shape) for each in band[name]]

    zero, whole = np.zeros_like(positions), np.full_like(positions, keys)
    start, end = np.maximum.reduce([zero, *bounds("from")]), np.minimum.reduce([whole, *bounds("to")])
    for each in bounds("rows_from"):
        end = np.where(positions >= each, end, 0)
    for each in bounds("rows_to"):
        end = np.where(positions < each, end, 0)
    return np.stack([start, np.maximum(start, end)])


def _by_start(ranges: Sequence[Any], queries: int) -> Any:
    """[bands, 2, queries]: the bands' ranges, of each query by their first keys."""
    whole = np.stack(ranges) if ranges else np.zeros((0, 2, queries), np.int64)
    order = np.argsort(whole[:, :1], axis=0, kind="stable")
    return np.take_along_axis(whole, np.broadcast_to(order, whole.shape), axis=0)
