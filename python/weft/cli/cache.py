# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft cache``: what the cache of compiled kernels holds, and emptying it."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add(commands: Any) -> None:
    """Add the sub-command."""
    part = commands.add_parser(
        "cache",
        help="what the cache of compiled kernels holds; empty it",
        description="The cache of compiled kernels: ~/.cache/weft, or WEFT_CACHE_DIR. Entries take at most "
        "WEFT_CACHE_BYTES (1 GiB); WEFT_CACHE=0 turns it off.",
    )
    part.add_argument(
        "action", choices=("info", "clear"), help="info: where it is and what it holds; clear: delete all"
    )
    part.add_argument("--json", action="store_true", help="print one JSON object")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the sub-command."""
    from weft.compiler import cache

    root = cache.directory()
    if arguments.action == "clear":
        gone = cache.prune(-1)
        print(json.dumps({"deleted": gone}) if arguments.json else f"deleted {gone} entries of {root}")
        return 0
    usage = cache.usage()
    found = {"directory": None if root is None else str(root)} | usage.__dict__
    if arguments.json:
        print(json.dumps(found))
    elif root is None:
        print("the cache is off: WEFT_CACHE=0")
    else:
        print(f"{root}: {usage.entries} entries, {usage.bytes / 1e6:.1f} MB of at most {usage.limit / 1e6:.0f} MB")
    return 0
