# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The cache of compiled kernels on disk: ~/.cache/weft, or WEFT_CACHE_DIR; WEFT_CACHE=0 turns it off.

One file an entry. An entry is written beside and renamed, so that readers see all of it or none; one that does not read
back whole is ignored and replaced. Entries together take at most WEFT_CACHE_BYTES (1 GiB) at any moment: those that
were not used for longest go first. What all of them take stands in the file `.bytes`, which writers change under its
lock before they write; so a writer that is ended in between leaves a number too large, and never one too small. The
number is made anew whenever entries are deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

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


_KEPT = 0.9  # of the limit, where entries have to go: looking through the folder takes far longer than a write
_LOCK_SECONDS = 2.0
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


@contextlib.contextmanager
def _locked(root: pathlib.Path) -> Iterator[IO[bytes]]:
    """The file that says what entries take, for one thread of one process at a time. Raises OSError where another has
    it for long: it may have been stopped."""
    root.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(root / ".bytes", os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0) as total:
        end = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(total, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.001)
        yield total


def _taken(total: IO[bytes]) -> int | None:
    """What entries take by the file's word; None where it says nothing that makes sense."""
    text = os.pread(total.fileno(), 32, 0).strip()
    return int(text) if text.isdigit() else None


def _take(total: IO[bytes], taken: int) -> None:
    # In place and always as long: file systems write out a file at once that was cut off.
    os.pwrite(total.fileno(), f"{taken:31}\n".encode(), 0)


def prune(most: int) -> int:
    """Delete the entries that were not used for longest until the rest take at most ``most`` bytes; how many went."""
    root = directory()
    if root is None or not root.is_dir():
        return 0
    try:
        with _locked(root) as total:
            return _prune(total, most)
    except OSError:  # a folder that is only read
        return 0


def _prune(total: IO[bytes], most: float) -> int:
    """`prune`, for who has the lock."""
    _sweep()
    entries = _entries()
    taken, gone = sum(size for _, size, _ in entries), 0
    for _, size, path in entries:
        if taken <= most:
            break
        try:
            path.unlink(missing_ok=True)
        except OSError:
            continue
        gone += 1
        taken -= size
    _take(total, taken)
    return gone


def _make_room(total: IO[bytes], size: int) -> bool:
    """Counts so many bytes more, and deletes entries where they have to go for that. Whether there is room at all."""
    most, taken = limit(), _taken(total)
    if size > most:
        return False
    if taken is None or taken + size > most:
        _prune(total, min(_KEPT * most, most - size))
        taken = _taken(total) or 0
    if taken + size > most:
        return False
    _take(total, taken + size)
    return True


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
    text = json.dumps({"sha256": _digest(name, payload), "payload": payload}).encode()
    with contextlib.suppress(OSError), _locked(path.parents[1]) as total:
        if not _make_room(total, len(text)):
            return
        replaced = path.stat().st_size if path.exists() else 0
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f".{name}.{os.getpid()}.{threading.get_ident()}.partial")
        beside.write_bytes(text)
        beside.replace(path)
        _take(total, (_taken(total) or 0) - replaced)
