# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""SEMA, scalable and efficient Mamba-like attention: softmax inside windows, the mean of everything, and a short
convolution, on sequences and on grids of tokens; its program is mechanisms/sema.py. Run it: python examples/06_sema.py
"""

import functools

import weft
from mechanisms.sema import sema
from weft.testing import Demonstration
from weft.testing import sema as formula


@weft.program
def local_attention(q, k, v, lepe, *, window, grid=None):
    """The paper's algorithm 1: SEMA without the mean."""
    q, k = weft.rope(q, k, window=window, grid=grid)
    local = weft.softmax(q, k, weft.block_window(window, grid=grid))
    return (local + weft.toeplitz(lepe, centred=True, grid=grid)) @ v


def expected(q, k, v, lepe, *, grid=None, **options):
    """The same by its formula. A depthwise torch.nn.Conv1d or Conv2d reads its weight backwards."""
    channels = lepe.shape[1]
    weight = lepe.flip(0).mT.reshape((channels, 1, 3, 3) if grid else (channels, 1, 3))
    return formula(q, k, v, weight, grid=grid, **options)


def inputs(randn, *, length, head, taps):
    return {name: randn(1, 2, length, head) for name in ("q", "k", "v")} | {"lepe": randn(taps, 2 * head)}


def demonstrations():
    for title, sizes, place in (
        ("a sequence", {"length": 200, "head": 64, "taps": 3}, {"window": 32}),
        ("a grid", {"length": 12 * 14, "head": 32, "taps": 9}, {"window": (7, 7), "grid": (12, 14)}),
    ):
        for name, program, mean in (("SEMA", sema, True), ("algorithm 1", local_attention, False)):
            yield Demonstration(
                f"{name} on {title}",
                functools.partial(program, **place),
                functools.partial(expected, **place, mean=mean),
                functools.partial(inputs, **sizes),
                {"products_as_given": False},
            )


if __name__ == "__main__":
    print(weft.device())
    for each in demonstrations():
        each.show()
