# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Which schedules ``weft tune`` chose for a program, kept on disk beside compiled forms: one file for each program and
target. The tuner writes them; calls, compilations and libraries of the program read them. For sizes without one there
may be a choice that ships with Weft (weft.programs.modelled).
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from .. import locks
from ..compiler import cache
from ..compiler.fingerprint import compiler_fingerprint
from ..runtime.program import forget_operators
from .buckets import Bucket
from .modelled import modelled

_FORMAT = 2
_lock = locks.lock("choices")
_known: dict[tuple[str, str], list[dict[str, Any]]] = {}
_changes = itertools.count()
_last = next(_changes)


@functools.lru_cache(maxsize=4096)
def program_hash(plain: str) -> str:
    """The hash that a program goes by: of its IR without locations."""
    return hashlib.sha256(plain.encode()).hexdigest()


def choices(program: str, target: str) -> list[dict[str, Any]]:
    """What was chosen for a program on a target, by bucket: {"guards": [["N", 1024, 2048], ...], "sizes": {...},
    "schedules": {"0.forward": [128, 64, 4, 3]}, "device": ..., "seconds": ..., "default_seconds": ...}."""
    known = (program, target)
    with _lock:
        if known not in _known:
            _known[known] = (cache.read(_choices(program, target)) or {"choices": []})["choices"]
        return _known[known]


def known(plain: str, target: str) -> list[dict[str, Any]]:
    """The choices for a program's IR on a target: those made here, then those that ship with Weft, which are
    "modelled". The first whose bucket holds counts."""
    own, shipped = choices(program_hash(plain), target), modelled(plain, target)
    return [*own, *shipped] if shipped else own


def changes() -> int:
    """Another number after every change."""
    return _last


def _changed() -> None:
    global _last
    _last = next(_changes)
    forget_operators()


def choose(program: str, target: str, choice: Mapping[str, Any]) -> None:
    """Keep a choice in the place of an earlier one for the same bucket."""
    choice = json.loads(json.dumps(choice))
    with _lock, _exclusively():
        _known.pop((program, target), None)
        _changed()
        kept = [each for each in choices(program, target) if each["guards"] != choice["guards"]]
        _known[program, target] = [*kept, dict(choice)]
        cache.write(_choices(program, target), {"choices": _known[program, target]})


def forget() -> None:
    """Read choices anew when they are next asked for."""
    with _lock:
        _known.clear()
        _changed()


def _choices(program: str, target: str) -> str:
    return cache.key([_FORMAT, "choices", program, target, compiler_fingerprint()])


@contextlib.contextmanager
def _exclusively() -> Iterator[None]:
    """While it lasts, no other process changes choices."""
    root = cache.directory()
    if root is None:
        yield
        return
    root.mkdir(parents=True, exist_ok=True)
    with (root / "tuning.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def chosen(plain: str, target: str, sizes: Mapping[str, int]) -> dict[str, list[int]]:
    """The schedules that were chosen for a program at these sizes: {} where none were."""
    return dict((choice_for(plain, target, sizes) or {"schedules": {}})["schedules"])


def choice_for(plain: str, target: str, sizes: Mapping[str, int]) -> dict[str, Any] | None:
    """The choice that counts for a program at these sizes; None where there is none."""
    for choice in known(plain, target):
        if Bucket(tuple(map(tuple, choice["guards"]))).holds(sizes):
            return choice
    return None
