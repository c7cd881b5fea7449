# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How much code the interior loop of flash attention takes: machine instructions per warp and block of keys.

    python benchmarks/interior_loop.py [--target sm_90a] [--lengths 1024,4096,16384]

Sliding-window causal attention walks the key blocks of a row of blocks in three loops: those that the window's far end
cuts, those wholly inside, and those that the diagonal cuts. The loop in the middle does no mask arithmetic; what is
left is the algorithm's own work. This counts its instructions by class in the machine code that ptxas makes: of a tile
kernel, beside what Triton makes of the same source where Triton is installed, and of the kernel that the program
softmax(q, k, window) @ v becomes. On targets with matrix instructions of warpgroups the kernel's tile is 64 rows of a
warpgroup by 128 keys, as FlashAttention-3's and FlashAttention-4's are, whose counts are printed beside, those of loops
whose masks cut blocks too. Weft's warps pass over the products of sums and factors in iterations in which no maximum of
their rows grows; what those take where one does is printed beside. The others multiply always.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import torch
import weft
import weft.language as wl
from weft.compiler.ptxas import assemble, find_tool
from weft.compiler.signature import parse
from weft.cycles.flow import Loop, loops_of
from weft.cycles.report import of_ptx
from weft.demo import triton_peer
from weft.programs.compiled import compiled
from weft.targets import default_target, gpus, target_named
from weft.testing.plans import counted

BLOCK_M, BLOCK_N = 128, 64
#: Instructions of the interior loop for 64 rows of a warpgroup and 128 keys, by head size, as ptxas 13.0 assembles the
#: PTX of flash-attention at 0251105 (hopper/) and of flash-attn-4 4.0.0b36.
ANCHORS = {64: {"FA3": 431, "FA4": 428}, 128: {"FA3": 469, "FA4": 457}}
#: The same of the blocks that the diagonal, or a window's far end, cuts.
EDGES = {
    ("causal", 64): {"FA3": 577, "FA4": 535},
    ("causal", 128): {"FA3": 616, "FA4": 568},
    ("local", 128): {"FA3": 727, "FA4": 590},
}


