# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How long a function of launches takes: measured on a GPU, modelled without one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median
from typing import Any

from weft.runtime.devices import open_device

from .counting import counted

_FLUSHED_BYTES = 256 << 20  # more than the L2 cache of any GPU there is
_MODES: dict[str, Callable[[Sequence[float]], Any]] = {
    "min": min,
    "max": max,
    "mean": mean,
    "median": median,
    "all": list,
}


def do_bench(
    fn: Callable[[], Any],
    warmup: int = 25,
    rep: int = 100,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Milliseconds that a call of ``fn`` takes on the GPU: about ``rep`` ms of calls after ``warmup`` ms, the L2 cache
    flushed before each.

    One number by ``return_mode`` ("min", "max", "mean", "median"), all of them for "all"; the quantiles, where asked
    for. ``grad_to_none`` are tensors whose gradients are dropped before each call.

    Without a GPU ``fn`` is called once: the launches of tile kernels in it are counted on the simulator, and the time
    is what the cost model gives them on the GPU that stands for the target (docs/Tuning.md). It ranks kernels; it is no
    prediction. A function without launches is timed by the clock.
    """
    if return_mode not in _MODES:
        raise ValueError(f"expected return_mode to be one of {', '.join(_MODES)}, but got {return_mode!r}")
    times = _measured(fn, warmup, rep, list(grad_to_none or ())) if not open_device().simulated else [_modelled(fn)]
    if quantiles is None:
        return _MODES[return_mode](times)
    found = [_quantile(times, each) for each in quantiles]
    return found[0] if len(found) == 1 else found


def _modelled(fn: Callable[[], Any]) -> float:
    started = time.perf_counter()
    with counted() as found:
        fn()
    return found.milliseconds if found.seconds else 1e3 * (time.perf_counter() - started)


def _measured(fn: Callable[[], Any], warmup: float, rep: float, gradients: list[Any]) -> list[float]:
    import torch

    def event() -> Any:
        return torch.cuda.Event(enable_timing=True)

    flushed = torch.empty(_FLUSHED_BYTES, dtype=torch.int8, device="cuda")

    def once() -> tuple[Any, Any]:
        for tensor in gradients:
            tensor.grad = None
        flushed.zero_()
        started, ended = event(), event()
        started.record()
        fn()
        ended.record()
        return started, ended

    fn()
    first = [once() for _ in range(5)]
    torch.cuda.synchronize()
    each = max(1e-3, mean(a.elapsed_time(b) for a, b in first))
    for _ in range(int(warmup / each)):
        once()
    pairs = [once() for _ in range(max(1, int(rep / each)))]
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in pairs]


def _quantile(times: Sequence[float], fraction: float) -> float:
    """Between the two times nearest to a fraction of all, in order."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"expected a quantile from 0 to 1, but got {fraction}")
    ordered = sorted(times)
    place = fraction * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
