# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention of one pattern as a case of the size grid: how it is called, and what it must give."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
import weft
from weft.testing import Domain, attention, drawn, judge, masks


@dataclasses.dataclass(frozen=True)
class Case:
    """Sizes, storage type and factor of the inputs of weft.attention.attend."""

    n: int
    m: int
    d: int = 64
    dv: int | None = None
    heads: int = 2
    kv_heads: int = 2
    batch: int = 1
    dtype: torch.dtype = torch.float16
    factor: float = 1.0
    gradients: bool = True


@dataclasses.dataclass(frozen=True)
class Pattern:
    """``make()`` is Weft's, ``dense(n, m)`` its mask; ``fits`` says for which sizes there is one."""

    make: Callable[[], object]
    dense: Callable[[int, int], torch.Tensor | None]
    fits: Callable[[int, int], bool] = lambda n, m: True


PATTERNS = {
    "full": Pattern(lambda: None, lambda n, m: None),
    "causal": Pattern(lambda: weft.causal(), masks.causal),
    "window": Pattern(lambda: weft.window(70, 0), lambda n, m: masks.window(n, m, 70, 0)),
    "window, both sides": Pattern(lambda: weft.window(17, 33), lambda n, m: masks.window(n, m, 17, 33)),
    "window of a partition": Pattern(lambda: weft.block_window(48), lambda n, m: masks.block_window(n, m, 48)),
    "strided": Pattern(
        lambda: weft.strided(7) & weft.causal(), lambda n, m: masks.strided(n, m, 7) & masks.causal(n, m)
    ),
    "dilated": Pattern(lambda: weft.dilated(3, 25), lambda n, m: masks.dilated(n, m, 3, 25)),
    "global and window": Pattern(
        lambda: weft.window(20, 20) | weft.global_tokens(3),
        lambda n, m: masks.window(n, m, 20, 20) | masks.global_tokens(n, m, 3),
    ),
    "prefix-LM": Pattern(
        lambda: weft.prefix(50) | weft.causal(), lambda n, m: masks.prefix(n, m, 50) | masks.causal(n, m)
    ),
    "neighbourhood": Pattern(
        lambda: weft.neighbourhood((256,), (31,)),
        lambda n, m: masks.neighbourhood(n, m, (256,), (31,)),
        lambda n, m: n == m == 256,
    ),
    "random blocks": Pattern(
        lambda: weft.random_blocks(seed=3, per_row=2, block=32) & weft.causal(),
        lambda n, m: torch.as_tensor(weft.random_blocks(seed=3, per_row=2, block=32).matrix(n, m)) & masks.causal(n, m),
        lambda n, m: m >= 64,
    ),
    "mask": Pattern(
        lambda: weft.mask(lambda b, h, n, m: (n + 2 * m + h) % 5 != 0),
        lambda n, m: masks.mask(n, m, lambda b, h, n, m: (n + 2 * m + h) % 5 != 0, heads=2),
    ),
    "not": Pattern(
        lambda: weft.causal() & ~weft.window(30, 0), lambda n, m: masks.causal(n, m) & ~masks.window(n, m, 30, 0)
    ),
}


def run(pattern: Pattern, case: Case, generator: torch.Generator):
    """One draw: the accuracy of output, LSE and gradients by name."""

    def inputs(randn):
        return {
            "q": randn(case.batch, case.heads, case.n, case.d),
            "k": randn(case.batch, case.kv_heads, case.m, case.d),
            "v": randn(case.batch, case.kv_heads, case.m, case.dv or case.d),
        }

    mask = pattern.dense(case.n, case.m)
    made = pattern.make()
    return judge(
        lambda q, k, v: weft.attention.attend(q, k, v, made, return_lse=True),
        lambda q, k, v, form: attention(q, [Domain(k, v, mask)], form=form),
        drawn(inputs, case.dtype, generator, case.factor),
        names=("out", "lse"),
        gradients=case.gradients,
        input_scale=case.factor,
        generator=generator,
    )
