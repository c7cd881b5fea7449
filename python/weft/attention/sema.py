# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.attention.sema: attention inside windows, the mean over the sequence, and a local convolution (LePE)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import patterns
from weft.attention import checks
from weft.programs import functions, mixers, static
from weft.programs.eager import whole
from weft.programs.program import program

Window = int | tuple[int, int]


@whole
def sema(
    q: Any,
    k: Any,
    v: Any,
    lepe_weight: Any = None,
    lepe_bias: Any = None,
    *,
    window: Window,
    grid: Sequence[int] | None = None,
    rope: bool = True,
    mean: bool = True,
    scale: float | None = None,
    rope_values: bool = False,
    rope_2d: str = "axial",
    cu_seqlens: Any = None,
) -> Any:
    """SEMA: softmax attention inside windows of v, plus the mean of v over the sequence, plus LePE(v).

    ``window``       tokens of a window; with ``grid`` = (h, w) its rows and columns, tokens numbered row by row
    ``lepe_weight``  [Hkv·Dv, 1, K], or [Hkv·Dv, 1, K, K] over a grid, as torch.nn.Conv1d and Conv2d have it; K odd.
                     None leaves LePE out
    ``lepe_bias``    [Hkv·Dv]
    ``rope``         turn queries and keys by their position in the window; ``rope_values`` the values too
    ``rope_2d``      "axial": half of the channels turn with the row, half with the column; "flat": all with
                     row·columns + column
    ``mean``         add the mean; ``scale`` of the scores is 1/sqrt(D) unless given
    ``cu_seqlens``   [S+1] int32, where each of S sequences packed into N starts; then B is 1, and there is no grid
    """
    checks.starts(cu_seqlens, q)
    size, where = checked(q, k, v, lepe_weight, lepe_bias, window, grid, rope_2d)
    if grid is not None and cu_seqlens is not None:
        raise ValueError("expected no grid with cu_seqlens: a grid's tokens are one sequence")
    rope, mean, rope_values = (
        static.truth(name, given) for name, given in (("rope", rope), ("mean", mean), ("rope_values", rope_values))
    )
    taps = None if lepe_weight is None else taps_of(lepe_weight)
    bias = None if lepe_bias is None else lepe_bias.reshape(1, v.shape[1], 1, v.shape[3])
    form = None if where is None else "axial" if rope_2d == "axial" else "line"
    options = {"window": size, "grid": where, "rope": rope, "form": form, "mean": mean, "scale": scale}
    return _sema(q, k, v, taps, bias, cu_seqlens, rope_values=rope and rope_values, **options)


def checked(
    q: Any, k: Any, v: Any, weight: Any, bias: Any, window: Window, grid: Any, rope_2d: str
) -> tuple[Window, tuple[int, int] | None]:
    """The window and the grid as integers. Refuses tensors and options that do not agree."""
    checks.operands(q, k, v)
    _check(weight, bias, v, grid, rope_2d)
    size = _pair("window", window) if isinstance(window, Sequence) else static.integer("window", window, 1)
    return size, None if grid is None else _pair("grid", grid)


def _pair(name: str, given: Any) -> tuple[int, int]:
    if not isinstance(given, Sequence) or len(given) != 2:
        raise ValueError(f"expected '{name}' to be two sizes (rows, columns), but got {given!r}")
    return static.integer(name, given[0], 1), static.integer(name, given[1], 1)


def _check(weight: Any, bias: Any, v: Any, grid: Any, rope_2d: str) -> None:
    if rope_2d not in ("axial", "flat"):
        raise ValueError(f"expected rope_2d='axial' or 'flat', but got {rope_2d!r}")
    if weight is None:
        if bias is not None:
            raise ValueError("expected a 'lepe_weight' with 'lepe_bias', but got None")
        return
    heads, size = v.shape[1], v.shape[3]
    channels = heads * size if isinstance(heads, int) and isinstance(size, int) else None
    shape = "[Hkv·Dv, 1, K]" if grid is None else "[Hkv·Dv, 1, K, K]"
    checks.tensor("lepe_weight", weight, shape, (channels, 1, None) if grid is None else (channels, 1, None, None))
    checks.floating("lepe_weight", weight)
    taps = weight.shape[2:]
    if any(isinstance(size, int) and (size % 2 == 0 or size != taps[0]) for size in taps):
        raise ValueError(f"expected 'lepe_weight' {shape} with an odd K, but got {list(weight.shape)}")
    if bias is not None:
        checks.tensor("lepe_bias", bias, "[Hkv·Dv]", (channels,))
        checks.floating("lepe_bias", bias)


def taps_of(weight: Any) -> Any:
    """The weight of a cross-correlation as taps [K, C], or [K·K, C]: turned round, channels last."""
    channels = weight.shape[0]
    flat = weight.reshape(channels, -1)  # both axes reversed is the flat one reversed
    if hasattr(flat, "data_ptr"):
        return flat.flip(-1).t().contiguous()
    return flat[:, ::-1].T.copy()


@program
def _sema(
    q: Any,
    k: Any,
    v: Any,
    taps: Any,
    bias: Any,
    cu_seqlens: Any = None,
    *,
    window: Window,
    grid: tuple[int, int] | None,
    rope: bool,
    form: str | None,
    mean: bool,
    scale: float | None,
    rope_values: bool,
) -> Any:
    values = v
    if rope:
        turn = {"window": window, "grid": grid, "form": form, "cu_seqlens": cu_seqlens}
        q, k = functions.rope(q, k, **turn)
        values = functions.rope(v, **turn) if rope_values else v
    local = mixers.softmax(q, k, patterns.block_window(window, grid=grid), scale=scale, cu_seqlens=cu_seqlens)
    rest = [mixers.mean(cu_seqlens=cu_seqlens)] if mean else []
    if taps is not None:
        rest.append(mixers.toeplitz(taps, centred=True, grid=grid, cu_seqlens=cu_seqlens))
    if values is v:
        out = sum(rest, local) @ v
    else:
        out = local @ values
        if rest:
            out = out + sum(rest[1:], rest[0]) @ v
    return out if bias is None else out + bias
