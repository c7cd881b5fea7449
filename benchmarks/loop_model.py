# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How far the loop model is from published times: of FlashAttention-2's and -3's own machine code, and Triton's.

    pip download --no-deps xformers==0.0.31 torch==2.5.1 -d wheels     # 120 MB and 900 MB; nothing is installed
    python benchmarks/loop_model.py --wheels wheels [--fit]

The machine code is that of wheels of PyPI: xformers carries FlashAttention-3's kernels, CUDA builds of torch those of
FlashAttention-2. Triton compiles this file's neighbour interior_loop.py, where it is installed. Points are TFLOP/s of
16 k tokens in all, 2048 channels in all heads, at 512 to 16 k tokens a sequence, as the papers' charts have them.

Half of the curves calibrate, half are held back. Of each peer's forward, and of each one's backward, the curves are
ordered, full before causal and small heads first; the first, third, fifth calibrate, and the second, fourth, sixth are
held back. That was written down before any error was seen. Whole curves are held back: their kernels are unseen.
The form of the three fitted terms was chosen by the errors of the half that calibrates, and by what is known of
FlashAttention-3's longest points from others' charts; their numbers (weft.cycles.launch.FITTED, of a search as
--fit's with other steps, which end at 4664, 0.61 and 0.267) were fixed before any error of the other half was seen.
The chart's points of Triton are of 2024, its machine code here is today's compiler's of our source.

What the model cannot know: the clock under load (it takes the boost clock of the data sheet), and power, which lowers
it; hits of the L2 cache; what a wait at an mbarrier really waits for (a full stage is taken for granted).
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import interior_loop
from weft.compiler import ptxas
from weft.cycles.launch import FITTED, Calibration, block_cycles, seconds
from weft.cycles.listing import parse
from weft.cycles.rates import rates_of
from weft.cycles.report import KernelCycles, of_kernel, of_ptx
from weft.demo import triton_peer
from weft.simulator.cost import LAUNCH_SECONDS
from weft.targets import gpu_named

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, CHANNELS = 16384, 2048
NONE = 0.0  # of a point that the chart lacks


@dataclass(frozen=True)
class Code:
    """A kernel in a wheel's library, by what its demangled name says, and how it is launched."""

    wheel: str
    name: str
    rows: int
    """of the side that blocks divide"""
    columns: int
    """of the side that a block walks"""
    warps: int
    blocks: int = 1
    """on a multiprocessor at once"""


@dataclass(frozen=True)
class Curve:
    """Published TFLOP/s of one peer, at LENGTHS; ``codes`` are launched one after another."""

    peer: str
    passes: str
    gpu: str
    D: int
    causal: bool
    published: tuple[float, ...]
    codes: tuple[Code, ...]

    @property
    def name(self) -> str:
        return f"{self.peer} {self.passes} {self.D} {'causal' if self.causal else 'full'} {self.gpu}"


def fa3(D: int, causal: bool) -> tuple[Code, ...]:
    rows, columns = {64: (192, 128 if causal else 192), 128: (128, 128 if causal else 176), 256: (128, 80)}[D]
    registers = "false" if (D, causal) == (64, False) else "true"
    kinds = f"{str(causal).lower()}, false, false, false, false, false, false, {registers}, true, false, false, false"
    tile = f"<1, 1, 1>, <{rows}, {columns}, {D}>, {D}, half_t, float, arch::Sm90, {kinds}>"
    return (Code("xformers", f"CollectiveMainloopFwdSm90<2, {tile}", rows, columns, 4 + rows // 16),)


def fa3_backward(D: int, causal: bool) -> tuple[Code, ...]:
    rows = {64: 128, 128: 64 if causal else 80}[D]
    swapped = "true" if (D, causal) == (128, False) else "false"
    kinds = f"{str(causal).lower()}, false, false, false, false, true, false, {swapped}, 2, 1, 2, {2 if D == 64 else 1}"
    tile = f"<1, 1, 1>, <{rows}, 128, {D}>, half_t, float, arch::Sm90, {kinds}, false>"
    epilogue = ", CollectiveEpilogueBwd<"
    return (Code("xformers", f"CollectiveMainloopBwdSm90<2, 2, 2, {tile}{epilogue}", 128, rows, 12),)


def fa2(D: int, causal: bool) -> tuple[Code, ...]:
    rows, columns, blocks = {64: (128, 128, 2), 128: (128, 64, 2), 256: (64, 64, 2)}[D]
    even = "false" if D == 256 else "true"
    kinds = f"false, {str(causal).lower()}, false, false, {even}, true, false>"
    traits = f"flash_fwd_kernel<Flash_fwd_kernel_traits<{D}, {rows}, {columns}, 4, false, false, half_t, "
    return (
        Code(
            "torch",
            f"{traits}Flash_kernel_traits<{D}, {rows}, {columns}, 4, half_t>>, {kinds}",
            rows,
            columns,
            4,
            blocks,
        ),
    )


def fa2_backward(D: int, causal: bool) -> tuple[Code, ...]:
    rows, splits = {64: (128, "4, 4, 4"), 128: (64, "2, 4, 2")}[D]
    kinds = f"false, {str(causal).lower()}, false, false, true, true>"
    traits = f"Flash_bwd_kernel_traits<{D}, {rows}, 128, 8, {splits}, false, false, half_t, "
    return (
        Code(
            "torch", f"parallel_kernel<{traits}Flash_kernel_traits<{D}, {rows}, 128, 8, half_t>>, {kinds}", 128, rows, 8
        ),
    )


def triton(D: int, causal: bool) -> tuple[Code, ...]:
    return (Code("triton", f"windowed_attention {D}", 128, 128, 8),)


def _curves() -> list[Curve]:
    def points(text: str) -> tuple[float, ...]:
        return tuple(NONE if each == "-" else float(each) for each in text.split("/"))

    H, A = "H100", "A100"
    rows = [
        ("FA3", "forward", H, 64, False, "333/392/460/476/496/497", fa3),
        ("FA3", "forward", H, 128, False, "467/565/625/638/646/648", fa3),
        ("FA3", "forward", H, 256, False, "482/-/707/736/746/756", fa3),
        ("FA3", "forward", H, 64, True, "197/265/371/420/460/473", fa3),
        ("FA3", "forward", H, 128, True, "292/423/521/579/602/616", fa3),
        ("FA3", "forward", H, 256, True, "286/427/537/612/628/642", fa3),
        ("FA3", "backward", H, 64, False, "272/363/422/453/472/474", fa3_backward),
        ("FA3", "backward", H, 128, False, "316/424/501/542/559/561", fa3_backward),
        ("FA2", "forward", H, 64, False, "282/306/318/321/322/324", fa2),
        ("FA2", "forward", H, 128, False, "309/350/362/368/370/370", fa2),
        ("FA2", "forward", H, 256, False, "275/313/321/323/324/326", fa2),
        ("FA2", "forward", H, 64, True, "180/229/262/284/295/299", fa2),
        ("FA2", "forward", H, 128, True, "191/260/298/319/333/335", fa2),
        ("FA2", "forward", H, 256, True, "208/251/278/293/297/298", fa2),
        ("FA2", "backward", H, 64, False, "198/238/264/279/287/291", fa2_backward),
        ("FA2", "backward", H, 128, False, "214/260/291/310/318/322", fa2_backward),
        ("FA2", "both", A, 64, False, "132/153/162/171/175/176", fa2),
        ("FA2", "both", A, 128, False, "150/172/187/196/201/203", fa2),
        ("FA2", "both", A, 64, True, "88/119/140/156/165/171", fa2),
        ("FA2", "both", A, 128, True, "99/133/155/173/182/189", fa2),
        ("Triton", "forward", H, 64, False, "340/382/396/400/401/403", triton),
        ("Triton", "forward", H, 128, False, "323/372/389/389/392/395", triton),
        ("Triton", "forward", H, 64, True, "152/291/342/363/376/363", triton),
        ("Triton", "forward", H, 128, True, "146/273/323/353/369/378", triton),
    ]
    found = []
    for peer, passes, gpu, D, causal, text, code in rows:
        codes = code(D, causal) + (fa2_backward(D, causal) if passes == "both" else ())
        found.append(Curve(peer, passes, gpu, D, causal, points(text), codes))
    return found


CURVES = _curves()


def held_back(curve: Curve) -> bool:
    """The split: every second curve of a peer's pass, in the order of CURVES."""
    alike = [each for each in CURVES if (each.peer, each.passes, each.gpu) == (curve.peer, curve.passes, curve.gpu)]
    return alike.index(curve) % 2 == 1


Known = dict[Curve, list[KernelCycles]]


# ---- Machine code


#: of a wheel
LIBRARIES = {"xformers": "xformers/flash_attn_3/_C.so", "torch": "torch/lib/libtorch_cuda.so"}


class Wheels:
    """Kernels of libraries in wheels, unpacked where they are asked for."""

    def __init__(self, folder: pathlib.Path, room: pathlib.Path) -> None:
        self.folder, self.room = folder, room
        self._names: dict[str, dict[str, tuple[pathlib.Path, str]]] = {}

    def names(self, wheel: str, architecture: str) -> dict[str, tuple[pathlib.Path, str]]:
        """The kernels of a library: by demangled name, its cubin and mangled name."""
        if wheel not in self._names:
            self._names[wheel] = self._unpacked(wheel, architecture)
        return self._names[wheel]

    def _unpacked(self, wheel: str, architecture: str) -> dict[str, tuple[pathlib.Path, str]]:
        place = self.room / wheel / architecture
        place.mkdir(parents=True)
        (file,) = self.folder.glob(f"{wheel}-*.whl")
        with zipfile.ZipFile(file) as archive:
            library = archive.extract(LIBRARIES[wheel], place)
        extract = [str(ptxas.find_tool("cuobjdump")), "-xelf", architecture, library]
        subprocess.run(extract, cwd=place, check=True, capture_output=True)
        pathlib.Path(library).unlink()
        found = [
            (path, name.decode())
            for path in sorted(place.glob("*.cubin"))
            for name in sorted(set(re.findall(rb"\.text\.(\w*flash\w*)", path.read_bytes())))
        ]
        plain = subprocess.run(
            [shutil.which("c++filt") or "llvm-cxxfilt"],
            input="\n".join(name for _, name in found),
            capture_output=True,
            text=True,
            check=True,
        )
        return {_plain(text): each for text, each in zip(plain.stdout.splitlines(), found, strict=True)}

    def listing(self, code: Code, gpu: str) -> str:
        """The machine code of one kernel."""
        architecture = "sm_90a" if code.wheel == "xformers" else "sm_80"
        known = self.names(code.wheel, architecture)
        fits = [each for name, each in known.items() if code.name in name]
        assert len(fits) >= 1, f"{code.name} is not in {code.wheel}"
        path, name = fits[0]
        text = _disassembled(path)
        begin = text.index(f"\n.text.{name}:")
        return text[begin : text.find("\n\t.section", begin)]


@functools.lru_cache(maxsize=2)
def _disassembled(path: pathlib.Path) -> str:
    return ptxas.disassembled(path)


def _plain(name: str) -> str:
    name = re.sub(r"cute::C<(\d+)>", r"\1", name)
    name = re.sub(r"(cutlass|cute|flash|pytorch_flash)::", "", name).replace("tuple<", "<")
    return re.sub(r"\s+>", ">", name)


def _triton(D: int) -> str:
    """Triton's machine code of flash attention forward at 128 × 128, 8 warps and 2 stages."""
    wanted = interior_loop.signature(D, 128)
    text = interior_loop.parse(wanted)
    kernel = interior_loop.windowed_attention
    types = kernel.compile(wanted, target="sm_90a", num_warps=8, num_stages=2).types
    peer = triton_peer.compile_with_triton(
        kernel.fn,
        dict(zip(text.arguments, types, strict=True)),
        text.constants,
        divisible=tuple(name for name, argument in text.arguments.items() if argument.divisibility % 16 == 0),
        capability=90,
        warps=8,
        stages=2,
    )
    # Triton writes the newest version that it knows, and uses nothing of it here
    return ptxas.control_codes(re.sub(r"^\.version 9\.\d", ".version 9.0", peer.ptx, flags=re.MULTILINE), "sm_90a")


def timed(code: Code, gpu: str, wheels: Wheels | None) -> KernelCycles | None:
    """The loops of a kernel; None where its code is not there."""
    if code.wheel == "triton":
        text = _triton(int(code.name.split()[1])) if triton_peer.available() else None
    else:
        text = wheels.listing(code, gpu) if wheels and list(wheels.folder.glob(f"{code.wheel}-*.whl")) else None
    if text is None:
        return None
    (kernel,) = parse(text).values()
    return of_kernel(kernel, rates_of(gpu_named(gpu)), code.warps, code.blocks)


# ---- Times


def steps_of(code: Code, length: int, causal: bool, backward: bool) -> list[tuple[int, int]]:
    """Of each block of one head, longest first: steps that masks cut, and others."""
    found = []
    for first in range(0, length, code.rows):
        last = min(first + code.rows, length)
        if not causal:
            found.append((0, -(-length // code.columns)))
            continue
        if backward:  # rows are keys: queries from the diagonal on
            begin, whole = first // code.columns, -(-last // code.columns)
            found.append((whole - begin, -(-length // code.columns) - whole))
        else:
            whole, end = first // code.columns, -(-last // code.columns)
            found.append((end - whole, whole))
    return sorted(found, key=sum, reverse=True)


def tflops(curve: Curve, length: int, kernels: list[KernelCycles], fitted: Calibration) -> float:
    """What the model says of a curve at a length."""
    heads = CHANNELS // curve.D * (TOKENS // length)
    pairs = length * length / (2 if curve.causal else 1)
    total = work = 0.0
    for code, kernel in zip(curve.codes, kernels, strict=True):
        backward = "bwd" in code.name.lower()
        steps = steps_of(code, length, curve.causal, backward)
        blocks = [cycles for step in steps for cycles in [block_cycles(kernel, *step, fitted)] * heads]
        tensors = 2 * TOKENS * CHANNELS * (4 if not backward else 10)
        operations = 4 * heads * curve.D * pairs * (2.5 if backward else 1)
        gpu = gpu_named(curve.gpu)
        total += seconds(blocks, kernel.resident, tensors, operations, rates_of(gpu).operations("f16"), gpu, fitted)
        if (
            backward
        ):  # a kernel before it, which sums rows of O ∘ dO and clears dQ in f32, and one after, which rounds dQ
            total += 2 * LAUNCH_SECONDS + 14 * TOKENS * CHANNELS / (gpu.memory_bandwidth * 1e9)
        work += operations
    return work / total / 1e12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wheels", type=pathlib.Path, help="a folder with wheels of xformers and of torch for CUDA")
    parser.add_argument("--calibrating-only", action="store_true", help="print nothing of what is held back")
    parser.add_argument("--fit", action="store_true", help="fit the calibration anew, to the half that calibrates")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        wheels = Wheels(arguments.wheels, pathlib.Path(room)) if arguments.wheels else None
        known: Known = {}
        for curve in CURVES:
            if arguments.calibrating_only and held_back(curve):
                continue
            kernels = [timed(code, curve.gpu, wheels) for code in curve.codes]
            if None in kernels:
                print(f"{curve.name}: no machine code here")
            else:
                known[curve] = kernels  # type: ignore[assignment]
    ours()
    if not known:
        return 1
    fitted = fit(known) if arguments.fit else FITTED
    print(f"calibration: {fitted}")
    show(known, fitted)
    return 0


def ours() -> None:
    """Print Weft's own loops, of flash attention forward in fp16: their cycles over the matrix units' own."""
    for target, gpu in (("sm_80", "A100"), ("sm_90a", "H100")):
        for D in (64, 128):
            keys, warps = interior_loop.tiling(D, target)
            kernel = interior_loop.windowed_attention.compile(
                interior_loop.signature(D, keys),
                target=target,
                num_warps=warps,
                num_stages=3 if target == "sm_80" else 2,
            )
            asked = {"entry": "windowed_attention", "num_warps": warps, "shared_bytes": kernel.shared_bytes}
            main = of_ptx(kernel.ptx, target, gpu_named(gpu), [asked])[0].main
            assert main
            times = main.cycles / main.matrix_cycles
            print(f"Weft forward {D} {gpu}: {main.cycles:.0f} / {main.matrix_cycles:.0f} cycles, {times:.2f}")


# ---- Errors


def errors(known: Known, fitted: Calibration) -> dict[Curve, list[float]]:
    """Of each point that is published, how much faster the model is, as a share."""
    return {
        curve: [tflops(curve, n, kernels, fitted) / p - 1 for n, p in zip(LENGTHS, curve.published, strict=True) if p]
        for curve, kernels in known.items()
    }


def mean(found: Iterable[list[float]]) -> float:
    """Of the errors' sizes."""
    return float(np.mean(np.abs(np.concatenate(list(found)))))


def ranks(values: np.ndarray) -> np.ndarray:
    """The place of each among all, that of equal ones their mean: what Spearman's correlation correlates."""
    return (values[:, None] > values).sum(1) + (values[:, None] == values).mean(1) * len(values) / 2


def rank(known: Known, fitted: Calibration) -> float:
    """Spearman's correlation of modelled and published TFLOP/s."""
    pairs = [
        (p, tflops(curve, n, kernels, fitted))
        for curve, kernels in known.items()
        for n, p in zip(LENGTHS, curve.published, strict=True)
        if p
    ]
    return float(np.corrcoef(*(ranks(np.array(each)) for each in zip(*pairs, strict=True)))[0, 1])


def fit(known: Known) -> Calibration:
    """The calibration with the least mean error on the half that calibrates, by steps along one number at a time."""
    mine = {curve: kernels for curve, kernels in known.items() if not held_back(curve)}
    best = Calibration(3000, 0.3, 0.25)
    least, steps = mean(errors(mine, best).values()), np.array([2000, 0.15, 0.1])
    for _ in range(6):
        for axis in range(3):
            for sign in (-1, 1):
                place = np.array([best.block, best.overlap, best.power])
                place[axis] = max(0, place[axis] + sign * steps[axis])
                tried = Calibration(*map(float, place))
                if (error := mean(errors(mine, tried).values())) < least:
                    least, best = error, tried
        steps = steps * 0.7
    return best


def show(known: Known, fitted: Calibration) -> None:
    """The errors of every curve, and of both halves together."""
    bare = Calibration(0, 0, 0)
    print(f"{'half':11}{'curve':32}{'cycles / matrix units':30}error at 512, 1k, 2k, 4k, 8k, 16k")
    for curve, found in errors(known, fitted).items():
        loops = " + ".join(f"{e.main.cycles:.0f} / {e.main.matrix_cycles:.0f}" for e in known[curve] if e.main)
        half = "held back" if held_back(curve) else "calibrates"
        print(f"{half:11}{curve.name:32}{loops:30}{' '.join(f'{each:+.0%}' for each in found)}")
    for half, wanted in (("calibrates", False), ("held back", True)):
        mine = {curve: kernels for curve, kernels in known.items() if held_back(curve) == wanted}
        if not mine:
            continue
        for peer in ("all", *dict.fromkeys(f"{each.peer} {each.passes} {each.gpu}" for each in mine)):
            part = {c: k for c, k in mine.items() if peer in ("all", f"{c.peer} {c.passes} {c.gpu}")}
            found = errors(part, fitted)
            worst = max(abs(each) for several in found.values() for each in several)
            unfitted = f"uncalibrated {mean(errors(part, bare).values()):.1%}, {rank(part, bare):.2f}"
            print(
                f"{half:11}{peer:22}{sum(map(len, found.values())):4} points: mean error {mean(found.values()):.1%}, "
                f"worst {worst:.0%}, rank correlation {rank(part, fitted):.2f}; {unfitted}"
            )


if __name__ == "__main__":
    sys.exit(main())
