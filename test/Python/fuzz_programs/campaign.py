# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Many programs, judged by several processes, and counted: what they came to, and of refusals and failures why."""

from __future__ import annotations

import collections
import functools
import json
import multiprocessing
import time
from pathlib import Path

from . import generate, shrink, worker


def examined(seed, large=generate.LARGE):
    """What became of a seed; failed descriptions are kept, as seeds mean others once the fuzzer has changed."""
    description = generate.describe(seed, large=large)
    start = time.monotonic()
    verdict = worker.isolated(description)
    kept = {"description": description} if verdict.failed else {}
    return kept | {
        "seed": seed, "kind": verdict.kind, "message": verdict.message, "seconds": round(time.monotonic() - start, 2),
        "cause": shrink.generic(verdict.message) if verdict.kind not in ("right", "wrong") else verdict.kind,
    }  # fmt: skip


def verdicts(seeds, jobs, large=generate.LARGE):
    """The records of seeds as they come."""
    each = functools.partial(examined, large=large)
    if jobs == 1:
        yield from map(each, seeds)
        return
    context = multiprocessing.get_context("fork")
    with context.Pool(jobs) as pool:
        yield from pool.imap_unordered(each, seeds)


class Log:
    """Records in a file, one a line, so that a run can go on where it was left."""

    def __init__(self, path):
        self.path = Path(path)
        self.records = []
        if self.path.exists():
            self.records = [json.loads(line) for line in self.path.read_text().splitlines()]

    def add(self, record):
        self.records.append(record)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")


def table(records):
    """The counts in words."""
    kinds = collections.Counter(r["kind"] for r in records)
    lines = [f"{len(records)} programs: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())]
    for kind in kinds:
        if kind == "right":
            continue
        causes = collections.Counter(r["cause"] for r in records if r["kind"] == kind)
        for cause, count in causes.most_common(40):
            first = [r["seed"] for r in records if r["kind"] == kind and r["cause"] == cause][:6]
            lines.append(f"  {kind} {count}: {cause[:150]}  (seeds {first})")
    return "\n".join(lines)
