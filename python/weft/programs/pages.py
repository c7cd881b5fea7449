# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.paged: keys and values in pages, as serving keeps them."""

from __future__ import annotations

from typing import Any

from ..compiler import places
from . import graph
from .eager import operation
from .graph import TensorType, Value, agreeing
from .sizes import unify
from .tensors import Tensor, described, four_axes


@operation
def paged(pages: Any, block_table: Any, lengths: Any) -> Any:
    """Sequences of keys or values that lie in pages: [B, Hkv, M, D] of pages [P, page, Hkv, D], without a copy.

    Row m of sequence b is row m % page of page ``block_table[b, m // page]``; ``block_table`` [B, most pages] int32.
    ``lengths`` [B] int32 is how long each sequence is, or [B, Hkv] where heads have rows of their own: weft.softmax and
    weft.attention.attend take so many keys of it, anything else takes 0 for the rows behind. What lies there in a page
    is never read.
    """
    four_axes(pages, "pages")
    wanted = (("block_table", block_table, "[B, most pages]", (2,)), ("lengths", lengths, "[B] or [B, Hkv]", (1, 2)))
    for name, each, shape, axes in wanted:
        if not isinstance(each, Tensor) or each.ndim not in axes or each.dtype.name != "int32":
            raise places.error(f"expected '{name}' {shape} of int32, but got {described(each)}")
    with agreeing("expected 'lengths' [B] of as many sequences as 'block_table' [B, most pages] has"):
        unify(block_table.sizes[0], lengths.sizes[0])
    if lengths.ndim == 2:
        with agreeing("expected 'lengths' [B, Hkv] of as many heads as 'pages' [P, page, Hkv, D] have"):
            unify(pages.sizes[2], lengths.sizes[1])
    with agreeing("expected pages of a known number of rows, of rows of a known size"):
        rows = int(pages.sizes[1])
        int(pages.sizes[3])
    for size, name in zip((*pages.sizes[:3:2], *block_table.sizes), ("P", "Hkv", "B", "T"), strict=True):
        size.called(3, name)
    sizes = (block_table.sizes[0], pages.sizes[2], block_table.sizes[1].times(rows), pages.sizes[3])
    operands = [pages.value, block_table.value, lengths.value]
    return Tensor(graph.tracing().one("attn.paged", operands, TensorType(sizes, pages.dtype)))


def lengths_behind(value: Value) -> Tensor | None:
    """The lengths of the sequences in pages that a value is computed from; None where it is from no pages."""
    made = {id(result): operation for operation in graph.tracing().body for result in operation.results}
    found: list[Value] = []
    waiting, met = [value], {id(value)}
    while waiting:
        operation_ = made.get(id(waiting.pop()))
        if operation_ is None:
            continue
        if operation_.name == "attn.paged":
            found.append(operation_.operands[2])
            continue
        new = [each for each in operation_.operands if id(each) not in met]
        met.update(map(id, new))
        waiting.extend(new)
    if len({id(each) for each in found}) > 1:
        raise places.error("expected keys of pages of the same lengths, but got those of several")
    return Tensor(found[0]) if found else None
