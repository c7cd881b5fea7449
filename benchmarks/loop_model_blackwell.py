# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How far the loop model is from published times on a B200: of FlashAttention-4's own machine code. Then Weft's loops.

    python -m venv peers && peers/bin/pip install flash-attn-4==4.0.0b36     # brings a compiler of 300 MB
    python benchmarks/loop_model_blackwell.py --python peers/bin/python [--kept DIR]

No GPU is needed: FlashAttention-4 compiles its kernels for a device that is not there. Its roles (who starts products,
who takes exponentials, who corrects sums) are loops of their own, which wait for one another at mbarriers; the model
runs one warp of each on a scheduler (weft.cycles.roles), with the names that ``forward`` and ``backward`` give their
barriers, in the order of the code. Points are TFLOP/s of 32 k tokens in all, 2,048 channels in all heads.

Nothing is fitted to these points. Cycles of a block outside of its loop, and what full units take from the clock, are
those fitted to an H100 (weft.cycles.launch.FITTED). Two things were decided with an eye on points. By the forward of
128 channels, full: that the share which an H100 loses where units work side by side is not taken where waits for sums
in tensor memory are timed. By the backward: that products and loads share the time of shared memory, and that what all
lanes read alike counts once. Those curves are marked "seen". What the units do is from other sources, which
targets/Targets.cpp names, and so are the few numbers that are assumed.

What it cannot know: the clock and the power of the machine (two B200 differ by a quarter at the same kernel, below);
copies' share of shared memory's time; what cuDNN's and cuBLAS' kernels do, whose figures are printed beside alone.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import weft
import weft.language as wl
from weft.compiler import ptxas
from weft.cycles.flow import Loop, loops
from weft.cycles.launch import FITTED, seconds
from weft.cycles.listing import Kernel, parse
from weft.cycles.rates import Op, rates_of
from weft.cycles.report import KernelCycles, of_ptx
from weft.cycles.roles import COPY, Role, paced
from weft.cycles.tensor import products, read_once
from weft.demo import triton_peer
from weft.programs.compiled import compiled
from weft.simulator.cost import LAUNCH_SECONDS
from weft.targets import gpu_named

TOKENS, CHANNELS = 32768, 2048
B200 = gpu_named("B200")
RATES = rates_of(B200)
#: Compiles for fake tensors of a device that is not there, and leaves the machine code in a folder.
COMPILE = """
import sys
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

torch.cuda._lazy_init = lambda: None
torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.get_device_capability = lambda *device: (10, 0)
import cutlass
from flash_attn.cute.interface import _flash_attn_bwd, _flash_attn_fwd


class Info:
    def __init__(self, *device):
        pass

    def get_device_multiprocessor_count(self):
        return 148


cutlass.utils.HardwareInfo = Info

with FakeTensorMode(allow_non_fake_inputs=True):
    shape = (1, 4096, 2, int(sys.argv[1]))
    q, k, v, out, dout = (torch.empty(shape, dtype=torch.bfloat16, device="cuda") for _ in range(5))
    causal = sys.argv[3] == "causal"
    if sys.argv[2] == "forward":
        _flash_attn_fwd(q, k, v, causal=causal)
    else:
        lse = torch.empty(1, 2, shape[1], dtype=torch.float32, device="cuda")
        _flash_attn_bwd(q, k, v, out, dout, lse, causal=causal)
"""


@dataclass(frozen=True)
class Curve:
    """Published TFLOP/s of one pass of FlashAttention-4 on a B200, at some lengths of a sequence."""

    source: str
    passes: str
    D: int
    causal: bool
    points: dict[int, float]
    seen: bool = False

    @property
    def mask(self) -> str:
        return "causal" if self.causal else "full"

    @property
    def name(self) -> str:
        return f"{self.passes} {self.D} {self.mask}"


def at(first: int, *figures: float) -> dict[int, float]:
    """Figures at lengths that double."""
    return {first << i: figure for i, figure in enumerate(figures)}


