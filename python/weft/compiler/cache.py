# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The cache of compiled kernels on disk: ~/.cache/weft, or WEFT_CACHE_DIR; WEFT_CACHE=0 turns it off.

One file an entry. An entry is written beside and renamed, so that readers see all of it or none; one that does not read
back whole is ignored and replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import threading
from typing import Any


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
