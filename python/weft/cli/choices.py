# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The targets and GPUs that help texts name. Help is there without native modules too, and then names none."""

from __future__ import annotations

from collections.abc import Iterable


def described(names: Iterable[str]) -> str:
    """ "A, B or C (default: A)"."""
    known = list(names)
    if not known:
        return "see 'weft doctor'"
    return f"{', '.join(known[:-1])} or {known[-1]} (default: {known[0]})"


def target_names() -> list[str]:
    """The names of the targets, the default first."""
    from weft.targets import targets

    try:
        return list(targets())
    except ImportError:
        return []


def gpu_names() -> list[str]:
    """The names of the GPUs whose rates are known."""
    from weft.targets import gpus

    try:
        return list(gpus())
    except ImportError:
        return []
