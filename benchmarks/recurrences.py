# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Linear recurrences at chunks of 64: instructions beside flash-linear-attention's Triton kernels, as installed.

    .venv/bin/python benchmarks/recurrences.py
    .venv/bin/python benchmarks/recurrences.py --kind gated_delta_rule --tokens 256 --json figures.json

Its operator runs forward and backward with Weft in Triton's place, which gives each launch with its arguments; the
first of its autotuned configurations is taken. Triton compiles each launch's kernel for sm_80, and the simulator counts
both sides' warp instructions on the same inputs, bf16, heads of 64 channels or as many as are given.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from weft.folders import scratch_folder

#: flash-linear-attention's operators, and what they take; gk are decays by channel
KINDS = {
    "delta_rule": ("q", "k", "v", "beta"),
    "gated_delta_rule": ("q", "k", "v", "g", "beta"),
    "simple_gla": ("q", "k", "v", "g"),
    "gla": ("q", "k", "v", "gk"),
}


def theirs(tokens: int, heads: int, channels: int, kind: str) -> dict[str, dict[str, int]]:
    """Warp instructions of the operator's launches, by kernel, of the forward and of the backward."""
    with scratch_folder("weft-beside-") as folder:
        return of_launches(folder, tokens, heads, channels, kind)


def of_launches(folder: pathlib.Path, tokens: int, heads: int, channels: int, kind: str) -> dict[str, dict[str, int]]:
    """The same, with caches in a folder."""
    from tile_kernels import installed, measured
    from tile_kernels.compiled import Peer
    from weft.compiler.jit import JITFunction

    measured.begin(folder, peer=False)
    installed.TOKENS, installed.HEADS, installed.SIZE = tokens, heads, channels
    operator = installed.of_library(f"ops.{kind}", f"chunk_{kind}")
    sequences = installed.sequences(*KINDS[kind]).items()
    given = {"g" if name == "gk" else name: x.requires_grad_() for name, x in sequences}
    launches: list[installed.Launched] = []
    original = JITFunction._call

    def record(self: Any, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        bound = self._named(args, dict(kwargs))
        extent = grid(bound) if callable(grid) else grid
        values = {p.name: bound[p.name] for p in self.params}
        kept = {k: v.detach().clone() if isinstance(v, torch.Tensor) else v for k, v in values.items()}
        extent = (extent,) if isinstance(extent, int) else tuple(extent)
        launches.append(installed.Launched(self, extent, kept, bound["num_warps"], bound["num_stages"]))
        return original(self, grid, *args, **kwargs)

    JITFunction._call = record
    try:
        out = operator(**given)[0]
        forward = len(launches)
        out.backward(torch.randn_like(out))
    finally:
        JITFunction._call = original
    peer = Peer(folder / "triton")
    found: dict[str, dict[str, int]] = {"forward": {}, "backward": {}}
    for number, launch in enumerate(launches):
        fixed = {p.name for p in launch.kernel.params if p.is_constexpr}
        arguments = {name: value for name, value in launch.values.items() if name not in fixed}
        constants = {name: value for name, value in launch.values.items() if name in fixed}
        case = installed.Case(launch.kernel, launch.grid, arguments, constants, {}, launch.warps, launch.stages)
        wanted = measured.requested(case)
        _, report = measured.run(wanted, peer.compile(wanted), case, "none")
        part = found["forward" if number < forward else "backward"]
        kernel = launch.kernel.__name__
        part[kernel] = part.get(kernel, 0) + report.counters["warp_instructions"]
    return found


def ours(tokens: int, heads: int, channels: int, kind: str) -> dict[str, dict[str, int]]:
    """The same of Weft's kernels."""
    import weft
    from weft.testing.plans import counted, instructions

    @weft.program
    def rule(q: Any, k: Any, v: Any, beta: Any, *log_decay: Any) -> Any:
        return weft.delta_rule(q, k, beta, *log_decay) @ v

    @weft.program
    def linear(q: Any, k: Any, v: Any, *log_decay: Any) -> Any:
        return weft.linear_attention(q, k, *log_decay) @ v

    q, k, v = (torch.randn(1, heads, tokens, channels).bfloat16() for _ in range(3))
    betas = [torch.rand(1, heads, tokens)] if "beta" in KINDS[kind] else []
    sizes = {"g": (1, heads, tokens), "gk": (1, heads, tokens, channels)}
    decays = [-torch.rand(*size) for name, size in sizes.items() if name in KINDS[kind]]
    k = torch.nn.functional.normalize(k.float(), dim=-1).bfloat16()
    runs = counted(rule if betas else linear, q, k, v, *betas, *decays, target="sm_80")
    return {part: instructions(run) for part, run in runs.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description="Count recurrences' instructions beside Triton's.")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--kind", choices=tuple(KINDS), default="delta_rule", help="flash-linear-attention's operator")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there")
    given = parser.parse_args()
    sizes = (given.tokens, given.heads, given.channels, given.kind)
    figures = {"weft": ours(*sizes), "triton": theirs(*sizes)}
    console = Console()
    for part in ("forward", "backward"):
        table = Table("kernel", "instructions", title=part)
        for side in ("weft", "triton"):
            for kernel, count in figures[side][part].items():
                table.add_row(f"{side}: {kernel}", f"{count:,}")
        mine, peer = (sum(figures[side][part].values()) for side in ("weft", "triton"))
        table.add_row("ratio", f"{mine / peer:.2f}")
        console.print(table)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
