# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random tile programs in any number:

cd test/Python && python -m fuzz_tiles --start 0 --count 10000 --processes 2
"""

from __future__ import annotations

import argparse
import collections
import functools
import multiprocessing
import sys

from .check import judged


def main() -> int:
    parser = argparse.ArgumentParser(description="Run random tile programs beside NumPy.")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--large", type=float, default=None, help="the share of large programs")
    given = parser.parse_args()
    seen: collections.Counter[str] = collections.Counter()
    each = functools.partial(judged, large=given.large)
    seeds = range(given.start, given.start + given.count)
    with multiprocessing.get_context("spawn").Pool(given.processes, maxtasksperchild=500) as pool:
        for seed, text in pool.imap_unordered(each, seeds, chunksize=4):
            seen[text if text in ("right", "unknown") else "wrong"] += 1
            if text not in ("right", "unknown"):
                print(f"seed {seed}: {text}", flush=True)
            if seen.total() % 500 == 0:
                print(f"{seen.total()} ran: {dict(seen)}", flush=True)
    print(f"{given.count} ran: {dict(seen)}")
    return 1 if seen["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
