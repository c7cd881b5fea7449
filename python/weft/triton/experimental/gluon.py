# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.experimental.gluon`` and the modules below it. Gluon's kernels name the layouts and the instructions of one
machine, which Weft chooses itself: the names can be imported, and a module that declares a kernel fails to be, as where
Triton has no Gluon. Names that the tile language has too are its own, as ``constexpr`` and the types are."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import weft.language
from weft.errors import Error
from weft.language import aggregate, constexpr_function

from ..runtime.jit import must_use_result

_MODULES = (
    *("nvidia", "nvidia.hopper", "nvidia.blackwell", "amd", "amd.gfx1250", "language", "language.extra"),
    *("language.nvidia", *(f"language.nvidia.{each}" for each in ("ampere", "hopper", "blackwell", "rubin"))),
    *("language.amd", *(f"language.amd.{each}" for each in ("cdna3", "cdna4", "cdna5", "gfx1250", "rdna3", "rdna4"))),
)


class Unsupported:
    """What a name of Gluon's stands for: calls and attributes of it, as of layouts that a script makes up for a launch,
    are such names too."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Unsupported:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unsupported(f"{self._name}.{name}")

    def __call__(self, *arguments: Any, **named: Any) -> Unsupported:
        return self

    def __repr__(self) -> str:
        return f"Gluon's '{self._name}'"


class GluonUnsupported(Error, ImportError):
    """A module declares a kernel of Gluon's. Packages that have others for where Gluon is missing ask for an
    ImportError."""


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Errors: GluonUnsupported, where a kernel of Gluon's is declared."""
    if fn is None:
        return jit
    raise GluonUnsupported(
        f"expected kernels of the tile language, but '{fn.__qualname__}' of {fn.__module__} is Gluon's: it names "
        "layouts and instructions of one machine; write it with triton.jit, or run it by Triton"
    )


class _Names(types.ModuleType):
    """A module of Gluon's: every public name is there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return getattr(weft.language, name, None) or Unsupported(name)


def _add_modules() -> None:
    for path in _MODULES:
        module = _Names(f"{__name__}.{path}", "Names of Gluon's, which Weft's kernels do not take.")
        module.__path__ = []
        sys.modules[module.__name__] = module
        parent, _, last = module.__name__.rpartition(".")
        setattr(sys.modules[parent], last, module)


__path__: list[str] = []
_add_modules()

__all__ = ["GluonUnsupported", "Unsupported", "aggregate", "constexpr_function", "jit", "must_use_result"]
