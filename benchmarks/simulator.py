# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How fast the simulator is, in processor time, so that other load on the machine does not count.

    python benchmarks/simulator.py [--beside CHECKOUT]

Targets: 3e8 thread-instructions a second per core with checks off, 1e8 with all on, 3e9 multiply-adds a second per core
in mma.sync and 8e9 in wgmma and tcgen05, 2e9 bytes a second of bulk copies; in wall-clock time, two cores close to
twice as fast as one, and the demo's largest flash-attention case, all checks on, in at most 3 seconds.

With --beside the same kernels run by the simulator of another checkout of Weft, which is built, turn by turn: memory
and barriers are to be twice as fast as at commit af18c01.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # NumPy's idle threads spin, and would count as the simulator's time

ROOT = pathlib.Path(__file__).resolve().parents[1]
# last, so that PYTHONPATH may name another checkout's package
sys.path += [str(ROOT / "test" / "Simulator"), str(ROOT / "python")]

import hopper_kernels  # noqa: E402
import numpy as np  # noqa: E402
import tensor_kernels  # noqa: E402
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


def wgmma(b_major: int) -> str:
    """Products of 64 x 128 x 64 of a warpgroup, bf16, both operands in shared memory: B by k, or by n."""
    d = "{" + ", ".join(f"%f{i}" for i in range(64)) + "}"
    near, far = (8192, 1024) if b_major else (16, 1024)
    steps = ""
    for k in range(4):
        a = hopper_kernels.descriptor(32 * k, 16, 1024, 128)
        b = hopper_kernels.descriptor(8192 + (2048 if b_major else 32) * k, near, far, 128)
        steps += f"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {d}, {a}, {b}, 1, 1, 1, 0, {b_major};\n"
    fill = "".join(f"st.shared.v4.u32 [%r4+{at}], {{%r0, %r0, %r0, %r0}};\n" for at in range(0, 24576, 2048))
    return hopper_kernels.kernel(
        f"""shl.b32 %r4, %r0, 4; add.u32 %r4, %r1, %r4; {fill} fence.proxy.async.shared::cta; bar.sync 0;
{"".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(64))} mov.u32 %r9, 0;
L: wgmma.fence.sync.aligned;
{steps}wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 200; @%p1 bra L;""",
        shared=24576,
    )


#: 16 KB at a time, which all threads wait for
BULK = hopper_kernels.kernel(
    f"""{hopper_kernels.INIT} mov.u32 %r9, 0;
L: {hopper_kernels.expect(16384)} {hopper_kernels.bulk_load(16384)}
and.b32 %r10, %r9, 1;
{hopper_kernels.wait("%r10")} bar.sync 0;
add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 2000; @%p2 bra L;""",
    shared=16384,
)

#: Boxes of 128 x 64 of 16 bits, swizzled, by a tensor map
BOXES = hopper_kernels.kernel(
    f"""{hopper_kernels.MAPPED}{hopper_kernels.INIT} mov.u32 %r9, 0;
L: {hopper_kernels.expect(16384)} {hopper_kernels.tensor_load(("0", "0"), 16384)}
and.b32 %r10, %r9, 1;
{hopper_kernels.wait("%r10")} bar.sync 0;
add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 2000; @%p2 bra L;""",
    parameters=hopper_kernels.MAP,
    shared=16384,
)


def tcgen05() -> str:
    """Products of 128 x 128 x 64 in tensor memory, bf16, both operands in shared memory and by k."""
    steps = ""
    for k in range(4):
        a, b = (tensor_kernels.descriptor(at + 32 * k, 16, 1024, 128) for at in (0, 16384))
        shape = tensor_kernels.instruction(128, 128, "bf16", "bf16")
        steps += tensor_kernels.multiply("f16", a, b, shape, adds="%p4" if k else "%p3")
    fill = "".join(f"st.shared.v4.u32 [%r4+{at}], {{%r0, %r0, %r0, %r0}};\n" for at in range(0, 32768, 2048))
    return tensor_kernels.kernel(
        f"""{tensor_kernels.INIT}{tensor_kernels.alloc(128)}
shl.b32 %r4, %r0, 4; add.u32 %r4, %r1, %r4; {fill} fence.proxy.async.shared::cta; {tensor_kernels.MEET}
mov.u32 %r11, 0; setp.eq.u32 %p4, 0, 0;
L: setp.ne.u32 %p3, %r11, 0; and.b32 %r10, %r11, 1;
{steps}{tensor_kernels.commit()}{tensor_kernels.wait("%r10", "%r3")}{tensor_kernels.MEET}
add.u32 %r11, %r11, 1; setp.lt.u32 %p5, %r11, 200; @%p5 bra L;
{tensor_kernels.dealloc(128)}""",
        shared=32768,
    )


@dataclass(frozen=True)
class Run:
    """A launch, and the counter that its rate is of."""

    text: str
    block: int
    checks: str
    counter: str = "thread_instructions"
    unit: str = "thread-instructions"
    name: str = "k"
    grid: int = 1
    arguments: Callable[[], list] = lambda: [np.zeros(8192, np.uint32)]
    shared: int = 0

    def seconds(self, threads: int = 1, clock: Callable[[], float] = time.process_time) -> tuple[float, dict]:
        """The best of three, and the counters."""
        best, counters = float("inf"), {}
        for _ in range(3):
            arguments = self.arguments()
            options = {"shared": self.shared} if self.shared else {}
            started = clock()
            report = simulator.launch(
                self.text, self.name, self.grid, self.block, arguments, checks=self.checks, threads=threads, **options
            )
            best = min(best, clock() - started)
            assert not report.findings, report.findings
            counters = report.counters
        return best, counters

    def rate(self) -> float:
        """Of the counter, a second of a core."""
        best, counters = self.seconds()
        return counters[self.counter] / best


