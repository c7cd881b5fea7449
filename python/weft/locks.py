# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Locks that a process may be forked around, as workers of a data loader are.

A child has one thread. What another thread of its parent held stays locked in it for ever, and what that thread was
making stays half made. So a fork waits until no lock is held; it gives up after a while, as it did not wait before.
"""

from __future__ import annotations

import os
import threading

#: in this order: whoever holds a lock may ask for one that follows
_ORDER = ("operators", "traces", "kernels", "forms", "choices")
_WAIT = 30.0  # seconds: longer than a compilation takes

_locks: dict[str, threading.RLock] = {}
_held = threading.local()


def lock(name: str) -> threading.RLock:
    """The lock of that name."""
    assert name in _ORDER
    return _locks.setdefault(name, threading.RLock())


def _hold() -> None:
    found = [_locks[name] for name in _ORDER if name in _locks]
    _held.locks = [each for each in found if each.acquire(timeout=_WAIT)]


def _release() -> None:
    for each in reversed(_held.locks):
        each.release()


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
