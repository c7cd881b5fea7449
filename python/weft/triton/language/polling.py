# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Waiting for memory to have a value: ``atomic_poll``."""

from typing import Any

import weft.language as wl
from weft.compiler.jit import jit
from weft.language.emit import builtin, current
from weft.language.extra.cuda import num_threads
from weft.language.value import member


@builtin
def _now() -> Any:
    """The machine's clock, the same number in all threads: the greatest that any of them reads."""
    threads = wl.arange(0, num_threads())
    read = wl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l,r", [threads], wl.int64, False, 1)
    return wl.max(read, 0)


@builtin
def _all(found: Any) -> Any:
    """Whether all elements are true."""
    return wl.min(found.to(wl.int32), None) != 0 if found.shape else found


@jit
def _poll(pointer, expected, sem: wl.constexpr, scope: wl.constexpr):
    found = wl.atomic_load(pointer, sem=sem, scope=scope) == expected
    while not _all(found):
        found = found | (wl.atomic_load(pointer, sem=sem, scope=scope) == expected)
    return found


@jit
def _poll_for(pointer, expected, sem: wl.constexpr, scope: wl.constexpr, timeout):
    start = _now()
    found = wl.atomic_load(pointer, sem=sem, scope=scope) == expected
    while not _all(found) and _now() - start < timeout:
        found = found | (wl.atomic_load(pointer, sem=sem, scope=scope) == expected)
    return found


@member
@builtin
def atomic_poll(
    pointer: Any, expected_value: Any, sem: str | None = None, scope: str | None = None, timeout_ns: Any = None
) -> Any:
    """Wait until memory holds ``expected_value`` at each pointer, or ``timeout_ns`` nanoseconds of the machine's clock
    have passed: whether it did. Integers of 16, 32 or 64 bits; ``sem`` is "acquire" (default) or "relaxed".
    """
    order, scopes = wl.constexpr(sem or "acquire"), wl.constexpr(scope or "gpu")
    if timeout_ns is None:
        return current().call(_poll, [pointer, expected_value, order, scopes], {})
    return current().call(_poll_for, [pointer, expected_value, order, scopes, timeout_ns], {})
