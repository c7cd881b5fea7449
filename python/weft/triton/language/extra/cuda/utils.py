# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.language.extra.cuda.utils``: what a kernel asks of its machine."""

from weft.language.emit import builtin, current


@builtin
def num_warps() -> int:
    """How many warps a program runs on."""
    return int(current().options.num_warps)


@builtin
def num_threads() -> int:
    """How many threads a program runs on."""
    return 32 * int(current().options.num_warps)


__all__ = ["num_threads", "num_warps"]
