# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What SAS costs beside multi-head attention, counted by the simulator.

    python benchmarks/sas.py [--json] [--taps 3] [--gpu A100]

Three tables. The expansion kernels: multiply-adds by matrix instructions over the algorithm's; bytes between
multiprocessors and memory (global sectors) over input + weights + output, as counted, where every program reads the
weights anew, and with the weights' repeated reads taken off, which L2 serves; and registers and spills as ptxas reports
them. Limit: 1.15. Then SAS's forward (the expansions of q, k and v, and causal attention over 36 heads of 96 and 64)
against multi-head attention (12 heads of 64) at the paper's 125M sizes, one sequence; projections, which both have, are
left out.

All programs of an expansion do the same, so it is counted over 128 tokens and multiplied; all heads of an attention
do the same, so one is counted, over all its tokens.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import torch
import weft
from weft.compiler import ptxas
from weft.programs import compiled as programs
from weft.testing.expansion import Expansion, compiled
from weft.testing.plans import Run, run_plan

SECTOR_BYTES = 32
COUNTED_TOKENS = 128
LENGTHS = [512, 1024, 2048, 4096]
#: heads, expanded heads, head size, expanded head size
SMALL, MEDIUM = (12, 36, 64, 96), (16, 48, 64, 96)


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


def operand(sizes: tuple[int, int, int, int], taps: int, values: bool) -> Expansion:
    heads, wide, d, e = sizes
    return Expansion(heads, wide, d, 0 if values else e, taps)


def cost(run: Run, times: float, gpu: str) -> dict[str, float]:
    """Of all launches together, ``times`` over."""
    sectors = run.total("global_sectors_read") + run.total("global_sectors_written")
    seconds = sum(launched.report.profile.roofline(gpu).limit.seconds for launched in run.launches)
    counts = {
        "multiply-adds": run.total("mma_macs"),
        "bytes": SECTOR_BYTES * sectors,
        "instructions": run.total("warp_instructions"),
        "seconds": seconds,
    }
    return {name: value * times for name, value in counts.items()}


def count_expansion(expansion: Expansion, gpu: str) -> dict[str, Any]:
    """Cost of ``COUNTED_TOKENS``, and how that compares."""
    ptx, info = compiled(expansion.text())
    inputs = expansion.inputs(torch.Generator().manual_seed(0), 1, COUNTED_TOKENS)
    run = run_plan(ptx, info, "f", [x.numpy() for x in inputs], checks="none")
    found = cost(run, 1, gpu)
    moved, weights = expansion.bytes(1, COUNTED_TOKENS)
    programs = int(np.prod(run.launches[0].grid))
    resources = ptxas.assemble(ptx, "sm_80", run.launches[0].kernel)
    return {
        **found,
        "launches": len(run.launches),
        "products": found["multiply-adds"] / expansion.multiply_adds(1, COUNTED_TOKENS),
        "all sectors": found["bytes"] / (moved + weights),
        "weights once": (found["bytes"] - (programs - 1) * weights) / (moved + weights),
        "programs": programs,
        "registers": resources.registers if resources else None,
        "spilled": resources.spill_store_bytes + resources.spill_load_bytes if resources else None,
        "shared": info["kernels"][0]["shared_bytes"],
    }


def count_attention(tokens: int, heads: int, d: int, e: int, gpu: str) -> dict[str, float]:
    q, k, v = (torch.randn(1, 1, tokens, size).half() for size in (e, e, d))
    traced = causal.trace(causal.bind([q, k, v], {}))
    form = programs.compiled(traced, "sm_80", False)
    run = run_plan(form.ptx, form.info, traced.name, [q.numpy(), k.numpy(), v.numpy()], checks="none")
    return cost(run, heads, gpu)


def against_attention(taps: int, gpu: str) -> dict[int, dict[str, dict[str, float]]]:
    heads, wide, d, e = SMALL
    keys, values = (count_expansion(operand(SMALL, taps, v), gpu) for v in (False, True))
    table = {}
    for tokens in LENGTHS:
        plain = count_attention(tokens, heads, d, d, gpu)
        expanded = {n: (2 * keys[n] + values[n]) * tokens / COUNTED_TOKENS for n in plain}
        attended = count_attention(tokens, wide, d, e, gpu)
        both = {n: expanded[n] + attended[n] for n in plain}
        table[tokens] = {"attention": plain, "SAS": both, "of it expansion": expanded}
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--taps", type=int, default=3, help="taps of the convolutions in the second table")
    parser.add_argument("--gpu", default="A100", help="whose roofline")
    options = parser.parse_args()
    kernels = {
        f"H {sizes[0]} to {sizes[1]}, {taps} taps, {'v' if values else 'q and k'}": count_expansion(
            operand(sizes, taps, values), options.gpu
        )
        for sizes in (SMALL, MEDIUM)
        for taps in (1, 3, 5, 7)
        for values in (False, True)
    }
    table = against_attention(options.taps, options.gpu)
    if options.json:
        print(json.dumps({"kernels": kernels, "against attention": table}, indent=2))
        return
    print(f"expansion kernels over {COUNTED_TOKENS} tokens, over the algorithm's (limit 1.15)")
    columns = ("launches", "products", "all sectors", "weights once", "registers", "spilled", "shared")
    print(f"  {'':32}" + "".join(f"{name:>14}" for name in columns))
    for name, found in kernels.items():
        cells = (f"{found[c]:14.3f}" if isinstance(found[c], float) else f"{found[c]!s:>14}" for c in columns)
        print(f"  {name:32}" + "".join(cells))
    print(
        f"\nSAS and multi-head attention at the 125M sizes, {options.taps} taps, forward; least time on {options.gpu}"
    )
    print(f"  {'tokens':>8} {'':16} {'multiply-adds':>16} {'bytes':>16} {'instructions':>14} {'roofline':>11}")
    for tokens, rows in table.items():
        for name, found in rows.items():
            print(
                f"  {tokens:8} {name:16} {found['multiply-adds']:16,.0f} {found['bytes']:16,.0f}"
                f" {found['instructions']:14,.0f} {found['seconds'] * 1e6:8.1f} us"
            )


if __name__ == "__main__":
    main()
