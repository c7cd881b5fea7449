# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the gated attention unit costs: multiply-adds beside the algorithm's, instructions, registers and spills.

    python benchmarks/gau.py [--length N] [--head d] [--values Dv]

Compiled for sm_80 and run on the simulator, forward and backward, full attention. The algorithm's multiply-adds for
each pair of tokens: forward d + Dv (scores, output); backward 3 d + 2 Dv (scores again, dP, dq, dk, dv). Values wider
than a program holds cost the scores once more for each part of their channels. Where dq came from one kernel and dk
from another, and every sum was owned by one program, it would be 4 d + 3 Dv and those. "fast" is deterministic=False:
dq is added up in any order, and nobody waits for a turn.
"""

from __future__ import annotations

import argparse
import time

import torch
import weft
from backward import kernels_of
from weft.compiler.ptxas import assemble, find_tool
from weft.programs.compiled import compiled
from weft.testing.plans import counted

TARGET = "sm_80"
MOST = 1.5  # of the algorithm's multiply-adds


@weft.program
def gau(u, v, g, kappa_q, mu_q, kappa_k, mu_k, *, deterministic=True):
    q = kappa_q * u + mu_q
    k = kappa_k * u + mu_k
    return weft.diag(g) @ weft.softmax(q, k, deterministic=deterministic) @ v


def inputs(length: int, head: int, values: int) -> list[torch.Tensor]:
    shapes = [(1, 1, length, head), (1, 1, length, values), (1, 1, length, values), *[(head,)] * 4]
    return [torch.randn(shape).half() for shape in shapes]


def show(name: str, run, algorithm: dict[str, int], texts: dict[str, str]) -> None:
    macs = run.total("mma_macs")
    print(f"{name}: {macs:,} multiply-adds, {run.total('warp_instructions'):,} instructions")
    for title, each in algorithm.items():
        print(f"  {macs / each:.3f} of {title}, {each:,}")
    for launched in run.launches:
        counters = launched.report.counters
        line = f"  {launched.kernel:32}{counters['mma_macs']:>16,} multiply-adds"
        line += f"{counters['warp_instructions']:>12,} instructions"
        resources = assemble(texts[launched.kernel], TARGET) if find_tool("ptxas") else None
        if resources is not None:
            spilled = resources.spilled_bytes
            line += f"  {resources.registers} registers, {spilled} bytes spilled"
        print(line)


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the work of the gated attention unit.")
    parser.add_argument("--length", type=int, default=256, help="tokens")
    parser.add_argument("--head", type=int, default=128)
    parser.add_argument("--values", type=int, default=1536)
    given = parser.parse_args()
    d, Dv, pairs = given.head, given.values, given.length**2
    arrays = inputs(given.length, d, Dv)
    traced = gau.trace(gau.bind(tuple(arrays), {}))
    start = time.perf_counter()
    form = compiled(traced, TARGET, True)
    took = time.perf_counter() - start
    print(f"GAU, {given.length} tokens, d {d}, Dv {Dv}, fp16; forward and backward compiled in {took:.2f} s")
    print("  (from the cache)" if form.cached else "  (cold)")
    runs, texts = counted(gau, *arrays), kernels_of(form.ptx)
    show("forward", runs["forward"], {f"the algorithm (limit {MOST})": pairs * (d + Dv)}, texts)
    algorithm = {
        "the algorithm": pairs * (3 * d + 2 * Dv),
        "the same in kernels that own their sums": pairs * (4 * d + 3 * Dv),
    }
    show("backward", runs["backward"], algorithm, texts)
    fast = gau.trace(gau.bind(tuple(arrays), {"deterministic": False}))
    texts = kernels_of(compiled(fast, TARGET, True).ptx)
    show("fast backward", counted(gau, *arrays, deterministic=False)["backward"], algorithm, texts)


if __name__ == "__main__":
    main()
