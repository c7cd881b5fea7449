# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Choices that ship with Weft: schedules of the papers' mechanisms that the tuner's models ranked best, without a GPU.

They count where nothing was chosen here. `make choices` (tools/tune_mechanisms.py) writes them as records, which
`weft records show` prints.
"""

from __future__ import annotations

import functools
import hashlib
import json
import pathlib
import re
from typing import Any

FILE = pathlib.Path(__file__).with_name("modelled.jsonl")
#: what the policy of a record says that no GPU timed
POLICY = "modelled"
_NAME = re.compile(r"func\.func @[\w.$-]+")


@functools.lru_cache(maxsize=4096)
def form_hash(plain: str) -> str:
    """The hash of a program's IR without locations and without its name: functions of any name share a choice."""
    return hashlib.sha256(_NAME.sub("func.func @program", plain, count=1).encode()).hexdigest()


@functools.cache
def _shipped() -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else ():
        record = json.loads(line)
        choice = {**{name: record[name] for name in ("guards", "sizes", "schedules", "device")}, "modelled": True}
        found.setdefault((record["form"], record["target"]), []).append(choice)
    return found


def modelled(plain: str, target: str) -> list[dict[str, Any]]:
    """What ships for a program on a target, by bucket, as weft.programs.choices.choices has it."""
    if not _shipped():
        return []
    return _shipped().get((form_hash(plain), target), [])
