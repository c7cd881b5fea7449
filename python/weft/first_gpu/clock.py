# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Times of what is queued on the GPU."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import torch

from weft.native import load
from weft.runtime.devices import open_device

_FLUSHED_BYTES = 256 << 20  # more than the L2 cache of any GPU there is
_BUDGET = 300.0  # milliseconds that the runs of one time may take


class Clock:
    """Times runs on the first GPU by events of the driver, each after warm-up and an overwritten L2 cache.

    Where PyTorch has no CUDA, tensors are on the host (``where`` says so) and a run copies them in and out: such times
    say that the way works, and nothing of speed.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.cuda: bool = torch.cuda.is_available()
        self.where = "cuda:0" if self.cuda else "cpu"
        self._timer = load("_runtime").Timer(open_device("cuda:0"), _FLUSHED_BYTES if self.cuda else 256)

    def measure(self, queue: Callable[[], Any], operations: float) -> dict[str, Any]:
        """The median, the quarters around it, and the rate of so many operations."""
        for _ in range(3 if self.cuda else 1):
            queue()
        first = self._once(queue)
        count = max(min(self.rounds, 5), min(self.rounds, int(_BUDGET / max(first, 1e-3))))
        times = sorted(self._once(queue) for _ in range(count))
        low, middle, high = statistics.quantiles(times, n=4, method="inclusive") if count > 1 else times * 3
        return {
            "ms": middle,
            "fastest quarter": low,
            "slowest quarter": high,
            "TFLOP/s": operations / max(middle, 1e-6) / 1e9,
            "runs": count,
        }

    def clear(self) -> None:
        """Give back the memory of cases before."""
        if self.cuda:
            torch.cuda.empty_cache()

    def _once(self, queue: Callable[[], Any]) -> float:
        stream = torch.cuda.current_stream().cuda_stream if self.cuda else 0
        elapsed: float = self._timer.measure(queue, stream)
        return elapsed
