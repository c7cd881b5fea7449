# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""weft.distributed.sema: windows that reach over ranks, the mean over all of them, and a convolution with its edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..attention.sema import Window, checked, taps_of
from ..patterns import block_window
from ..programs import functions
from ..programs.mixers import toeplitz
from ..programs.program import program
from .agreement import agreed
from .attend import attend
from .edges import Halo, Total
from .meshes import group_of


def sema(
    q: Any,
    k: Any,
    v: Any,
    lepe_weight: Any = None,
    lepe_bias: Any = None,
    group: Any = None,
    *,
    window: Window,
    grid: Sequence[int] | None = None,
    rope: bool = True,
    mean: bool = True,
    scale: float | None = None,
    rope_values: bool = False,
    rope_2d: str = "axial",
    rotate: str = "ring",
) -> Any:
    """weft.attention.sema of a sequence, or a grid of tokens, that the ranks of a ``group`` share in consecutive runs:
    each gives q [B, H, N/P, D], k and v, and gets its part [B, H, N/P, Dv].

    Windows are of the whole, the mean is that of all ranks, and the convolution takes rows of neighbours. Gradients of
    ``lepe_weight`` and ``lepe_bias`` are this rank's share.
    """
    group = group_of(group)

    def made() -> tuple[Any, str]:
        options = checked(q, k, v, lepe_weight, lepe_bias, window, grid, rope_2d)
        if not isinstance(q, torch.Tensor):
            raise TypeError(f"expected 'q' to be a tensor of torch's, but got '{type(q).__name__}'")
        whole = q.shape[2] * dist.get_world_size(group)
        if options[1] is not None and options[1][0] * options[1][1] != whole:
            raise ValueError(f"expected a grid of the whole's {whole} tokens, but got {options[1]}")
        weight = None if lepe_weight is None else list(lepe_weight.shape)
        shapes = [list(each.shape) for each in (q, k, v)]
        return (
            options,
            f"{shapes}, {q.dtype}, {weight}, window={window}, grid={grid}, {rope}, {mean}, {scale}, {rope_2d}",
        )

    size, sides = agreed(group, made)
    first = dist.get_rank(group) * q.shape[2]
    form = None if sides is None else "axial" if rope_2d == "axial" else "line"
    values = v
    if rope:
        turn = {"first": first, "window": size, "sides": sides, "form": form}
        q, k = _turned(q, **turn), _turned(k, **turn)
        values = _turned(v, **turn) if rope_values else v
    out = attend(q, k, values, block_window(size, grid=sides), group, rotate=rotate, scale=scale).float()
    rest = v.float()
    if rest.shape[1] != out.shape[1]:
        rest = rest.repeat_interleave(out.shape[1] // rest.shape[1], 1)
    if mean:
        whole = v.shape[2] * dist.get_world_size(group)
        out = out + Total.apply(rest.sum(2, keepdim=True), group) / whole
    if lepe_weight is not None:
        near = _convolved(v, taps_of(lepe_weight), first, sides, group)
        out = out + near.repeat_interleave(out.shape[1] // near.shape[1], 1)
    if lepe_bias is not None:
        bias = lepe_bias.reshape(1, v.shape[1], 1, v.shape[3]).float()
        out = out + bias.repeat_interleave(out.shape[1] // bias.shape[1], 1)
    return out.to(q.dtype)


def _turned(x: Any, *, first: int, window: Any, sides: tuple[int, int] | None, form: str | None) -> Any:
    """Rows turned by their place in the window of the whole: behind so many of 0 that they lie in a window as they do
    there, and of a grid within whole rows."""
    width = 1 if sides is None else sides[1]
    period = window if sides is None else window[0] * width
    before = first % period
    after = -(before + x.shape[2]) % width
    wide = torch.nn.functional.pad(x, (0, 0, before, after))
    grid = None if sides is None else (wide.shape[2] // width, width)
    return functions.rope(wide, window=window, grid=grid, form=form)[:, :, before : before + x.shape[2]]


@program
def near(v: Any, taps: Any, *, grid: tuple[int, int] | None) -> Any:
    """The centred convolution of rows with what is around them."""
    return toeplitz(taps, centred=True, grid=grid) @ v


def _convolved(v: Any, taps: Any, first: int, sides: tuple[int, int] | None, group: Any) -> Any:
    """The convolution of the whole at this rank's rows, in float32."""
    tokens, ranks = v.shape[2], dist.get_world_size(group)
    width = 1 if sides is None else sides[1]
    side = taps.shape[0] if sides is None else round(taps.shape[0] ** 0.5)
    reach = side // 2 * width
    # whole rows of a grid, and as many around them as the convolution reaches
    reaches = [(each * tokens % width + reach, -((each + 1) * tokens) % width + reach) for each in range(ranks)]
    wide = Halo.apply(v, reaches, group)
    before = reaches[dist.get_rank(group)][0]
    grid = None if sides is None else (wide.shape[2] // width, width)
    return near(wide.float(), taps.float(), grid=grid)[:, :, before : before + tokens]
