# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a section is made of."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: the repository that this package lies in; in an installed one there is none of what is looked for there
CHECKOUT = pathlib.Path(__file__).resolve().parents[3]


class LeftOut(Exception):
    """Raised by a case that cannot be run here, with the reason: what a peer does not do, what is not installed."""


class Wrong(Exception):
    """Raised by a case that ran and gave what it should not have, with what was expected and what came."""


@dataclass(frozen=True)
class Options:
    """What to run. ``lengths``, ``heads`` (their sizes) and ``tokens`` (in a batch) are those of times, ``only`` the
    corpus' cases whose names have one of these words, all where it is empty."""

    lengths: tuple[int, ...] = (1024, 2048, 4096, 8192, 16384, 32768)
    heads: tuple[int, ...] = (64, 128, 256)
    tokens: int = 32768
    width: int = 2048
    """heads times their size"""
    window: int = 1024
    only: tuple[str, ...] = ()
    rounds: int = 50
    """the most runs that a time is the median of"""


@dataclass(frozen=True)
class Case:
    """One row: its name, in parts, and what makes the row's values. ``ours`` says that its failure is Weft's."""

    name: tuple[str, ...]
    run: Callable[[], dict[str, Any]]
    ours: bool = True
