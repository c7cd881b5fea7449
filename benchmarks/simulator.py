# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How fast the simulator is, in processor time, so that other load on the machine does not count.

    python benchmarks/simulator.py

Targets: 3e8 thread-instructions a second per core with checks off, 1e8 with all on, 3e9 multiply-adds a second per core
in matrix instructions; in wall-clock time, two cores close to twice as fast as one, and the demo's largest
flash-attention case, all checks on, in at most 3 seconds.
"""

from __future__ import annotations

import os
import pathlib
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy's idle threads spin, and would count as the simulator's time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test" / "Simulator"), str(ROOT / "python")]

import numpy as np  # noqa: E402
import weft.simulator as simulator  # noqa: E402
from snippets import kernel  # noqa: E402

ARITHMETIC = kernel(
    """
  mov.u32 %r1, 0; cvt.rn.f32.u32 %f1, %r0; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.u32 %r2, %r0;
L: fma.rn.f32 %f2, %f2, %f1, %f3; add.u32 %r2, %r2, %r0; mul.f32 %f3, %f2, %f1; xor.b32 %r3, %r2, %r1;
  max.f32 %f4, %f2, %f3; add.f32 %f3, %f3, %f4; mad.lo.u32 %r2, %r3, %r0, %r2; add.f32 %f2, %f2, %f3;
  add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 10000; @%p1 bra L;
  st.global.f32 [%d1], %f2; st.global.u32 [%d1], %r2;"""
)

# Every thread passes through shared memory what it read from global memory, a barrier between.
MEMORY = kernel(
    """
  mov.u32 %r1, s; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2; xor.b32 %r4, %r2, 2032; add.u32 %r4, %r1, %r4;
  mul.wide.u32 %d2, %r0, 16; add.s64 %d2, %d0, %d2; mov.u32 %r9, 0;
L: ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d2]; st.shared.v4.u32 [%r3], {%r5, %r6, %r7, %r8}; bar.sync 0;
  ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4]; add.u32 %r5, %r5, %r6; add.u32 %r7, %r7, %r8; bar.sync 0;
  st.global.v2.u32 [%d2], {%r5, %r7}; add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 20000; @%p1 bra L;""",
    shared=2048,
)

PRODUCT = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{d}}}, {{%r2, %r3, %r4, %r5}}, {{%r6, %r7}}, {{{d}}};"
MATRIX = kernel(
    "mov.u32 %r1, 0;"
    + "".join(f"mov.u32 %r{i}, {i * 0x10001};" for i in range(2, 8))
    + "".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(16))
    + "\nL: "
    + "\n".join(PRODUCT.format(d=", ".join(f"%f{4 * i + j}" for j in range(4))) for i in range(4))
    + "add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 20000; @%p1 bra L;"
)


def seconds(
    text: str, block: int, checks: str, *, grid: int = 1, threads: int = 1, clock=time.process_time
) -> tuple[float, dict]:
    """The best of three runs, and the counters."""
    best, counters = float("inf"), {}
    for _ in range(3):
        x = np.zeros(4 * block, np.uint32)
        started = clock()
        report = simulator.launch(text, "k", grid, block, [x], checks=checks, threads=threads)
        best = min(best, clock() - started)
        assert not report.findings, report.findings
        counters = report.counters
    return best, counters


def flash_attention() -> float:
    """Seconds of the call on B1 H4 N1024 D64, causal, f16, compiled before."""
    import torch
    from weft.demo.cases import flash_case

    case = flash_case(torch.float16, 64, True, (1, 4, 1024))
    return min(case.judge().seconds for _ in range(3))


def main() -> None:
    for name, text in (("arithmetic", ARITHMETIC), ("memory and barriers", MEMORY)):
        for checks in ("none", "all"):
            time_taken, counters = seconds(text, 128, checks)
            rate = counters["thread_instructions"] / time_taken
            print(f"{name}, checks {checks}: {rate:.2e} thread-instructions a second per core")
    time_taken, counters = seconds(MATRIX, 32, "all")
    print(f"matrix instructions: {counters['mma_macs'] / time_taken:.2e} multiply-adds a second per core")
    cores = min(2, os.cpu_count() or 1)
    one, many = (seconds(ARITHMETIC, 128, "none", grid=8, threads=n, clock=time.perf_counter)[0] for n in (1, cores))
    print(f"{cores} threads: {one / many:.2f} times as fast as one")
    print(f"flash attention 1x4x1024x64 causal, checks all, {cores} threads: {flash_attention():.2f} s")


if __name__ == "__main__":
    main()
