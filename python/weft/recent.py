# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A table that keeps what was used last, so that a process that goes on does not keep all it ever made."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """At most ``most`` entries: one more takes the place of that which was asked for longest ago.

    Threads may share it.
    """

    def __init__(self, most: int):
        self.most = most
        self._entries: dict[Key, Value] = {}  # in the order of use
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """The entry, used now, or None."""
        with self._lock:
            if key not in self._entries:
                return None
            value = self._entries[key] = self._entries.pop(key)
            return value

    def keep(self, key: Key, value: Value) -> Value:
        """Keep an entry, used now; gives it."""
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = value
            while len(self._entries) > self.most:
                del self._entries[next(iter(self._entries))]
        return value

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            self._entries.clear()
