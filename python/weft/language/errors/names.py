# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Names, functions and attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .entry import KernelError, closest, numbered, type_of


@numbered(101)
def outside_kernel() -> KernelError:
    """A function of weft.language was called from plain Python, where no kernel is being compiled."""
    return KernelError(
        "expected a kernel being compiled, but got a call from plain Python",
        "call this from a function decorated with @weft.jit",
    )


@numbered(102)
def unknown_name(name: str, candidates: Iterable[str]) -> KernelError:
    """A name is used that nothing defines: neither the kernel before this line, nor its module, nor Python."""
    return KernelError(
        f"expected a defined name, but got '{name}'", closest(name, candidates) or f"define '{name}' before this line"
    )


# What Triton's language has and this one has not: no other name is meant by one of these.
ABSENT = frozenset(("float8e4b8", "float8e5b16"))


@numbered(103)
def unknown_attribute(owner: str, name: str, candidates: Iterable[str]) -> KernelError:
    """A module, a type or a value has no attribute of that name. Names of Triton that Weft leaves out are told apart
    from typing errors."""
    if name in ABSENT:
        message = f"expected a function of weft.language, but got '{name}', which only Triton's language has"
        return KernelError(message, "see docs/Language.md for the functions there are")
    close = closest(name, (c for c in candidates if not c.startswith("_")))
    return KernelError(f"{owner} has no attribute '{name}'", close or "see docs/Language.md for the names there are")


@numbered(104)
def not_defined_here(name: str, reason: str, remedy: str) -> KernelError:
    """A variable has a value on some ways to this line only: on one branch of an if, or in a loop that may run no
    times."""
    return KernelError(f"'{name}' may have no value here: {reason}", remedy)


@numbered(105)
def plain_global(name: str, value: Any) -> KernelError:
    """A kernel reads a global that is an ordinary Python value. It could change between launches, so the kernel would
    silently keep the old one."""
    return KernelError(
        f"expected '{name}' to be a constexpr, a @weft.jit function or a module, but got the global {type_of(value)}",
        f"write '{name} = wl.constexpr(...)' where it is defined, or pass it as an argument",
    )


@numbered(106)
def plain_function(name: str, in_language: bool = False) -> KernelError:
    """A kernel calls a Python function that is neither of the language nor compiled with the kernel, which has one of
    the same name where it is ``in_language``."""
    own = f"decorate '{name}' with @weft.jit, or with @wl.constexpr_function if it computes constants from constants"
    return KernelError(
        "expected a function of the language or one decorated with @weft.jit, but got the plain "
        f"Python function '{name}'",
        f"use wl.{name}" if in_language else own,
    )


@numbered(107)
def not_callable(value: Any) -> KernelError:
    """Something is called that is no function."""
    remedy = "call a function of the language or one decorated with @weft.jit"
    return KernelError(f"expected a function, but got {type_of(value)}", remedy)
