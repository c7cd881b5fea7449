# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Times of softmax attention, Weft's beside others'. What is timed is checked first: the last rows of one head against
float32."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import torch

from weft.first_gpu.cases import Case, Options, Wrong
from weft.first_gpu.clock import Clock
from weft.first_gpu.peers import PEERS, Shape

_PAIRS = ("causal", "full", "window")
_ROWS = 256  # that are checked
_MOST = 2e-2  # of their relative error: bfloat16 leaves some 4e-3


def cases(options: Options) -> Iterator[Case]:
    """Forward and backward for each head size, pattern, length and peer."""
    clock = Clock(options.rounds)
    for direction in ("forward", "backward"):
        for head in options.heads:
            for pairs in _PAIRS:
                for length in options.lengths:
                    batch, heads = max(1, options.tokens // length), max(1, options.width // head)
                    shape = Shape(batch, heads, length, head, pairs, options.window)
                    for by in PEERS:
                        named = f"window of {options.window}" if pairs == "window" else pairs
                        name = (direction, f"D {head}", named, f"{length:,}", by)
                        run = functools.partial(_time, clock, shape, direction, by)
                        yield Case(name, run, ours=by.startswith("Weft"))


def _time(clock: Clock, shape: Shape, direction: str, by: str) -> dict[str, Any]:
    call = PEERS[by](shape)
    clock.clear()
    torch.manual_seed(0)
    sizes = (shape.batch, shape.heads, shape.length, shape.head)
    q, k, v, gradient = (torch.randn(sizes, dtype=torch.bfloat16, device=clock.where) for _ in range(4))
    if direction == "forward":
        with torch.no_grad():
            error = _error(call(q, k, v), _reference(shape, q, k, v)[0])
            return clock.measure(lambda: call(q, k, v), shape.operations) | {"relative error": error}
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = call(q, k, v)
    queue = functools.partial(torch.autograd.grad, out, leaves, gradient, retain_graph=True)
    rows, q_rows = _reference(shape, *(x.detach() for x in leaves))
    (expected,) = torch.autograd.grad(rows, q_rows, gradient[0, 0, -_ROWS:].float())
    error = _error(queue()[0], expected)
    return clock.measure(queue, 2.5 * shape.operations) | {"relative error": error}


def _reference(shape: Shape, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The last rows of the first head in float32, and their queries, which they can be differentiated by."""
    with torch.enable_grad():
        rows = q[0, 0, -_ROWS:].float().requires_grad_()
        scores = rows @ k[0, 0].float().T / math.sqrt(shape.head)
        at = torch.arange(shape.length - rows.shape[0], shape.length, device=q.device)[:, None]
        key = torch.arange(shape.length, device=q.device)[None, :]
        if shape.pairs != "full":
            seen = (key <= at) & ((shape.pairs == "causal") | (at - key <= shape.window))
            scores = scores.masked_fill(~seen, -math.inf)
        return scores.softmax(-1) @ v[0, 0].float(), rows


def _error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """The relative error of the last rows of the first head; Wrong where it is too large, or no number."""
    difference = got[0, 0, -_ROWS:].float() - expected
    error = float(difference.norm() / expected.norm())
    if not error <= _MOST:
        raise Wrong(f"expected a relative error of at most {_MOST:g} against float32, but got {error:.2g}")
    return error
