# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tile kernels through Weft and through Triton, from one source at the same tiles, warps and stages.

    .venv/bin/python benchmarks/beside_triton.py
    .venv/bin/python benchmarks/beside_triton.py --only matmul --json figures.json
    .venv/bin/python benchmarks/beside_triton.py --target sm_90a
    .venv/bin/python benchmarks/beside_triton.py --inductor
    .venv/bin/python benchmarks/beside_triton.py --warps 2 --stages 2

Both PTXs are made for one target, by default sm_80, and run on the simulator on fresh inputs, printed by their seed;
results are compared with float64. A ratio is Weft's figure over Triton's. "Loop": machine instructions of a warp in the
loop with most products for each m16n8k16's multiply-adds, whatever instructions make them. "Exposed": loads of a loop
whose values are waited for in the same iteration with no product in between, beyond Triton's. "Blocks": those that a
multiprocessor holds at once, by registers, shared memory and warps, fewer than Triton's. Kernels are in
tile_kernels; ``installed`` takes its from flash-linear-attention as installed. ``--inductor`` measures those that
torch.compile writes of the functions in inductor_launches.py instead, whose results are compared with Triton's.
``--warps`` and ``--stages`` launch every kernel otherwise than its authors do.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pathlib
import re
import statistics
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from weft.folders import scratch_folder

RATIOS = {
    "instructions": "instructions",
    "read": "sectors read",
    "written": "sectors written",
    "wavefronts": "wavefronts",
    "barriers": "barriers",
    "registers": "registers",
    "per_product": "loop",
    "seconds": "compile",
}
EXCESSES = {"spill_bytes": "spill bytes", "exposed_loads": "exposed"}
DEFICITS = {"blocks": "blocks"}


def ratio(row: dict[str, Any], key: str) -> float | None:
    """Weft's figure over Triton's; None where neither has one; infinity where only Weft does."""
    ours, theirs = row.get("weft", {}).get(key), row.get("triton", {}).get(key)
    if ours is None or theirs is None or not (ours or theirs):
        return None
    return ours / theirs if theirs else float("inf")


def excess(row: dict[str, Any], key: str) -> int | None:
    """How many more than Triton; of what there should be more of, fewer."""
    if "weft" not in row or "triton" not in row:
        return None
    more = row["weft"][key] - row["triton"][key]
    return max(0, -more if key in DEFICITS else more)


def right(row: dict[str, Any]) -> bool:
    """Whether the results are as float64 has them, and the simulator finds no fault."""
    return not row["error"] and not row["findings"] and max(row["weft"]["off"].values(), default=1e9) <= 1


def verdict(row: dict[str, Any]) -> str:
    if row["error"]:
        return "does not compile or run"
    if row["findings"]:
        return f"{len(row['findings'])} findings"
    return "right" if right(row) else f"WRONG, {max(row['weft']['off'].values(), default=1e9):.3g} × the tolerance"


def cell(value: float | None) -> str:
    return "" if value is None else f"[bold]{value:.2f}[/]" if value > 1.005 else f"{value:.2f}"


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """A line a kernel."""
    table = Table(title="Weft over Triton")
    for name in ("kernel", "results", *RATIOS.values(), *EXCESSES.values(), *DEFICITS.values()):
        table.add_column(name, justify="left" if name in ("kernel", "results") else "right", overflow="fold")
    for row in rows:
        counts = [excess(row, key) for key in EXCESSES | DEFICITS]
        excesses = ["" if not count else f"[bold]{count}[/]" for count in counts]
        table.add_row(row["name"], verdict(row), *(cell(ratio(row, key)) for key in RATIOS), *excesses)
    console.print(table)
    for row in rows:
        for text in filter(None, (row["error"], row["peer_error"], *row["findings"][:2])):
            console.print(f"{row['name']}: {text[:600]}", markup=False, highlight=False)


