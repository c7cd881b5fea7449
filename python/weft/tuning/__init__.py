# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tuning: the schedules of a program's attentions tried, checked and ranked, and the best kept (docs/Tuning.md).

result = weft.tuning.tune(program, q, k, v)
print(result)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .libraries import tune_library
    from .result import Result, Row
    from .run import tune

__all__ = ["Result", "Row", "tune", "tune_library"]
_FILES = {"Result": "result", "Row": "result", "tune": "run", "tune_library": "libraries"}


def __getattr__(name: str) -> Any:
    # (calls of programs ask for choices here, and need nothing of what makes them)
    if name not in _FILES:
        raise AttributeError(f"module 'weft.tuning' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"weft.tuning.{_FILES[name]}"), name)