#: arXiv 2603.05451 (FlashAttention-4) and "AVO: Agentic Variation Operators", as figures 7 and 3 of the latter have
#: them, and pull requests 2280 and 2605 of Dao-AILab/flash-attention. The last one's machine is another B200.
PAPER, AVO, PULL, OTHER = "FA4's paper", "AVO's machine", "pull request 2280", "pull request 2605"
CURVES = [
    Curve(PAPER, "forward", 128, False, at(4096, 1532, 1579, 1601, 1613), seen=True),
    Curve(PAPER, "forward", 128, True, at(4096, 1279, 1426, 1526, 1576)),
    Curve(AVO, "forward", 128, False, at(4096, 1578, 1614, 1637, 1651), seen=True),
    Curve(AVO, "forward", 128, True, at(4096, 1259, 1412, 1502, 1550)),
    Curve(PULL, "forward", 128, False, at(8192, 1534.8), seen=True),
    Curve(PULL, "forward", 128, True, at(8192, 1418.1)),
    Curve(PULL, "backward", 128, False, at(8192, 1247.5), seen=True),
    Curve(OTHER, "forward", 64, False, at(1024, 623, 758, 827, 868, 878)),
    Curve(OTHER, "forward", 64, True, at(1024, 388, 565, 701, 802, 853)),
    Curve(OTHER, "forward", 128, False, at(1024, 975, 1131, 1256, 1289, 1330)),
    Curve(OTHER, "forward", 128, True, at(1024, 660, 899, 1062)),
]
#: cuDNN's on the same machines, 128 channels
CUDNN = {
    PAPER: {"full": at(4096, 1552, 1585, 1609, 1613), "causal": at(4096, 1295, 1430, 1509, 1540)},
    AVO: {"full": at(4096, 1573, 1609, 1626, 1638), "causal": at(4096, 1344, 1477, 1551, 1590)},
}
#: of 16-bit products, over what 148 × 8,192 operations a cycle would be at the clock: cuBLAS on a B200 (2,185 of 2,382
#: TFLOP/s) and on a B300 (2,259 of 2,465, github.com/ademeure/QuickRunCUDA, b300_clean/06_tensor_cores.md)
CUBLAS = {"B200": 2185 / 2382, "B300": 2259 / 2465}


# ---- Machine code


def machine_code(python: str, place: pathlib.Path, curve: Curve) -> Kernel:
    """FlashAttention-4's kernel, one block's products alone in the backward; made where it is not in a folder yet."""
    place = place / curve.name.replace(" ", ".")
    found = list(place.glob("*flash_fwd_sm100*.cubin")) + list(place.glob("*flash_bwd_sm100*.cubin"))
    if not found:
        place.mkdir(parents=True, exist_ok=True)
        settings = {
            "FLASH_ATTENTION_ARCH": "sm_100",
            "CUTE_DSL_ARCH": "sm_100a",
            "FLASH_ATTENTION_NUM_SMS": "148",
            "FLASH_ATTENTION_FAKE_TENSOR": "1",
            "CUTE_DSL_KEEP_CUBIN": "1",
            "CUTE_DSL_DUMP_DIR": str(place),
            **({"FA_DISABLE_2CTA": "1"} if curve.passes == "backward" else {}),
        }
        command = [python, "-c", COMPILE, str(curve.D), curve.passes, curve.mask]
        run = subprocess.run(command, env={**os.environ, **settings}, cwd=place, capture_output=True, text=True)
        found = [path for path in place.glob("*.cubin") if "flash_fwd_sm100" in path.name or "bwd_sm100" in path.name]
        if not found:
            raise SystemExit(run.stderr[-2000:])
    (kernel,) = parse(ptxas.disassembled(found[0])).values()
    return kernel


