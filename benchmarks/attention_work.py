# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What generated attention kernels cost: bytes, and work against length, counted by the simulator.

    python benchmarks/attention_work.py [--json]

Two tables. Bytes that SEMA's forward moves over those of reading q and k once, v twice and writing the output once:
limit 1.15 of inference; training also stores the attention's own output. A window's forward and backward over growing
lengths: instructions, products and bytes a token, which stay as they are.
"""

from __future__ import annotations

import argparse
import json

import torch
import weft
from weft.programs.compiled import compiled
from weft.testing.plans import Launched, counted, run_plan

SECTOR_BYTES = 32
#: tokens, head size, window, grid
SEMA_SIZES = [
    (4096, 64, 64, None),
    (4096, 128, 128, None),
    (4096, 64, 256, None),
    (1024, 32, 16, None),
    (1024, 128, 256, None),
    (3136, 32, (7, 7), (56, 56)),
    (784, 32, (7, 7), (28, 28)),
    (784, 64, (8, 8), (28, 28)),
    (784, 32, (14, 14), (28, 28)),
]
LENGTHS = [1024, 2048, 4096, 8192]


@weft.program
def sema(q, k, v, lepe, *, window, grid=None):
    q, k = weft.rope(q, k, window=window, grid=grid)
    local = weft.softmax(q, k, weft.block_window(window, grid=grid))
    return (local + weft.mean() + weft.toeplitz(lepe, centred=True, grid=grid)) @ v


@weft.program
def sliding(q, k, v):
    return weft.softmax(q, k, weft.window(256, 0)) @ v


def operands(tokens, head, taps):
    return [*(torch.randn(1, 2, tokens, head).half() for _ in range(3)), torch.randn(taps, 2 * head).half()]


def sema_bytes(case: int) -> dict[str, float]:
    """Bytes moved over the least, of SEMA's forward without a backward, in launches and altogether, and with one."""
    tokens, head, window, grid = SEMA_SIZES[case]
    arrays = operands(tokens, head, 9 if grid else 3)
    traced = sema.trace(sema.bind(arrays, {"window": window, "grid": grid}))
    least = 5 * 2 * arrays[0].numel()
    parts: dict[str, float] = {}
    for training in (False, True):
        form = compiled(traced, "sm_80", training)
        name = traced.name + (".forward" if training else "")
        run = run_plan(form.ptx, form.info, name, [array.numpy() for array in arrays], checks="none")
        if not training:
            parts = {launched.kernel: moved([launched]) / least for launched in run.launches}
        parts["training" if training else "all"] = moved(run.launches) / least
    return parts


def moved(launches: list[Launched]) -> int:
    """Bytes that launches read and write."""
    counters = [launched.report.counters for launched in launches]
    return SECTOR_BYTES * sum(each["global_sectors_read"] + each["global_sectors_written"] for each in counters)


def work(tokens: int) -> dict[str, dict[str, float]]:
    """Cost of a window of 256 a token, forward and backward."""
    arrays = operands(tokens, 64, 1)[:3]
    found = {}
    for part, run in counted(sliding, *arrays).items():
        found[part] = {
            "instructions": run.total("warp_instructions") / tokens,
            "products": run.total("mma_macs") / tokens,
            "bytes": moved(run.launches) / tokens,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    names = [f"{n} tokens, head {d}, window {w}" + (f" of {g}" if g else "") for n, d, w, g in SEMA_SIZES]
    result = {
        "bytes of SEMA's forward / least": {name: sema_bytes(case) for case, name in enumerate(names)},
        "window of 256, a token": {tokens: work(tokens) for tokens in LENGTHS},
    }
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print("SEMA's forward: bytes moved / least (limit 1.15)")
    for name, parts in result["bytes of SEMA's forward / least"].items():
        kernels = ", ".join(f"{name} {value:.2f}" for name, value in parts.items() if name not in ("all", "training"))
        print(f"  {name:45} {parts['all']:6.2f}   ({kernels}; training {parts['training']:.2f})")
    print("\na window of 256 over length, 2 heads of 64, a token")
    print(f"  {'tokens':>8} {'':8} {'instructions':>14} {'products':>14} {'bytes':>10}")
    for tokens, parts in result["window of 256, a token"].items():
        for part, cost in parts.items():
            print(
                f"  {tokens:8} {part:8} {cost['instructions']:14,.0f} {cost['products']:14,.0f} {cost['bytes']:10,.0f}"
            )


if __name__ == "__main__":
    main()
