# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The examples' kernels and the papers' mechanisms, compiled, run, judged, tabulated, and shown on a page.

Exit code 1 when something is wrong.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from weft.demo import report
from weft.demo.cases import Case, Judgement
from weft.targets import targets


@dataclass(frozen=True)
class Compiled:
    """A case compiled for one target."""

    case: Case
    target: str
    #: from the call to the PTX; None when an earlier case compiled the same kernel
    seconds: float | None
    resources: report.Resources


@dataclass(frozen=True)
class Ran:
    """A case run and judged on the device."""

    case: Case
    device: str
    judgement: Judgement


def compile_case(case: Case, target: str) -> Compiled:
    """Compile, timed from the call to the PTX, and ask ptxas, where there is one, what it takes."""
    from weft.compiler.ptxas import assemble

    started = time.perf_counter()
    kernel = case.kernel.compile(case.signature, target=target, num_warps=case.warps, num_stages=3)
    seconds = time.perf_counter() - started
    return Compiled(case, target, None if kernel.cached else seconds, assemble(kernel.ptx, target))


def run_case(case: Case) -> Ran:
    """Run on weft.device() and judge against float64."""
    import weft

    return Ran(case, weft.device(), case.judge())


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole demo; returns the process's exit code."""
    parser = argparse.ArgumentParser(prog="python -m weft.demo", description=__doc__.splitlines()[0])
    parser.add_argument("--page", default="weft-demo.html", help="the HTML page to write (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs (default: %(default)s)")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 170)
    with tempfile.TemporaryDirectory() as cache:
        # Compile times are those of cold caches. Triton asks to be told whether it may fuse multiply and add: as ever,
        # it may.
        os.environ |= {"WEFT_CACHE_DIR": cache, "TRITON_CACHE_DIR": cache, "TRITON_DEFAULT_FP_FUSION": "1"}
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("loading PyTorch", total=None)
            import torch

            from weft.demo.cases import all_cases
            from weft.demo.mechanisms import demonstrations, mechanism_table, run_mechanism
            from weft.demo.page import write

            torch.manual_seed(options.seed)
            cases, papers = list(all_cases()), list(demonstrations())
            peers = report.peers_of(cases)
            progress.update(task, total=len(cases) * (1 + len(targets())) + len(peers) + len(papers))
            compiled, ran, beside, mechanisms = [], [], [], []
            for case in cases:
                for target in targets():
                    progress.update(task, description=f"compiling {case.name} for {target}")
                    compiled.append(compile_case(case, target))
                    progress.advance(task)
                progress.update(task, description=f"running {case.name}")
                ran.append(run_case(case))
                progress.advance(task)
            for name, each in papers:
                progress.update(task, description=f"{each.title}: forward and backward")
                mechanisms.append(run_mechanism(name, each))
                progress.advance(task)
            for case in peers:
                progress.update(task, description=f"compiling {case.name} with Triton")
                beside.append(report.beside_triton(case))
                progress.advance(task)
            progress.update(task, description="done")
    grids = [report.main_table(compiled, ran), mechanism_table(mechanisms)]
    grids += [report.peer_table(beside)] if beside else []
    failures = report.failures(compiled, ran) + [text for each in mechanisms for text in each.failures]
    verdict = report.verdict(failures, ran, len(mechanisms))
    for grid in grids:
        console.print(grid.rich())
    write(options.page, verdict, grids, mechanisms)
    console.print(verdict, highlight=False)
    console.print(f"The page: {pathlib.Path(options.page).resolve()}", highlight=False, soft_wrap=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
