# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""How long the compiler takes on the flash-attention kernel of examples/04; compile_mechanisms.py is of programs.

    python benchmarks/compile_time.py [--runs N] [--json]

Each figure is the median over fresh processes with empty caches. "call to PTX" begins when an interpreter whose imports
are done first asks for the kernel, and ends with its PTX; Triton's, where it is installed, is the same for the same
source. Limits: 400 ms to PTX, 150 ms for `import weft`, 1 ms for a call of a kernel that is compiled.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "04_flash_attention.py"
LIMITS_MS = {"import weft": 150.0, "call to PTX": 400.0, "compiled call": 1.0}

STRIDES = [f"stride_{t}{axis}" for t, axes in (("q", "bhn"), ("k", "bhm"), ("v", "bhm"), ("o", "bhn")) for axis in axes]
POINTERS = {"q": "fp16", "k": "fp16", "v": "fp16", "out": "fp16", "lse": "fp32"}
SIGNATURE = ", ".join(
    [f"{name}:*{kind}:16" for name, kind in POINTERS.items()]
    + ["scale_log2:fp32"]
    + [f"{name}:i32:16" for name in STRIDES]
    + ["heads:i32", "N:i32:16", "M:i32:16"]
)
CONSTANTS = {"D": 64, "CAUSAL": True, "BLOCK_M": 128, "BLOCK_N": 64}
OTHER_CONSTANTS = {**CONSTANTS, "CAUSAL": False}


def load_example():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("flash_attention", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def child_import() -> dict[str, float]:
    """`import weft` alone."""
    import time

    start = time.perf_counter()
    importlib.import_module("weft")

    return {"import weft": 1e3 * (time.perf_counter() - start)}


def child_weft() -> dict[str, float]:
    """The first compilation in a process, by stage, and a second request for the same kernel."""
    import time

    import torch
    from weft import native

    kernel = load_example().flash_attention_kernel
    native.load("_compiler")
    start = time.perf_counter()
    compiled = kernel.compile(signature=SIGNATURE, constants=CONSTANTS, num_warps=4, num_stages=3)
    total = 1e3 * (time.perf_counter() - start)
    assert not compiled.cached, "expected an empty cache"
    times = {f"  {stage}": ms for stage, ms in compiled.info["times_ms"].items() if stage != "total"}
    start = time.perf_counter()
    kernel.compile(signature=SIGNATURE, constants=OTHER_CONSTANTS, num_warps=4, num_stages=3)
    second = 1e3 * (time.perf_counter() - start)

    x = torch.zeros(1, 1, 128, 64, dtype=torch.float16)
    arguments = [x, x, x, x, torch.zeros(128), 1.0, *[64] * len(STRIDES), 1, 128, 128]
    os.environ.setdefault("WEFT_DEVICE", "simulator")
    kernel.warmup(*arguments, **CONSTANTS, num_warps=4, num_stages=3)
    rounds = 200
    start = time.perf_counter()
    for _ in range(rounds):
        kernel.warmup(*arguments, **CONSTANTS, num_warps=4, num_stages=3)
    call = 1e3 * (time.perf_counter() - start) / rounds
    return {"call to PTX": total, **times, "second kernel to PTX": second, "compiled call": call}


def child_triton() -> dict[str, float]:
    """The same source through Triton, which goes on to a cubin; its own clock says when it had PTX.

    The first kernel of the process, then another.
    """
    from triton import knobs
    from weft.demo.triton_peer import compile_with_triton

    stages: dict[str, float] = {}

    def listen(src, metadata, metadata_group, times, cache_hit) -> None:
        stages["front end"] = times.ir_initialization / 1e3
        stages.update({name: us / 1e3 for name, us in times.lowering_stages})

    knobs.compilation.listener = listen
    types = {name: f"*{kind}" for name, kind in POINTERS.items()} | {"scale_log2": "fp32"}
    types |= dict.fromkeys([*STRIDES, "heads", "N", "M"], "i32")
    function = load_example().flash_attention_kernel.fn
    figures: dict[str, float] = {}
    for name, constants in (("Triton: call to PTX", CONSTANTS), ("Triton: second kernel to PTX", OTHER_CONSTANTS)):
        compile_with_triton(function, types, constants, divisible=(*POINTERS, *STRIDES, "N", "M"))
        figures[name] = sum(ms for stage, ms in stages.items() if stage != "cubin")
        if not figures.keys() - {name}:
            figures |= {f"  {stage}": ms for stage, ms in stages.items()}
    return figures


CHILDREN = {"import": child_import, "weft": child_weft, "triton": child_triton}


def measure(child: str, runs: int) -> dict[str, float]:
    """Medians of what `runs` fresh processes print. Raises CalledProcessError with the child's own words on stderr."""
    samples: list[dict[str, float]] = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as cache:
            caches = {"WEFT_CACHE_DIR": cache, "TRITON_CACHE_DIR": cache}
            # Triton asks to be told whether it may fuse multiply and add: as ever, it may.
            environment = {**os.environ, **caches, "TRITON_DEFAULT_FP_FUSION": "1"}
            command = [sys.executable, __file__, "--child", child]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        samples.append(json.loads(done.stdout))
    return {name: statistics.median(sample[name] for sample in samples) for name in samples[0]}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the compiler on the flash-attention kernel.")
    parser.add_argument("--runs", type=int, default=5, help="fresh processes for each figure")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(CHILDREN[options.child]()))
        return 0
    figures = measure("import", options.runs) | measure("weft", options.runs)
    if importlib.util.find_spec("triton"):
        figures |= measure("triton", options.runs)
    if options.json:
        print(json.dumps(figures))
        return 0
    for name, ms in figures.items():
        limit = LIMITS_MS.get(name)
        verdict = "" if limit is None else f"   limit {limit:g} ms: {'met' if ms <= limit else 'MISSED'}"
        print(f"{name:30}{ms:10.2f} ms{verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
