# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Grid and block shapes, and values of sizes, on the command line."""

from __future__ import annotations

import argparse


def triple(text: str) -> tuple[int, int, int]:
    """``8`` or ``8,2`` or ``8,2,1`` as three sizes, each at least 1."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"expected one to three positive sizes by comma, but got '{text}'")
    sizes = [int(part) for part in parts] + [1, 1]
    return sizes[0], sizes[1], sizes[2]


def sizes_of(text: str) -> dict[str, int]:
    """``B=1,N=1024`` as the values of symbols. ValueError for other texts."""
    sizes = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = part.partition("=")
        if not name.isidentifier() or not value.isdigit():
            raise ValueError(f"expected sizes such as B=1,N=1024, but got '{part}'")
        sizes[name] = int(value)
    return sizes