def triton_matmul(checks: str) -> Run | None:
    """Triton's product of 512 x 512 x 512, tiles of 64 x 64 x 32; None where there is no Triton."""
    try:
        import triton
    except ImportError:
        return None
    from corpus import triton_kernels
    from corpus.triton_cases import TritonCase
    from test_corpus_triton import compile_case, parameter_count

    types = dict(zip("abcMNK", ["*fp16", "*fp16", "*fp32", "i32", "i32", "i32"], strict=True))
    tile = {"BM": 64, "BN": 64, "BK": 32}
    made = compile_case(TritonCase(triton_kernels.matmul, types, tile, lambda _: None, {"num_warps": 4}))
    assert isinstance(made, triton.compiler.CompiledKernel)
    text = made.asm["ptx"]

    def arguments() -> list:
        x = np.ones((512, 512), np.float16)
        own = [x, x.copy(), np.zeros((512, 512), np.float32), *[np.int32(512)] * 3]
        return own + [np.uint64(0)] * (parameter_count(text) - len(own))

    name = re.search(r"\.entry\s+(\w+)", text)[1]
    return Run(text, 128, checks, name=name, grid=64, arguments=arguments, shared=made.metadata.shared)


def tensor_arguments() -> list:
    mapped = simulator.tensor_map(np.zeros((256, 256), np.uint16), (128, 64), "128B")
    return [mapped, np.zeros(4, np.uint32)]


def runs() -> dict[str, Run]:
    """What is measured, by what is said of it."""
    found = {}
    for checks in ("none", "all"):
        found[f"arithmetic, checks {checks}"] = Run(ARITHMETIC, 128, checks)
        found[f"memory and barriers, checks {checks}"] = Run(MEMORY, 128, checks)
        matmul = triton_matmul(checks)
        if matmul:
            found[f"Triton's matmul, checks {checks}"] = matmul
    found["mma.sync"] = Run(MATRIX, 32, "all", "mma_macs", "multiply-adds")
    for checks in ("none", "all"):
        for b_major, along in enumerate("kn"):
            text = wgmma(b_major)
            found[f"wgmma, B by {along}, checks {checks}"] = Run(text, 128, checks, "mma_macs", "multiply-adds")
        found[f"tcgen05, checks {checks}"] = Run(tcgen05(), 128, checks, "mma_macs", "multiply-adds")
        found[f"bulk copies, checks {checks}"] = Run(BULK, 128, checks, "bulk_bytes_read", "bytes")
        found[f"boxes of tensors, checks {checks}"] = Run(
            BOXES, 128, checks, "bulk_bytes_read", "bytes", arguments=tensor_arguments
        )
    return found


def rates() -> dict[str, float]:
    """By name; those that this simulator has."""
    found = {}
    for name, run in runs().items():
        try:
            found[name] = run.rate()
        except Exception as error:
            print(f"{name}: {error}", file=sys.stderr)
    return found


def flash_attention() -> float:
    """Seconds of the call on B1 H4 N1024 D64, causal, f16, compiled before."""
    import torch
    from weft.demo.cases import flash_case

    case = flash_case(torch.float16, 64, True, (1, 4, 1024))
    return min(case.judge().seconds for _ in range(3))


def rates_of(checkout: pathlib.Path) -> dict[str, float]:
    """What the simulator of a checkout reaches, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "python")}
    command = [sys.executable, str(pathlib.Path(__file__).resolve()), "--json"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def beside(checkout: pathlib.Path) -> None:
    """Both simulators turn by turn, the best of three turns of each."""
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(3):
        for each, where in zip(best, (ROOT, checkout), strict=True):
            for name, rate in rates_of(where).items():
                each[name] = max(rate, each.get(name, 0.0))
    for name, run in runs().items():
        here, there = (each.get(name) for each in best)
        ratio = f"{there:.2e} there, {here / there:.2f} times" if here and there else "not there"
        print(f"{name}: {here or 0:.2e} {run.unit} a second per core; {ratio}")


def show() -> None:
    for name, run in runs().items():
        print(f"{name}: {run.rate():.2e} {run.unit} a second per core")
    cores = min(2, os.cpu_count() or 1)
    whole = Run(ARITHMETIC, 128, "none", grid=8)
    one, many = (whole.seconds(n, time.perf_counter)[0] for n in (1, cores))
    print(f"{cores} threads: {one / many:.2f} times as fast as one")
    print(f"flash attention 1x4x1024x64 causal, checks all, {cores} threads: {flash_attention():.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=pathlib.Path, metavar="CHECKOUT", help="another checkout of Weft, built")
    parser.add_argument("--json", action="store_true", help="print the rates alone")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(rates()))
    elif options.beside:
        beside(options.beside)
    else:
        show()


if __name__ == "__main__":
    main()
