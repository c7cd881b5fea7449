# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The cache of compiled kernels on disk: ~/.cache/weft, or WEFT_CACHE_DIR; WEFT_CACHE=0 turns it off.

One file an entry. An entry is written beside and renamed, so that readers see all of it or none; one that does not read
back whole is ignored and replaced. Entries together take at most WEFT_CACHE_BYTES (1 GiB): those that were not used for
longest go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import threading
import time
from dataclasses import dataclass
from typing import Any

from weft.errors import Error


def directory() -> pathlib.Path | None:
    """Where entries are; None when the cache is off."""
    if os.environ.get("WEFT_CACHE") == "0":
        return None
    named = os.environ.get("WEFT_CACHE_DIR")
    if named:
        return pathlib.Path(named)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "weft"


def key(parts: Any) -> str:
    """The name of the entry for these parts, which JSON must be able to write."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _path(name: str) -> pathlib.Path | None:
    root = directory()
    return None if root is None else root / name[:2] / f"{name}.json"


def _digest(name: str, payload: str) -> str:
    return hashlib.sha256(f"{name}\n{payload}".encode()).hexdigest()


@dataclass(frozen=True)
class Usage:
    """What the cache holds."""

    entries: int
    bytes: int
    limit: int


_PRUNE_EVERY = 64  # about so many writes, of all processes together, for a look at the whole folder
_ABANDONED_SECONDS = 3600


def limit() -> int:
    """The most bytes that entries may take. Raises Error where WEFT_CACHE_BYTES is no number of bytes."""
    given = os.environ.get("WEFT_CACHE_BYTES")
    if given is None:
        return 1 << 30
    if not given.isdecimal():
        raise Error(f"expected WEFT_CACHE_BYTES to be a number of bytes, but got '{given}'")
    return int(given)


def _entries() -> list[tuple[float, int, pathlib.Path]]:
    """When each entry was last used, its bytes and its path, the oldest first. Other processes may delete meanwhile."""
    root = directory()
    found = []
    for path in root.glob("[0-9a-f][0-9a-f]/*.json") if root is not None else ():
        with contextlib.suppress(OSError):
            state = path.stat()
            found.append((state.st_mtime, state.st_size, path))
    return sorted(found)


def usage() -> Usage:
    """How many entries there are, and what they take."""
    sizes = [size for _, size, _ in _entries()]
    return Usage(len(sizes), sum(sizes), limit())


def prune(most: int) -> int:
    """Delete the entries that were not used for longest until the rest take at most ``most`` bytes; how many went."""
    _sweep()
    entries = _entries()
    total, gone = sum(size for _, size, _ in entries), 0
    for _, size, path in entries:
        if total <= most:
            break
        with contextlib.suppress(OSError):
            path.unlink()
            gone += 1
        total -= size
    return gone


def _sweep() -> None:
    """Delete what writers that were ended left beside entries; a writer takes milliseconds, so hours mean that."""
    root, now = directory(), time.time()
    for path in root.glob("[0-9a-f][0-9a-f]/.*.partial") if root is not None else ():
        with contextlib.suppress(OSError):
            if now - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()


def read(name: str) -> dict[str, Any] | None:
    """The entry of that name, or None when there is none that is whole."""
    path = _path(name)
    if path is None:
        return None
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        payload = entry["payload"]
        if entry["sha256"] != _digest(name, payload):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # it was used
        return json.loads(payload)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(name: str, value: dict[str, Any]) -> None:
    """Keep an entry. A cache that cannot be written is no error: the kernel is compiled again next time."""
    path = _path(name)
    if path is None:
        return
    payload = json.dumps(value)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{name}.{os.getpid()}.{threading.get_ident()}.partial")
        beside.write_text(json.dumps({"sha256": _digest(name, payload), "payload": payload}), encoding="utf-8")
        beside.replace(path)
    except OSError:
        return
    if int(name, 16) % _PRUNE_EVERY == 0:  # chosen by name, so that no process need live long enough to count
        prune(limit())
