# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Patterns evaluated on the host: matrices and classes of blocks, computed by the compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import native
from ..compiler import places
from ..compiler.around import with_views
from .checks import integer
from .indices import indices, on_host
from .text import lowered

if TYPE_CHECKING:
    from .pattern import Pattern


@dataclass(frozen=True)
class _Instance:
    """A pattern as the compiler takes it, and whether its matrix has axes for batch and head."""

    text: str
    sizes: tuple[int, int, int, int]
    operands: list[Any]
    masks: list[Any]
    four: bool


@functools.cache
def _context() -> Any:
    return native.load("_compiler").Context()


def matrix(pattern: Pattern, n: int, m: int, batch: int, heads: int) -> Any:
    """See Pattern.matrix."""
    made = _instance(pattern, "matrix", n, m, batch, heads)
    found = _called("pattern_matrix", made.text, made.sizes, made.operands, made.masks)
    return _shaped(found.view(bool), made)


def blocks_summary(pattern: Pattern, n: int, m: int, bm: int, bn: int, batch: int, heads: int) -> Any:
    """See Pattern.blocks_summary."""
    rows, columns = (integer("blocks_summary", name, v, 1) for name, v in (("bm", bm), ("bn", bn)))
    made = _instance(pattern, "blocks_summary", n, m, batch, heads)
    return _shaped(_called("pattern_summary", made.text, made.sizes, rows, columns, made.operands, made.masks), made)


class Spelled:
    """A pattern by its attribute's text ("#attn.causal"), which names neither tensors nor functions: as IR has it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def matrix(self, n: int, m: int, *, batch: int = 1, heads: int = 1) -> Any:
        """As Pattern.matrix, [N, M]."""
        return _called("pattern_matrix", self.text, (batch, heads, n, m), [], []).view(bool)[0, 0]

    def blocks_summary(self, n: int, m: int, bm: int, bn: int, *, batch: int = 1, heads: int = 1) -> Any:
        """As Pattern.blocks_summary, [R, C]."""
        return _called("pattern_summary", self.text, (batch, heads, n, m), bm, bn, [], [])[0, 0]


def _shaped(found: Any, made: _Instance) -> Any:
    return found if made.four else found[0, 0]


def _called(name: str, *arguments: Any) -> Any:
    try:
        return getattr(native.load("_compiler"), name)(_context(), *arguments)
    except ValueError as error:
        raise places.error(str(error)) from None


def _instance(pattern: Pattern, where: str, n: int, m: int, batch: int, heads: int) -> _Instance:
    queries, keys = (integer(where, name, v, 0) for name, v in (("n", n), ("m", m)))
    batches, of_heads = _extents(pattern)
    batches = batches or integer(where, "batch", batch, 1)
    of_heads = of_heads or integer(where, "heads", heads, 1)
    sizes = (batches, of_heads, queries, keys)
    grids = [grid.astype(np.int32) for grid in np.ogrid[:batches, :of_heads, :queries, :keys]]  # as kernels have them
    operands: list[Any] = []
    asked: list[Any] = []
    text, _ = lowered(pattern, operands, asked.append, 0, (grids[0], grids[1], grids[2], grids[3]))
    masks = [_evaluated(function, place, grids, sizes) for function, place in asked]
    return _Instance(text, sizes, [_integers(o) for o in operands], masks, _has_four(pattern) or sizes[:2] != (1, 1))


def _extents(pattern: Pattern) -> tuple[int, int]:
    """The batches and heads that a pattern's arrays and lists have; 0 where nothing says it, or only 1."""
    batches = heads = 0
    name, values = pattern.spelling, pattern.values
    if name == "per_head":
        heads = len(pattern.parts)
    shapes = [tuple(v.shape) for v in values if hasattr(v, "shape")]
    for shape in shapes:
        if len(shape) != 1:
            batches = max(batches, shape[0])
        if name not in ("document", "section"):
            heads = max(heads, shape[1])
    found = [(batches, heads), *(_extents(part) for part in pattern.parts)]
    several = [tuple(size if size > 1 else 0 for size in each) for each in found]
    return max(b for b, _ in several), max(h for _, h in several)


def _has_four(pattern: Pattern) -> bool:
    """Whether something in the pattern has axes for batch and head."""
    ranks = [len(v.shape) for v in pattern.values if hasattr(v, "shape")]
    own = pattern.spelling == "per_head" or any(rank > 1 for rank in ranks)
    return own or any(_has_four(part) for part in pattern.parts)


def to_numpy(array: Any) -> Any:
    """An array of NumPy or torch, on the host; torch's bfloat16 as float32."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        array = array.float() if str(array.dtype) == "torch.bfloat16" else array
        return array.numpy()
    if not hasattr(array, "__array__"):
        raise places.error(
            f"expected arrays for a pattern that is evaluated on the host, but got '{type(array).__name__}'"
        )
    return np.asarray(array)


def _integers(array: Any) -> Any:
    found = to_numpy(array)
    if found.dtype.kind not in "iub":
        raise places.error(f"expected integers or truths in a pattern's arrays, but got {found.dtype}")
    if found.size and not -(2**31) <= int(found.min()) <= int(found.max()) < 2**31:
        raise places.error(
            f"expected integers of 32 bits in a pattern's arrays, but got {found.min()} to {found.max()}"
        )
    return np.ascontiguousarray(found, dtype=np.int32)


def _evaluated(function: Callable[..., Any], place: Any, grids: list[Any], sizes: tuple[int, int, int, int]) -> Any:
    """A mask at every pair, computed by NumPy, and by torch where it calls torch."""
    remedy = "compare, and combine by & | ~: b, h, n and m are arrays of indices here"
    try:
        with on_host(getattr(function, "reads_as_torch", False)):
            found = with_views(function, indices)(
                *(indices(each, whole=any(each is grid for grid in grids)) for each in place)
            )
        found = to_numpy(found) if hasattr(found, "detach") else found
    except (IndexError, TypeError, ValueError, RuntimeError) as error:
        raise places.error(
            f"expected a truth from the mask, but it raised {type(error).__name__}: {error}", remedy
        ) from None
    found = np.asarray(found)
    if found.dtype != bool:
        raise places.error(f"expected a truth from the mask, but got {found.dtype}", remedy)
    return np.ascontiguousarray(np.broadcast_to(found, sizes), dtype=np.uint8)