class Parts:
    """The loops of a kernel by what they do."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.products = kernel, products(kernel)
        self.found = loops(kernel)

    def ops(self, loop: Loop) -> tuple[Op, ...]:
        return RATES.ops(loop.path, self.products, read_once(self.kernel, loop))

    def multiplies(self) -> tuple[Op, ...]:
        """The loop that starts all products of an iteration."""
        return self.ops(max((each for each in self.found if each.inner), key=lambda each: each.tensor))

    def exponentials(self) -> list[tuple[Op, ...]]:
        """Those that take exponentials, shortest first: without a mask, and with one."""
        taking = [each for each in self.found if each.inner and each.classes["MUFU"] > 30]
        return [self.ops(each) for each in sorted(taking, key=lambda each: each.count)]

    def corrects(self) -> tuple[Op, ...]:
        """The loop that multiplies sums where a maximum grew, by the way on which none did."""
        return self.ops(next(each for each in self.found if each.inner and each.classes["VOTE"] >= 2))

    def reduces(self) -> tuple[Op, ...]:
        """The loop that adds gradients of queries in memory."""
        moves = [each for each in self.found if each.classes["LDTM"] and each.classes["STS"]]
        return self.ops(next(each for each in moves if each.inner and not each.classes["MUFU"]))


def forward(parts: Parts, softmax: Sequence[Op]) -> float:
    """Cycles of 256 queries and 128 keys. Of each half: its scores ("s"), three quarters of its weights with sums that
    are corrected ("p"), the last ones ("l"), the factor that corrects ("c") and its place that is free again ("f")."""
    halves = [
        Role(
            f"softmax {i}",
            tuple(softmax),
            waits=[f"s{i}", f"f{i}"],
            arrives=[f"p{i}", f"l{i}"],
            meets=[f"c{i}"],
        )
        for i in range(2)
    ]
    roles = [
        Role(
            "products",
            parts.multiplies(),
            waits=[COPY, "p0", "l0", COPY, "p1", "l1"],
            tells=["s0", COPY, "s1", COPY],
        ),
        *halves,
        Role("correction", parts.corrects(), arrives=["p0", "f1", "p1", "f0"], meets=["c0", "c1"]),
    ]
    return paced(RATES, roles, {"p0": 2, "p1": 2}, dict.fromkeys(("s0", "s1", "f0", "f1"), 1))[0]


def backward(parts: Parts) -> float:
    """Cycles of 128 keys and 128 queries: scores ("s"), weights ("p"), their gradients before ("dp") and behind the
    softmax ("ds"), whose place in shared memory is free again ("e"), and the gradients of queries ("dq", free "q")."""
    (work,), reduces = parts.exponentials()[:1], parts.reduces()
    meets = ["=b"] * sum(op.barrier is not None for op in work)
    two = [
        Role(f"gradients {i}", work, waits=[COPY, "s", COPY, "dp", "e"], arrives=["p", COPY, COPY, "ds"], meets=meets)
        for i in range(2)
    ]
    own = [COPY] * sum(op.barrier is not None for op in reduces)
    roles = [
        Role(
            "products",
            parts.multiplies(),
            waits=[COPY, "ds", COPY, "q", "p"],
            tells=["s", COPY, "dq", "e", "dp", COPY],
        ),
        *two,
        Role("sums", reduces, waits=["dq"], arrives=["q"], meets=own),
    ]
    return paced(RATES, roles, {"p": 2, "ds": 2, "=b": 2}, dict.fromkeys(("s", "dp", "e", "q"), 1))[0]


@dataclass(frozen=True)
class Times:
    """Cycles of a step that no mask cuts, and of one that the diagonal does."""

    whole: float
    cut: float


def timed(kernel: Kernel, curve: Curve) -> Times:
    parts = Parts(kernel)
    if curve.passes == "backward":
        return Times(backward(parts), 0.0)
    kinds = parts.exponentials()
    whole = forward(parts, kinds[0])
    return Times(whole, forward(parts, kinds[1]) if curve.causal else 0.0)


# ---- Times


def tflops(curve: Curve, length: int, times: Times) -> float:
    """What the model says of a curve at a length."""
    heads = CHANNELS // curve.D * (TOKENS // length)
    rows = 128 if curve.passes == "backward" else 256
    blocks = []
    for first in range(0, length, rows):
        steps, cut = (-(-length // 128), 0) if not curve.causal else ((first + rows) // 128, rows // 128)
        blocks += [FITTED.block + (steps - cut) * times.whole + cut * times.cut] * heads
    operations = 4 * heads * curve.D * length * length / (2 if curve.causal else 1)
    operations *= 2.5 if curve.passes == "backward" else 1
    tensors = 2 * TOKENS * CHANNELS * (10 if curve.passes == "backward" else 4)
    spent = seconds(sorted(blocks, reverse=True), 1, tensors, operations, RATES.operations("bf16"), B200, FITTED)
    if curve.passes == "backward":  # kernels before and after, as of benchmarks/loop_model.py
        spent += 2 * LAUNCH_SECONDS + 14 * TOKENS * CHANNELS / (B200.memory_bandwidth * 1e9)
    return operations / spent / 1e12


def ranks(values: np.ndarray) -> np.ndarray:
    """The place of each among all."""
    return values.argsort().argsort()


def show(known: list[tuple[Curve, Times]]) -> None:
    """The errors of every curve, then of those that were seen, and of those that were not by their sources."""
    print(f"{'':7}{'curve':22}{'of':19}{'cycles':16}error at its lengths")
    groups: dict[str, list[tuple[float, float]]] = {}
    for curve, times in known:
        said = {length: tflops(curve, length, times) for length in curve.points}
        pairs = [(said[length], figure) for length, figure in curve.points.items()]
        for group in ("seen",) if curve.seen else ("not seen", f"not seen, {curve.source}"):
            groups.setdefault(group, []).extend(pairs)
        cycles = f"{times.whole:,.0f}" + (f" / {times.cut:,.0f}" if times.cut else "")
        errors = " ".join(f"{n >> 10}k {said[n] / figure - 1:+.0%}" for n, figure in curve.points.items())
        print(f"{'seen' if curve.seen else '':7}{curve.name:22}{curve.source:19}{cycles:16}{errors}")
    for group, pairs in groups.items():
        modelled, published = np.array(pairs).T
        off = np.abs(modelled / published - 1)
        rank = f", rank {np.corrcoef(ranks(modelled), ranks(published))[0, 1]:.2f}" if len(pairs) > 2 else ""
        print(f"{group}: {len(pairs)} points, mean error {off.mean():.1%}, worst {off.max():.0%}{rank}")
    for source, curves in CUDNN.items():
        listed = [f"{mask} {'/'.join(map(str, points.values()))}" for mask, points in curves.items()]
        print(f"cuDNN, {source}: " + "; ".join(listed))
    print("cuBLAS: " + ", ".join(f"{gpu} {share:.0%} of its clock's peak" for gpu, share in CUBLAS.items()))


# ---- Weft's loops


@weft.program
def full(q, k, v):
    return weft.softmax(q, k) @ v


@weft.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: wl.constexpr, BN: wl.constexpr, BK: wl.constexpr):
    a = wl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b = wl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BK, BN])
    c = wl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    m, n = wl.program_id(0) * BM, wl.program_id(1) * BN
    acc = wl.zeros((BM, BN), dtype=wl.float32)
    for k in range(0, K, BK):
        acc = wl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc.to(wl.float16))


def ours() -> None:
    """Print the interior loop of each kernel with products, and what its warps wait for."""
    print("\nWeft's loops, fp16: cycles over those of the tensor core alone")
    for D in (64, 128, 256):
        traced = full.declare(", ".join(f"{name}:fp16[B,H,N,{D}]:16" for name in "qkv"))
        form = compiled(traced, "sm_100a", differentiate=True)
        for kernel in of_ptx(form.ptx, "sm_100a", B200, form.info["kernels"], main_only=True):
            _line(f"{kernel.name} {D}", kernel)
    types = ", ".join(f"{name}_ptr:*fp16:16" for name in "abc") + ", M:i32:16, N:i32:16, K:i32:16"
    made = matmul.compile(f"{types}, BM=128, BN=256, BK=64", target="sm_100a", num_warps=8, num_stages=3)
    asked = {"entry": made.name, "num_warps": made.num_warps, "shared_bytes": made.shared_bytes}
    _line("matmul 128x256x64", of_ptx(made.ptx, "sm_100a", B200, [asked], main_only=True)[0])


def tritons() -> None:
    """Print Triton's loop of the same matmul, where it is installed: by four warps, one thread of which starts products
    of all 256 columns."""
    if not triton_peer.available():
        return
    import triton
    import triton.language as tl

    def multiply(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
        c.store([m, n], acc.to(tl.float16))

    types = {name: f"tensordesc<fp16[{box}]>" for name, box in (("a", "128,64"), ("b", "64,256"), ("c", "128,256"))}
    multiply.__globals__["tl"] = tl  # Triton looks names up there
    source = triton.compiler.ASTSource(
        triton.jit(multiply), {**types, "K": "i32"}, constexprs={"BM": 128, "BN": 256, "BK": 64}
    )
    target = triton.backends.compiler.GPUTarget("cuda", 100, 32)
    made = triton.compile(source, target=target, options={"num_warps": 4, "num_stages": 3})
    # Triton writes the newest version that it knows, and uses nothing of it here
    ptx = re.sub(r"^\.version 9\.\d", ".version 9.0", made.asm["ptx"], flags=re.MULTILINE)
    known = {"entry": made.metadata.name, "num_warps": 4, "shared_bytes": made.metadata.shared}
    _line("Triton, the same", of_ptx(ptx, "sm_100a", B200, [known], main_only=True)[0])


def _line(name: str, kernel: KernelCycles) -> None:
    main = kernel.main
    if main is None:
        return
    busy = ", ".join(f"{unit} {share:.0%}" for unit, share in sorted(main.busy.items(), key=lambda each: -each[1])[:4])
    waits = ", ".join(f"{reason} {cycles:,.0f}" for reason, cycles in list(main.waits.items())[:4])
    times = f"{main.cycles:,.0f} / {main.matrix_cycles:,.0f} = {main.cycles / main.matrix_cycles:.2f}"
    print(f"{name:27}{times:23}apart {main.apart:,.0f}; {busy}; a warp waits: {waits}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", help="a Python that has flash-attn-4")
    parser.add_argument("--kept", type=pathlib.Path, help="a folder to keep its machine code in")
    arguments = parser.parse_args()
    if arguments.python:
        with tempfile.TemporaryDirectory() as room:
            place = (arguments.kept or pathlib.Path(room)).resolve()
            known: list[tuple[Curve, Times]] = []
            once: dict[str, Times] = {}
            for curve in CURVES:
                if curve.name not in once:
                    once[curve.name] = timed(machine_code(arguments.python, place, curve), curve)
                known.append((curve, once[curve.name]))
            show(known)
    ours()
    tritons()
    return 0


if __name__ == "__main__":
    sys.exit(main())
