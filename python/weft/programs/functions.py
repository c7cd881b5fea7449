# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.rope, weft.rms_norm and weft.sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler import places
from ..language.types import float32
from . import graph, static
from .eager import operation
from .graph import TensorType, agreeing
from .mixers import grid_text, one_batch, packs, real_text, starts
from .sizes import Size, unify
from .tensors import Tensor, described, four_axes


@operation
def rope(
    x: Any,
    *more: Any,
    window: int | Sequence[int] | None = None,
    base: float = 10000.0,
    grid: Sequence[int] | None = None,
    form: str | None = None,
    cu_seqlens: Any = None,
) -> Any:
    """Rotary positions on [B, H, N, D]: pair (2i, 2i+1) of channels turned by position · base^(-2i/D). Given several
    tensors, gives as many.

    The position is n, or the index in the window of ``window`` tokens. With ``grid`` = (h, w) and ``window`` = (rows,
    columns) tokens are those of a grid; ``form`` "axial", the default there, turns the first half of the pairs with the
    row in the window and the rest with the column, "line" all of them with row·columns + column. With ``cu_seqlens``
    [S+1] int32 positions count from the start of each of S sequences packed into a batch of 1.
    """
    lengths = starts(cu_seqlens, grid)
    sizes = None if window is None else _window(window)
    if form not in (None, "line", "axial"):
        raise places.error(f"expected form='line' or 'axial', but got {form!r}")
    if (grid is not None) != (sizes is not None and len(sizes) == 2):
        raise places.error(
            "expected a window of two sizes with grid=(h, w), and a grid with such a window, "
            f"but got {window=} and {grid=}"
        )
    if sizes is not None and (len(sizes) > 2 or min(sizes) < 1):
        raise places.error(f"expected a window of one or two positive sizes, but got {window!r}")
    axial = form == "axial" or (form is None and grid is not None)
    if axial and grid is None:
        raise places.error(f"expected grid=(h, w) and window=(rows, columns) for form='axial', but got {window=}")
    base = static.real("base", base)
    if base <= 0:
        raise places.error(f"expected 'base' to be positive, but got {base}")
    attributes: dict[str, Any] = {
        "base": real_text(base, "f64"),
        "form": f"#attn<rope {'axial' if axial else 'line'}>",
    }
    if sizes is not None:
        attributes["window"] = grid_text(sizes)
    if grid is not None:
        attributes["grid"] = grid_text(grid)
    results = tuple(_turned(t, attributes, grid, 4 if axial else 2, lengths) for t in (x, *more))
    return results if more else results[0]


def _window(given: Any) -> list[int]:
    sizes = [static.integer("window", size) for size in (given if isinstance(given, Sequence) else [given])]
    if not sizes:
        raise places.error(f"expected a window of one or two positive sizes, but got {given!r}")
    return sizes


def _turned(
    x: Any, attributes: dict[str, Any], grid: Sequence[int] | None, multiple: int, lengths: Sequence[Tensor]
) -> Tensor:
    four_axes(x, "queries or keys")
    static.floating("queries or keys", x)
    for each in lengths:
        one_batch(x.sizes[0])
        packs(each, x.sizes[2])
    with agreeing("expected a head size that is known"):
        head = int(x.sizes[3])
    if head % multiple:
        raise places.error(f"expected a head size that {multiple} divides, but got {head}")
    if grid is not None:
        with agreeing("expected as many tokens as the grid has"):
            unify(x.sizes[2], Size(int(grid[0]) * int(grid[1])))
    return Tensor(graph.tracing().one("attn.rope", [x.value, *(t.value for t in lengths)], x.type, attributes))


@operation
def rms_norm(x: Any, gain: Any = None, eps: float = 1e-6) -> Any:
    """x · gain / sqrt(mean(x²) + eps) over the last axis; gain [H, D], [D] for all heads alike, or None for 1."""
    four_axes(x, "the operand")
    static.floating("the operand", x)
    with agreeing("expected a last size that is known"):
        int(x.sizes[3])
    operands = [x.value]
    if gain is not None:
        if not isinstance(gain, Tensor) or gain.ndim not in (1, 2):
            raise places.error(f"expected a gain [H, D] or [D], but got {described(gain)}")
        static.floating("a gain", gain)
        if gain.ndim == 1:
            with agreeing("expected a gain [D]"):
                unify(x.sizes[3], gain.sizes[0])
            return (rms_norm(x.to("fp32"), None, eps) * gain).to(x.dtype)  # rounded once, as with a gain a head
        with agreeing("expected a gain [H, D]"):
            unify(x.sizes[1], gain.sizes[0])
            unify(x.sizes[3], gain.sizes[1])
        operands.append(gain.value)
    eps = static.real("eps", eps)
    if eps < 0:
        raise places.error(f"expected 'eps' to be at least 0, but got {eps}")
    attributes: dict[str, Any] = {"eps": real_text(eps, "f64")}
    return Tensor(graph.tracing().one("attn.rms_norm", operands, x.type, attributes))


@operation
def sum(x: Any, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> Any:
    """The sum, in float32, over an axis, several, or all; with ``keepdims`` they stay, of size 1."""
    if not isinstance(x, Tensor):
        raise places.error(f"expected a tensor to sum, but got '{type(x).__name__}'")
    given = range(x.ndim) if axis is None else axis if isinstance(axis, Sequence) else [axis]
    keepdims = static.truth("keepdims", keepdims)
    axes = sorted(a + x.ndim if a < 0 else a for a in (static.integer("axis", a) for a in given))
    if len(set(axes)) < len(axes):
        raise places.error(f"expected different axes, but got {axis!r}")
    if axes and not 0 <= axes[0] <= axes[-1] < x.ndim:
        raise places.error(f"expected axes of a tensor of {x.ndim}, but got {axis!r}")
    if keepdims:
        sizes = tuple(Size(1) if i in axes else size for i, size in enumerate(x.sizes))
    else:
        sizes = tuple(size for i, size in enumerate(x.sizes) if i not in axes)
    attributes: dict[str, Any] = {} if keepdims else {"away": f"array<i64: {', '.join(map(str, axes))}>"}
    return Tensor(graph.tracing().one("attn.sum", [x.value], TensorType(sizes, float32), attributes))
