# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Grid and block shapes on the command line."""

from __future__ import annotations

import argparse


def triple(text: str) -> tuple[int, int, int]:
    """``8`` or ``8,2`` or ``8,2,1`` as three sizes, each at least 1."""
    parts = text.split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"expected one to three positive sizes by comma, but got '{text}'")
    sizes = [int(part) for part in parts] + [1, 1]
    return sizes[0], sizes[1], sizes[2]