def summary(rows: list[dict[str, Any]], console: Console) -> None:
    """Median; worst; how many are above 1."""
    table = Table(title=f"{len(rows)} kernels")
    for name in ("", "median", "worst", "above 1", "of", "worst kernel"):
        table.add_column(name, justify="right" if name in ("median", "worst", "above 1", "of") else "left")
    good = sum(map(right, rows))
    table.add_row("right, no findings", "", "", str(len(rows) - good), str(len(rows)), "")
    for key, title in RATIOS.items():
        known = [(value, row["name"]) for row in rows if (value := ratio(row, key)) is not None]
        if known:
            worst, middle = max(known), statistics.median(value for value, _ in known)
            above = sum(value > 1 for value, _ in known)
            table.add_row(title, f"{middle:.2f}", f"{worst[0]:.2f}", str(above), str(len(known)), worst[1])
    for key, title in (EXCESSES | DEFICITS).items():
        counts = [(count, row["name"]) for row in rows if (count := excess(row, key)) is not None]
        if counts:
            above = sum(count > 0 for count, _ in counts)
            worst_count = max(counts)
            name = worst_count[1] if worst_count[0] else ""
            than = "below" if key in DEFICITS else "beyond"
            table.add_row(f"{title} {than} Triton's", "", str(worst_count[0]), str(above), str(len(counts)), name)
    console.print(table)


def measured(names: list[str], how: tuple[Any, ...], processes: int, console: Console) -> Iterable[dict[str, Any]]:
    """Rows in the order of the names, measured by as many processes; ``how`` is what `measure` takes besides."""
    from tile_kernels.measured import begin, measure

    context = multiprocessing.get_context("spawn")
    found: dict[str, dict[str, Any]] = {}
    with (
        scratch_folder("weft-beside-") as folder,
        ProcessPoolExecutor(processes, mp_context=context, initializer=begin, initargs=(folder,)) as pool,
        Progress(console=console) as bar,
    ):
        task = bar.add_task("kernels", total=len(names))
        for done in as_completed([pool.submit(measure, name, *how) for name in names]):
            row = done.result()
            found[row["name"]] = row
            bar.update(task, advance=1, description=row["name"])
    return [found[name] for name in names]


def launches_of_inductor(folder: str, console: Console) -> None:
    """Has torch.compile write kernels, and takes those of the folder for the cases."""
    script = pathlib.Path(__file__).with_name("inductor_launches.py")
    command = [sys.executable, "-m", "weft.triton", str(script), folder]
    with console.status("torch.compile writes kernels, about a minute"):
        subprocess.run(
            command, check=True, env=os.environ | {"WEFT_SIMULATOR_CHECKS": "none"}, capture_output=True, text=True
        )
    os.environ["WEFT_INDUCTOR_LAUNCHES"] = folder


def names_of(pattern: str) -> list[str]:
    """The cases whose names have the pattern, found by a process that can import them."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return [name for name in pool.submit(_all_names).result() if re.search(pattern, name)]


def _all_names() -> list[str]:
    from tile_kernels import load
    from weft.triton.replace import replace

    replace()
    return list(load())


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure tile kernels beside Triton's.")
    parser.add_argument("--only", default="", help="a regular expression that a kernel's name must have")
    parser.add_argument("--target", default="sm_80", help="that both compile for, such as sm_90a")
    parser.add_argument("--warps", type=float, default=1, help="as many times a kernel's own warps, such as 0.5 or 2")
    parser.add_argument("--stages", type=int, help="in place of a kernel's own")
    parser.add_argument("--inductor", action="store_true", help="measure kernels that torch.compile writes")
    parser.add_argument("--list", action="store_true", help="print the names of the kernels, and measure nothing")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file as well")
    parser.add_argument("--ptx", type=pathlib.Path, help="write each kernel's PTX by both to this folder")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "little"), help="of the inputs")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many measure at once")
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 210)
    with scratch_folder("weft-inductor-") as folder:
        if given.inductor:
            launches_of_inductor(str(folder), console)
        return compared(given, console)


def compared(given: argparse.Namespace, console: Console) -> int:
    """Prints what the arguments ask for; 1 where a kernel is not right."""
    names = names_of(given.only)
    if given.list:
        print("\n".join(names))
        return 0
    console.print(f"seed {given.seed}")
    how = (given.seed, given.ptx, given.target, given.warps, given.stages)
    rows = list(measured(names, how, given.processes, console))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    show(rows, console)
    summary(rows, console)
    return 0 if all(map(right, rows)) else 1


if __name__ == "__main__":
    sys.exit(main())
