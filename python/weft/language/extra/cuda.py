# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What Triton has under ``tl.extra.cuda``: the machine's clock and places, waiting for other grids."""

from __future__ import annotations

from typing import Any

from weft.language.emit import builtin, current
from weft.language.inline_asm import inline_asm_elementwise
from weft.language.types import int32, int64
from weft.language.value import tensor

from . import libdevice


@builtin
def globaltimer() -> tensor:
    """The machine's clock in nanoseconds; int64."""
    return inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], int64, False, 1)


@builtin
def smid() -> tensor:
    """The number of the multiprocessor that the program is on; int32."""
    return inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], int32, True, 1)


@builtin
def num_threads() -> int:
    """The threads of a program, a constant."""
    return 32 * int(current().options.num_warps)


@builtin
def num_warps() -> int:
    """The warps of a program, a constant."""
    return int(current().options.num_warps)


def _alone(name: str, what: str) -> Any:
    def function() -> None:
        return None

    function.__name__, function.__doc__ = name, f"{what}: grids here run one after another, so that it has no effect."
    return builtin(function)


gdc_wait = _alone("gdc_wait", "Wait for the grids before this one")
gdc_launch_dependents = _alone("gdc_launch_dependents", "Let the grids after this one start")

__all__ = ["gdc_launch_dependents", "gdc_wait", "globaltimer", "libdevice", "num_threads", "num_warps", "smid"]
