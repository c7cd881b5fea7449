# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a process that goes on keeps: memory after each of many compilations, runs and threads.

    python benchmarks/memory.py [--count N] [--json]

Each case runs in a process of its own: half of its steps first, then the rest, over which resident memory may grow by
the limit. "compilations": other programs, in one context. "threads": each of them compiles once and ends. "programs":
other programs of the front end, compiled and run, of which the process keeps the last 256. "runs": one program.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable

PROGRAM = """
func.func @f{i}(%x: !attn.tensor<[B, H, N, 64], f16> {{attn.name = "x"}})
    -> (!attn.tensor<[B, H, N, 64], f16> {{attn.name = "y"}}) attributes {{attn.program}} {{
  %y = attn.map ins(%x : !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> {{
  ^bb0(%a: f32):
    %c = arith.constant {c} : f32
    %m = arith.mulf %a, %c : f32
    attn.yield %m : f32
  }}
  return %y : !attn.tensor<[B, H, N, 64], f16>
}}
"""


def resident() -> int:
    """Bytes of this process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def compile_one(i: int) -> None:
    from weft.compiler.lower import native_context

    context = native_context().context
    text = PROGRAM.format(i=i, c=repr(1 + i / 1024))
    ptx, _, error = context.parse(text, f"program {i}").compile('{"target": "sm_80"}')
    assert ptx, (error, context.take_diagnostics())


def in_a_thread(i: int) -> None:
    thread = threading.Thread(target=compile_one, args=(i,))
    thread.start()
    thread.join()


def program(i: int) -> None:
    import torch
    from weft.attention import attend

    q = torch.ones(1, 1, 4, 16)
    attend(q, q, q, scale=1 + i / 1024)


def run(_: int) -> None:
    program(0)


#: by name: a step, how many, the most bytes that one may leave (of all steps, the allocator keeps a few MB or gives
#: them back as it happens)
CASES: dict[str, tuple[Callable[[int], None], int, int]] = {
    "compilations": (compile_one, 2000, 4096),
    "threads": (in_a_thread, 1000, 8192),
    "programs": (program, 600, 64 * 1024),
    "runs": (run, 2000, 2048),
}


def child(name: str, count: int) -> dict[str, float]:
    step, _, _ = CASES[name]
    warm = max(1, count // 2)
    for i in range(warm):
        step(i)
    before = resident()
    for i in range(warm, count):
        step(i)
    return {"resident MB": resident() / 1e6, "bytes a step": (resident() - before) / max(1, count - warm)}


def measure(name: str, count: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", name, "--count", str(count)]
    environment = {**os.environ, "WEFT_CACHE": "0"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return dict(json.loads(done.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure what long processes keep.")
    parser.add_argument("--count", type=int, help="steps of each case")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.count)))
        return 0
    found = {name: measure(name, options.count or count) for name, (_, count, _) in CASES.items()}
    if options.json:
        print(json.dumps(found))
        return 0
    print("| case | steps | resident, MB | bytes a step | limit |\n|---|---|---|---|---|")
    for name, figures in found.items():
        _, count, limit = CASES[name]
        grown = figures["bytes a step"]
        missed = "" if grown <= limit else " (missed)"
        print(
            f"| {name} | {options.count or count} | {figures['resident MB']:.0f} | {grown:,.0f} | {limit:,}{missed} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
