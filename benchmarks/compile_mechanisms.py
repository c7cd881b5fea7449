# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What compiling a mechanism costs: forward and backward for sm_80, cold, at the sizes of the papers, by stage.

    python benchmarks/compile_mechanisms.py [--json] [NAME ...]

Processor seconds, each of a fresh process, from a traced program's text to PTX. "attn" are mixers, derivatives and
schedules; "kernels" the tile kernels; "warp" the passes from those to LLVM's dialect; "LLVM" the translation and the
optimiser; "back end" LLVM's own for NVPTX. Limit: 4 s.
"""

from __future__ import annotations

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import time
from typing import Any

MECHANISMS = pathlib.Path(__file__).resolve().parent.parent / "examples" / "mechanisms"
LIMIT = 4.0
#: what is added up in a column
COLUMNS = {
    "attn": ("attn",),
    "kernels": ("launches", "programs"),
    "warp": ("tile", "warp", "pipelined", "llvm"),
    "LLVM": ("translate", "optimise"),
    "back end": ("select",),
}


def heads(size: int, count: str = "H") -> dict[str, str]:
    return dict.fromkeys("qkv", f"fp16[B,{count},N,{size}]:16")


def sema(size: int, taps: int) -> dict[str, str]:
    return heads(size) | {"lepe": f"fp16[{taps},{size}*H]:16"}


def gau(values: int) -> dict[str, str]:
    return dict.fromkeys("vg", f"fp16[B,1,N,{values}]:16")


def equipped(values: int, taps: str) -> dict[str, str]:
    sizes = dict.fromkeys(("x_v", "x_g"), f"fp16[B,1,N,{values}]:16")
    return sizes | {"taps_0": f"fp16[{taps},128]:16", "taps_1": f"fp16[{taps},{values}]:16"}


def sas(few: int, many: int, kernel: int) -> dict[str, Any]:
    """Head sizes 64 and 96, as both of the paper's models have them; W_O is square."""
    values = {
        "conv1.weight": f"fp16[{many},{few},{kernel}]",
        "conv1.bias": f"fp16[{many}]",
        "conv2.weight": f"fp16[{many},{many},{kernel}]",
        "conv2.bias": f"fp16[{many}]",
    }
    linear = {"1.weight": "fp16[96,64]", "1.bias": "fp16[96]", "2.weight": "fp16[96,96]", "2.bias": "fp16[96]"}
    scores = values | {f"linear{name}": kind for name, kind in linear.items()}
    weights = {"q_expand": scores, "k_expand": scores, "v_expand": values}
    return heads(64, str(few)) | weights | {"weight": f"fp16[{few * 64},{few * 64}]", "bias": f"fp16[{few * 64}]"}


#: by name: the program of examples/mechanisms, its inputs of other sizes, its constants
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "attention, D 64": ("attention", {}, {}),
    "SEMA, D 64, window 64": ("sema", {}, {}),
    "SEMA, D 128, window 128": ("sema", sema(128, 3), {"window": 128}),
    "SEMA, D 32, 7x7 of 56x56": ("sema", sema(32, 9), {"window": (7, 7), "grid": (56, 56)}),
    "GAU, Dv 256": ("gau", {}, {}),
    "GAU, Dv 1536": ("gau", gau(1536), {}),
    "equipped GAU, Dv 256, 3 taps": ("convolution_equipped", {}, {}),
    "equipped GAU, Dv 1536, 3 taps": ("convolution_equipped", equipped(1536, "3"), {}),
    "equipped GAU, Dv 256, long taps": ("convolution_equipped", equipped(256, "K"), {}),
    "equipped GAU, Dv 1536, long taps": ("convolution_equipped", equipped(1536, "K"), {}),
    "SFA, 8 heads of 128": ("sfa", {}, {}),
    **{f"SAS, 12 to 36 heads, kernel {k}": ("sas", sas(12, 36, k), {}) for k in (1, 3, 5, 7)},
    **{f"SAS, 16 to 48 heads, kernel {k}": ("sas", sas(16, 48, k), {}) for k in (3, 7)},
}


def resized(program: Any, kinds: dict[str, Any]) -> Any:
    """The program for inputs that are declared otherwise."""
    other = copy.copy(program)
    parameters = program.signature.parameters.values()
    other.signature = program.signature.replace(
        parameters=[each.replace(annotation=kinds.get(each.name, each.annotation)) for each in parameters]
    )
    return other


def child(name: str) -> dict[str, float]:
    """Seconds by column, of the first compilation of this process."""
    from weft import native
    from weft.cli.files import programs_of
    from weft.compiler.lower import native_context
    from weft.programs.compiled import _compile

    program, kinds, constants = CASES[name]
    (found,) = (each for each in programs_of(MECHANISMS) if each.__name__ == program)
    if program == "sas":  # its H is its module's
        found.fn.__globals__["H"] = int(kinds["v_expand"]["conv1.weight"].split(",")[1])
    traced = resized(found, kinds).declare(constants=constants)
    native.load("_compiler")
    native_context()
    start = time.process_time()
    _, info = _compile(traced, {"target": "sm_80", "differentiate": True})
    total = time.process_time() - start
    seconds = {column: sum(info["times_ms"].get(each, 0) for each in of) / 1e3 for column, of in COLUMNS.items()}
    return {**seconds, "kernels made": len(info["kernels"]), "total": total}


def measure(name: str) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--child", name], stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the compiler on the mechanisms.")
    parser.add_argument("names", nargs="*", help="those whose names begin so; all by default")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child)))
        return 0
    names = [name for name in CASES if not options.names or name.startswith(tuple(options.names))]
    if options.json:
        print(json.dumps({name: measure(name) for name in names}))
        return 0
    columns = [*COLUMNS, "total"]
    print(f"| processor seconds | kernels | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 2)}")
    for name in names:
        figures = measure(name)
        cells = " | ".join(f"{figures[column]:.2f}" for column in columns)
        missed = "" if figures["total"] <= LIMIT else f" (limit {LIMIT:g}: missed)"
        print(f"| {name} | {figures['kernels made']:.0f} | {cells}{missed} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
