# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""python -m fuzz_programs --count 1000 --seed 1: random programs against the interpreter; failures are shrunk."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from . import campaign, generate, shrink, source, worker


def main():
    parser = argparse.ArgumentParser(prog="fuzz_programs", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="the first seed; without it, a fresh one")
    parser.add_argument("--count", type=int, default=100, help="how many programs, seeds that follow one another")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--large", type=float, default=generate.LARGE, help="the share of programs with large sizes")
    parser.add_argument("--time", type=float, default=None, help="stop after so many seconds")
    parser.add_argument(
        "--log", type=Path, help="a file of verdicts; a run with the same file goes on where it was left"
    )
    parser.add_argument("--failures", type=Path, help="a folder for a script of each kind of failure, shrunk")
    parser.add_argument("--show", action="store_true", help="print the programs of these seeds, and run nothing")
    given = parser.parse_args()
    first = given.seed if given.seed is not None else time.time_ns() // 1000 % 10**9
    if given.show:
        for seed in range(first, first + given.count):
            print(f"# seed {seed}\n{source.program(generate.describe(seed, large=given.large))}")
        return 0
    worker.prepare()
    log = campaign.Log(given.log) if given.log else None
    records = list(log.records) if log else []
    done = {r["seed"] for r in records}
    seeds = [s for s in range(first, first + given.count) if s not in done]
    end = time.monotonic() + given.time if given.time else float("inf")
    shown = {(r["kind"], r["cause"]) for r in records}
    print(f"seeds {first} to {first + given.count - 1}, {len(done)} of them known", flush=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("programs", total=len(seeds))
        for record in campaign.verdicts(seeds, given.jobs, given.large):
            records.append(record)
            if log:
                log.add(record)
            bad = sum(r["kind"] not in ("right", "skipped", "refused") for r in records)
            progress.update(task, advance=1, description=f"programs, {bad} failed")
            cause = record["kind"], record["cause"]
            if record["kind"] not in ("right", "skipped") and (
                cause not in shown or record["kind"] in ("wrong", "crash")
            ):
                shown.add(cause)
                progress.console.print(
                    f"seed {record['seed']}: {record['kind']}: {record['message'][:300]}", markup=False
                )
                if given.failures and record["kind"] != "refused":
                    save(record["description"], given.failures)
            if time.monotonic() > end:
                break
    print(campaign.table(records))
    return int(any(r["kind"] not in ("right", "skipped", "refused") for r in records))


def save(description, folder):
    """Shrink a failure and write its script."""
    smaller, verdict = shrink.shrunk(description, worker.isolated(description))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{verdict.kind}_{description['seed']}.py").write_text(shrink.script(smaller, verdict))


if __name__ == "__main__":
    sys.exit(main())
