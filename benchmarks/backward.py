# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The backward of dense attention that Weft generates from one line, beside one written by hand for Triton.

    python benchmarks/backward.py [--length N]

Both compiled for sm_80 and run on the simulator on the same inputs, delta included: dynamic instructions (a warp's),
matrix instructions among them, registers and spills by ptxas. Triton's is benchmarks/triton_backward.py, in the
structure of its fused-attention tutorial with the tutorial's blocks. Target for the full pattern: at most 0.9 of
Triton's instructions, no spills. "fast" is what deterministic=False gives: one pass, dq added up in memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import re
from dataclasses import dataclass, field

import numpy as np
import torch
import weft
import weft.simulator
from weft.compiler.ptxas import assemble, find_tool
from weft.programs.compiled import compiled
from weft.testing import masks
from weft.testing.attention import Domain, attention
from weft.testing.plans import run_plan

TARGET = "sm_80"
MOST = 0.9  # of Triton's instructions, for the full pattern
MMA_MACS = 16 * 8 * 16


@dataclass
class Cost:
    """What a backward takes: one entry a kernel."""

    instructions: dict[str, int] = field(default_factory=dict)
    matrix: int = 0
    registers: dict[str, int] = field(default_factory=dict)
    spill_bytes: int = 0
    error: float = 0.0
    """largest error of a gradient, against float64, in units of the gradient's largest element"""

    @property
    def total(self) -> int:
        return sum(self.instructions.values())

    def add(self, kernel: str, counters: dict[str, int], ptx: str) -> None:
        self.instructions[kernel] = counters["warp_instructions"]
        self.matrix += counters["mma_macs"] // MMA_MACS
        resources = assemble(ptx, TARGET)
        if resources is not None:
            self.registers[kernel] = resources.registers
            self.spill_bytes += resources.spill_store_bytes + resources.spill_load_bytes


@dataclass
class Inputs:
    """Operands in fp16, the forward's results, and the gradients in float64."""

    D: int
    causal: bool
    length: int

    def __post_init__(self) -> None:
        size = (1, 1, self.length, self.D)
        self.q, self.k, self.v, self.grad = (torch.randn(size).half() for _ in range(4))
        leaves = [x.double().requires_grad_() for x in (self.q, self.k, self.v)]
        mask = masks.causal(self.length, self.length) if self.causal else None
        out, lse = attention(leaves[0], [Domain(leaves[1], leaves[2], mask)])
        self.out, self.lse = out.detach().half(), lse.detach().float()
        self.exact = torch.autograd.grad(out, leaves, self.grad.double())

    def error(self, found: list[np.ndarray]) -> float:
        return max(
            float((torch.from_numpy(x).double() - exact).abs().max() / exact.abs().max())
            for x, exact in zip(found, self.exact, strict=True)
        )


@weft.program
def dense(q, k, v, *, pattern, deterministic=True):
    return weft.softmax(q, k, pattern, deterministic=deterministic) @ v


def kernels_of(ptx: str) -> dict[str, str]:
    """A module's kernels, each as a module of its own."""
    head, *parts = re.split(r"(?=^\.visible \.entry)|(?=^// -- Begin function)", ptx, flags=re.MULTILINE)
    found = {}
    for part in parts:
        entry = re.search(r"\.entry (\w+)", part)
        if entry:
            found[entry.group(1)] = head + part
    return found


def ours(inputs: Inputs, deterministic: bool = True) -> Cost:
    """The backward that Weft generates, at its default schedules; in one pass where it need not be deterministic."""
    given = {"pattern": weft.causal() if inputs.causal else weft.full(), "deterministic": deterministic}
    traced = dense.trace(dense.bind((inputs.q, inputs.k, inputs.v), given))
    form = compiled(traced, TARGET, True)
    arrays = [x.numpy() for x in (inputs.q, inputs.k, inputs.v, inputs.out, inputs.lse, inputs.grad)]
    cost, texts = Cost(), kernels_of(form.ptx)
    ran = run_plan(form.ptx, form.info, f"{form.traced.name}.backward", arrays, checks="none")
    gradients = list(ran.outputs.values())
    for launched in ran.launches:
        cost.add(launched.kernel, launched.report.counters, texts[launched.kernel])
    cost.error = inputs.error(gradients)
    return cost


def tritons(inputs: Inputs) -> Cost:
    """Triton's: keys are multiplied with the scale, and the LSE is in base 2, before it begins."""
    import triton_backward

    cost, N, D = Cost(), inputs.length, inputs.D
    scale, delta = D**-0.5, np.full((1, 1, N), np.nan, np.float32)
    keys = (inputs.k * (scale / math.log(2))).numpy()
    results = [np.full((1, 1, N, D), np.nan, np.float16) for _ in range(3)]
    strides = [np.int32(x) for x in inputs.q.stride()[:3]]
    lse = (inputs.lse / math.log(2)).numpy()
    q, v, out, grad = (x.numpy() for x in (inputs.q, inputs.v, inputs.out, inputs.grad))

    def launch(kernel, grid, arguments):
        arguments = [*arguments, *[np.uint64(0)] * (kernel.parameters - len(arguments))]
        report = weft.simulator.launch(
            kernel.ptx, kernel.name, grid, (128,), arguments, shared=kernel.shared_bytes, checks="none"
        )
        cost.add(kernel.name, report.counters, kernel.ptx)

    launch(triton_backward.delta(D), (N // 128, 1), [out, grad, delta, np.int32(N)])
    arguments = [q, keys, v, np.float32(scale), grad, *results, lse, delta, *strides, np.int32(1), np.int32(N)]
    launch(triton_backward.backward(D, inputs.causal), (N // 128, 1, 1), arguments)
    cost.error = inputs.error(results)
    return cost


def show(title: str, cost: Cost) -> None:
    parts = ", ".join(f"{name} {count:,}" for name, count in cost.instructions.items())
    registers = ", ".join(str(count) for count in cost.registers.values()) or "?"
    print(f"  {title:7}{cost.total:>10,} instructions, {cost.matrix:,} of them matrix products ({parts})")
    print(f"         registers {registers}; {cost.spill_bytes} bytes spilled; largest error {cost.error:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the generated backward of attention with Triton's.")
    parser.add_argument("--length", type=int, default=1024, help="queries and keys, a multiple of 128")
    length = parser.parse_args().length
    peer = importlib.util.find_spec("triton") is not None
    if find_tool("ptxas") is None:
        print("ptxas was not found: no registers and spills")
    for D in (64, 128):
        for masked in (False, True):
            inputs = Inputs(D, masked, length)
            mine = ours(inputs)
            print(f"D {D}, {'causal' if masked else 'full'}, {length} queries and keys, fp16")
            show("Weft", mine)
            show("fast", ours(inputs, deterministic=False))
            if peer:
                theirs = tritons(inputs)
                show("Triton", theirs)
                ratio = mine.total / theirs.total
                verdict = "" if masked else f"   limit {MOST}: {'met' if ratio <= MOST else 'MISSED'}"
                print(f"  ratio {ratio:.3f}{verdict}")


if __name__ == "__main__":
    main()