@weft.jit
def windowed_attention(
    q, k, v, out, lse,
    stride_qh, stride_qn, stride_kh, stride_km, stride_vh, stride_vm, stride_oh, stride_on, N, WINDOW,
    SCALE_LOG2: wl.constexpr, D: wl.constexpr, BLOCK_M: wl.constexpr, BLOCK_N: wl.constexpr,
):  # fmt: skip
    start = wl.program_id(0) * BLOCK_M
    head = wl.program_id(1).to(wl.int64)
    rows = start + wl.arange(0, BLOCK_M)
    columns = wl.arange(0, BLOCK_N)
    channels = wl.arange(0, D)
    q_ptrs = q + head * stride_qh + rows[:, None] * stride_qn + channels[None, :]
    k_base = k + head * stride_kh + columns[None, :] * stride_km + channels[:, None]
    v_base = v + head * stride_vh + columns[:, None] * stride_vm + channels[None, :]
    q_tile = wl.load(q_ptrs, mask=rows[:, None] < N, other=0.0)
    maximum = wl.full((BLOCK_M,), -float("inf"), dtype=wl.float32)
    total = wl.zeros((BLOCK_M,), dtype=wl.float32)
    acc = wl.zeros((BLOCK_M, D), dtype=wl.float32)
    # Blocks of keys: [first, full) is cut by the window's far end, [full, cut) is inside, [cut, end) by the diagonal.
    first = wl.maximum(start - WINDOW + 1, 0) // BLOCK_N
    full = wl.cdiv(wl.maximum(start + BLOCK_M - WINDOW, 0), BLOCK_N)
    end = wl.cdiv(wl.minimum(start + BLOCK_M, N), BLOCK_N)
    cut = wl.maximum(wl.minimum((start + 1) // BLOCK_N, N // BLOCK_N), full)
    for part in wl.static_range(0, 3):
        lower = first if part == 0 else full if part == 1 else cut
        upper = wl.minimum(full, end) if part == 0 else cut if part == 1 else end
        for block in range(lower, upper):
            keys = block * BLOCK_N + columns
            if part == 1:
                k_tile = wl.load(k_base + block * BLOCK_N * stride_km)
            else:
                k_tile = wl.load(k_base + block * BLOCK_N * stride_km, mask=keys[None, :] < N, other=0.0)
            scores = wl.dot(q_tile, k_tile) * SCALE_LOG2
            if part != 1:
                distance = rows[:, None] - keys[None, :]
                allowed = (distance >= 0) & (distance < WINDOW) & (keys[None, :] < N)
                scores = wl.where(allowed, scores, -float("inf"))
            new_maximum = wl.maximum(maximum, wl.max(scores, 1))
            shift = new_maximum
            if part != 1:
                shift = wl.where(new_maximum == -float("inf"), 0.0, new_maximum)
            weights = wl.exp2(scores - shift[:, None])
            decay = wl.exp2(maximum - shift)
            total = total * decay + wl.sum(weights, 1)
            if part == 1:
                v_tile = wl.load(v_base + block * BLOCK_N * stride_vm)
            else:
                v_tile = wl.load(v_base + block * BLOCK_N * stride_vm, mask=keys[:, None] < N, other=0.0)
            acc = wl.dot(weights.to(v.dtype.element_ty), v_tile, acc * decay[:, None])
            maximum = new_maximum
    seen = total > 0.0
    acc = acc * wl.where(seen, 1.0 / wl.where(seen, total, 1.0), 0.0)[:, None]
    out_ptrs = out + head * stride_oh + rows[:, None] * stride_on + channels[None, :]
    wl.store(out_ptrs, acc.to(out.dtype.element_ty), mask=rows[:, None] < N)
    logarithm = (maximum + wl.log2(total)) * 0.6931471805599453
    wl.store(lse + head * N + rows, wl.where(seen, logarithm, -float("inf")), mask=rows < N)


@dataclass(frozen=True)
class Interior:
    """The interior loop of a kernel, and what a thread of the kernel takes."""

    loop: Loop
    registers: int
    spill_bytes: int

    @property
    def scaling(self) -> int:
        """Products that an iteration takes more where a maximum grows."""
        return sum(each.name == "FMUL" for each in self.loop.whole) - self.loop.classes["FMUL"]


def interior_of(ptx: str, target: str) -> Interior:
    """The shortest loop with the algorithm's products: masks lengthen the two beside it."""
    resources = assemble(ptx, target)
    assert resources is not None, "ptxas was found"
    found = [loop for loops in loops_of(ptx, target).values() for loop in loops if loop.matrix]
    most = max(loop.matrix for loop in found)
    shortest = min((loop for loop in found if loop.matrix == most), key=lambda loop: loop.count)
    return Interior(shortest, resources.registers, resources.spilled_bytes)


def tiling(D: int, target: str) -> tuple[int, int]:
    """Keys of a block and warps."""
    return (128, 8) if target_named(target).warpgroup_mma else (BLOCK_N, D // 16)


def signature(D: int, keys: int = BLOCK_N) -> str:
    """Argument types and constants for head size D, fp16."""
    pointers = ", ".join(f"{name}:*fp16:16" for name in ("q", "k", "v", "out"))
    strides = ", ".join(f"stride_{name}:i32:16" for name in ("qh", "qn", "kh", "km", "vh", "vm", "oh", "on"))
    scale = math.log2(math.e) / math.sqrt(D)
    return (
        f"{pointers}, lse:*fp32:16, {strides}, N:i32, WINDOW:i32, "
        f"SCALE_LOG2={scale}, D={D}, BLOCK_M={BLOCK_M}, BLOCK_N={keys}"
    )


def ours(D: int, target: str = "sm_80") -> Interior:
    """Weft's loop for head size D: on one warp for 16 channels, or two warpgroups."""
    keys, warps = tiling(D, target)
    stages = 2 if target_named(target).warpgroup_mma else 3
    kernel = windowed_attention.compile(signature(D, keys), target=target, num_warps=warps, num_stages=stages)
    return interior_of(kernel.ptx, target)


def ratio(D: int, target: str) -> float:
    """Cycles of our loop by the loop model, over what its matrix units alone take."""
    keys, warps = tiling(D, target)
    kernel = windowed_attention.compile(signature(D, keys), target=target, num_warps=warps, num_stages=2)
    gpu = next(each for each in gpus().values() if each.target == target)
    described = {"entry": kernel.name, "num_warps": kernel.num_warps, "shared_bytes": kernel.shared_bytes}
    (found,) = of_ptx(kernel.ptx, target, gpu, [described])
    assert found.main is not None, "the kernel has products"
    return found.main.cycles / found.main.matrix_cycles


@weft.program
def windowed(q, k, v):
    return weft.softmax(q, k, weft.window(256, 0)) @ v


@weft.program
def causal(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


@weft.program
def full(q, k, v):
    return weft.softmax(q, k) @ v


def formed(program, D: int, target: str, element: str = "fp16"):
    """A program as it is compiled for aligned inputs."""
    traced = program.declare(", ".join(f"{name}:{element}[B,H,N,{D}]:16" for name in "qkv"))
    return compiled(traced, target, differentiate=False)


def program_ptx(program, D: int, target: str) -> str:
    """Of the kernel that a program becomes, for aligned inputs."""
    return formed(program, D, target).ptx


def cycles(D: int, target: str, element: str) -> tuple[int, int, float, float]:
    """Instructions of a program's loop, products where a maximum grows; by the loop model its cycles and those of its
    matrix units alone."""
    form = formed(full, D, target, element)
    gpu = next(each for each in gpus().values() if each.target == target)
    described = [each for each in form.info["kernels"] if each["entry"] == "attend"]
    main = of_ptx(form.ptx, target, gpu, described)[0].main
    assert main is not None, "the kernel has products"
    return main.instructions, interior_of(form.ptx, target).scaling, main.cycles, main.matrix_cycles


def programs(D: int, target: str = "sm_80") -> Interior:
    """The loop of the kernel that a program becomes."""
    return interior_of(program_ptx(windowed, D, target), target)


def edges(D: int, pattern: str, target: str) -> list[int]:
    """Instructions of the loops beside the interior one, which compare and choose, of a program."""
    ptx = program_ptx({"causal": causal, "local": windowed}[pattern], D, target)
    return sorted(loop.count for loops in loops_of(ptx, target).values() for loop in loops if loop.matrix)[1:]


def in_tensor_memory(target: str) -> None:
    """Of programs whose sums are in tensor memory: what the warp that starts products takes for 32 rows and a block of
    keys, without the branch in which a row's maximum grows."""
    for D in (64, 128, 256):
        for name, program in (("full", full), ("causal", causal)):
            ptx = program_ptx(program, D, target)
            resources = assemble(ptx, target)
            assert resources is not None, "ptxas was found"
            loops = [loop for found in loops_of(ptx, target).values() for loop in found if loop.tensor and loop.inner]
            counted = sorted((loop.count, sum(each.name != "NOP" for each in loop.whole)) for loop in loops)
            listed = ", ".join(f"{path} ({whole})" for path, whole in counted)
            print(f"D {D:3}, {name:6}: {listed}; registers {resources.registers}, spilled {resources.spilled_bytes}")


def tritons(D: int) -> Interior:
    """Triton's loop of the same source at the same tiling."""
    text = parse(signature(D))
    types = windowed_attention.compile(signature(D), target="sm_80", num_warps=D // 16, num_stages=3).types
    aligned = tuple(name for name, argument in text.arguments.items() if argument.divisibility % 16 == 0)
    peer = triton_peer.compile_with_triton(
        windowed_attention.fn,
        dict(zip(text.arguments, types, strict=True)),
        text.constants,
        divisible=aligned,
        warps=D // 16,
        stages=3,
    )
    return interior_of(peer.ptx, "sm_80")


def multiplied(D: int, keys: int, target: str) -> tuple[float, float]:
    """Of full attention to so many keys, of queries and keys that are normally distributed: the instructions, counted
    by the simulator, over those where no maximum grows behind the first block, and over those where each block's does.
    """
    numbers = torch.randn(3, 1, 1, max(keys, BLOCK_M), D, generator=torch.Generator().manual_seed(keys)).half()
    rising = torch.zeros_like(numbers[1])
    rising[..., 0] = torch.arange(len(rising[0, 0])) * 8.0 / len(rising[0, 0])
    cases = {"any": (numbers[0], numbers[1]), "none": (numbers[0] * 0, numbers[1]), "all": (numbers[0] * 0 + 1, rising)}
    counts = {}
    for name, (q, k) in cases.items():
        run = counted(full, q[..., :BLOCK_M, :], k, numbers[2], target=target, backward=False)["forward"]
        counts[name] = run.scaled("warp_instructions")
    return counts["any"] / counts["none"], counts["any"] / counts["all"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Machine instructions of flash attention's interior loop.")
    parser.add_argument("--target", default=default_target(), help="what is compiled for (default: %(default)s)")
    parser.add_argument("--lengths", help="count on the simulator how often sums are multiplied, of so many keys each")
    given = parser.parse_args()
    target = given.target
    if given.lengths:
        print("full attention of random numbers: instructions over those where no maximum grows, and where all do")
        for D in (64, 128, 256):
            for keys in map(int, given.lengths.split(",")):
                print(f"D {D:3}, {keys:6,} keys: " + "  ".join(f"{x:.3f}" for x in multiplied(D, keys, target)))
        return 0
    if not (find_tool("ptxas") and find_tool("nvdisasm")):
        print("ptxas or nvdisasm was not found: nothing to count")
        return 1
    if "tcgen05" in program_ptx(full, 64, target):
        print(
            "programs at their default schedules, fp16: instructions of a block's loops, with all branches in brackets"
        )
        in_tensor_memory(target)
        return 0
    for D in (64, 128):
        columns = {"Weft": ours(D, target), "program": programs(D, target)}
        anchors = ANCHORS[D] if target_named(target).warpgroup_mma else {}
        if triton_peer.available() and not anchors:
            columns["Triton"] = tritons(D)
        keys, warps = tiling(D, target)
        print(f"flash attention forward, fp16, {BLOCK_M}×{keys}, D {D}, {warps} warps, {target}")
        for name, count in anchors.items():
            print(f"{name:14}{count:>10,} instructions")
        print(f"{'':14}" + "".join(f"{name:>10}" for name in columns))
        rows = {"instructions": [each.loop.count for each in columns.values()]}
        names = {name: None for each in columns.values() for name, _ in each.loop.classes.most_common()}
        rows |= {f"  {name}": [each.loop.classes[name] for each in columns.values()] for name in names}
        rows["growing: FMUL"] = [each.scaling for each in columns.values()]
        rows["registers"] = [each.registers for each in columns.values()]
        rows["spill bytes"] = [each.spill_bytes for each in columns.values()]
        for name, counts in rows.items():
            print(f"{name:14}" + "".join(f"{count:>10,}" for count in counts))
        if target_named(target).warpgroup_mma:
            print(f"cycles over those of the matrix units, by the loop model: {ratio(D, target):.2f}")
        for pattern in ("causal", "local"):
            peers = EDGES.get((pattern, D), {}) if target_named(target).warpgroup_mma else {}
            beside = "".join(f"  {name} {count}" for name, count in peers.items())
            print(f"{pattern} program, edge loops: {', '.join(map(str, edges(D, pattern, target)))}{beside}")
        print()
    if target_named(target).warpgroup_mma:
        print("programs of 16 and of 8 bits: instructions, and products where a maximum grows;")
        print("cycles / those of the matrix units, by the loop model")
        for D in (64, 96, 128, 256):
            found = (cycles(D, target, element) for element in ("fp16", "fp8e4nv"))
            print(f"D {D:3}" + "".join(f"{n:8} + {more}, {all:,.0f} / {units:,.0f}" for n, more, all, units in found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
