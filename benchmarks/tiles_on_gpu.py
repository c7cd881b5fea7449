# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Times of tile kernels on a GPU, through Weft and through Triton from one source at the same tiles, warps and stages.

    .venv/bin/python benchmarks/tiles_on_gpu.py
    .venv/bin/python benchmarks/tiles_on_gpu.py --only matmul --json figures.json

Needs a GPU, PyTorch with CUDA, and Triton. Each compiler has a process of its own, which checks results against
PyTorch's in wider types before it times them: events around each run after warm-up, 512 MiB written before each, so
that nothing is left in the L2 cache and the launch is queued before the GPU comes to it; the median. GB/s counts each
tensor once, TFLOP/s the products. A ratio is Weft's time over Triton's.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pathlib
import re
import statistics
from typing import Any

from rich.console import Console
from rich.table import Table
from weft.folders import scratch_folder

_BUDGET = 150.0  # milliseconds of runs a kernel
_MOST_RUNS = 100


def timed(by: str, pattern: str, seed: int, results: Any) -> None:
    """Put a row a kernel into the queue, then None: a kernel that fails gives its error."""
    with scratch_folder("weft-on-gpu-") as folder:
        os.environ["WEFT_CACHE_DIR"] = str(folder)
        measure_all(by, pattern, seed, results)
    results.put(None)


def measure_all(by: str, pattern: str, seed: int, results: Any) -> None:
    """A row a kernel, into the queue."""
    import torch

    if by == "Weft":
        from weft.triton.replace import replace

        replace()
    from tile_kernels.large import LARGE

    for name, make in LARGE.items():
        if not re.search(pattern, name):
            continue
        torch.manual_seed(seed)
        row: dict[str, Any] = {"name": name, "by": by, "error": ""}
        try:
            row |= _measure(*make())
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        results.put(row)
        if "CUDA" in row["error"]:
            break  # the context may be lost
        torch.cuda.empty_cache()


def _measure(case: Any, moved: float, operations: float) -> dict[str, Any]:
    import torch

    def run() -> None:
        case.kernel[case.grid](**case.arguments, **case.constants, num_warps=case.warps, num_stages=case.stages)

    run()
    torch.cuda.synchronize()
    off = _error(case)
    flushed = torch.empty(512 << 20, dtype=torch.int8, device="cuda")
    times: list[float] = []
    while len(times) < 5 or (sum(times) < _BUDGET and len(times) < _MOST_RUNS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flushed.zero_()
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    middle = statistics.median(times)
    return {
        "ms": middle,
        "GB/s": moved / middle / 1e6,
        "TFLOP/s": operations / middle / 1e9,
        "off": off,
        "runs": len(times),
    }


def _error(case: Any) -> float:
    """The largest error over what is allowed; ValueError above 1. What is expected may be the first elements of each
    axis alone."""
    from tile_kernels.measured import errors

    tensors = {}
    for name, exact in case.expected.items():
        tensor = getattr(case.arguments[name], "base", case.arguments[name])  # of a descriptor
        tensors[name] = tensor[tuple(slice(0, size) for size in exact.shape)]
    found = errors(case, tensors)
    worst = max(found, key=lambda name: found[name])
    if found[worst] > 1:
        raise ValueError(f"expected '{worst}' to be PyTorch's, but it is off by {found[worst]:.3g} of what is allowed")
    return found[worst]


def rows_of(by: str, pattern: str, seed: int) -> list[dict[str, Any]]:
    """What a process of its own measures by Weft or by Triton."""
    context = multiprocessing.get_context("spawn")
    results: Any = context.Queue()
    process = context.Process(target=timed, args=(by, pattern, seed, results))
    process.start()
    found: list[dict[str, Any]] = []
    while (row := _next(process, results)) is not None:
        found.append(row)
    process.join()
    return found


def _next(process: Any, results: Any) -> dict[str, Any] | None:
    import queue

    while True:
        try:
            row: dict[str, Any] | None = results.get(timeout=1)
            return row
        except queue.Empty:
            if not process.is_alive():
                return None


def show(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], console: Console) -> None:
    """A line a kernel, and the median of ratios."""
    table = Table(title="Tile kernels on the GPU: Weft over Triton")
    for name in ("kernel", "Weft, ms", "Triton, ms", "ratio", "Weft, GB/s", "Weft, TFLOP/s"):
        table.add_column(name, justify="left" if name == "kernel" else "right")
    peers = {row["name"]: row for row in theirs}
    ratios = []
    for row in ours:
        peer = peers.get(row["name"], {"error": "not measured"})
        ratio = "" if row["error"] or peer["error"] else row["ms"] / peer["ms"]
        ratios += [ratio] if ratio else []
        cells = [f"{row['ms']:.3f}" if not row["error"] else "failed"]
        cells += [f"{peer['ms']:.3f}" if not peer["error"] else "failed", f"{ratio:.2f}" if ratio else ""]
        cells += ["", ""] if row["error"] else [f"{row['GB/s']:.0f}", f"{row['TFLOP/s']:.0f}" if row["TFLOP/s"] else ""]
        table.add_row(row["name"], *cells)
    console.print(table)
    for row in (*ours, *theirs):
        if row["error"]:
            console.print(f"{row['by']}, {row['name']}: {row['error']}", markup=False, highlight=False)
    if ratios:
        above = sum(ratio > 1.02 for ratio in ratios)
        middle = statistics.median(ratios)
        console.print(f"{len(ratios)} kernels: median {middle:.3f}, worst {max(ratios):.2f}, above 1.02: {above}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Time tile kernels on a GPU beside Triton's.")
    parser.add_argument("--only", default="", help="kernels whose names match this regular expression")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=pathlib.Path, help="also write every figure here")
    options = parser.parse_args()
    console = Console(width=120)
    ours, theirs = (rows_of(by, options.only, options.seed) for by in ("Weft", "Triton"))
    show(ours, theirs, console)
    if options.json:
        options.json.write_text(json.dumps(ours + theirs, indent=1))
    return 1 if any(row["error"] for row in ours) or not ours else 0


if __name__ == "__main__":
    raise SystemExit(main())
