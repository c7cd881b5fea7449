# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What was measured, kept on disk beside compiled forms (weft.compiler.cache).

A measurement is one file, by program, target, sizes, kernel and schedule: an interrupted run goes on where it was, and
a candidate more is one measurement more. What was chosen is in weft.programs.choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.compiler import cache
from weft.compiler.fingerprint import compiler_fingerprint

_FORMAT = 2


def measurement(parts: Mapping[str, Any]) -> str:
    """The name of a measurement."""
    return cache.key([_FORMAT, "measurement", dict(parts), compiler_fingerprint()])


def read(name: str) -> dict[str, Any] | None:
    """A measurement, or None."""
    return cache.read(name)


def write(name: str, record: Mapping[str, Any]) -> None:
    """Keep a measurement, beside and then renamed."""
    cache.write(name, dict(record))


def records_file() -> str:
    """The file of this machine's measurements, of whatever build of the compiler; "" where the cache is off."""
    root = cache.directory()
    return "" if root is None else str(root / "records.jsonl")
