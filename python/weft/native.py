# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Finds Weft's extension modules: in the folder WEFT_NATIVE_DIR where it is set, else in weft/_native."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pathlib
import sys
import threading
from types import ModuleType

_lock = threading.RLock()


def load(name: str) -> ModuleType:
    """The extension module ``weft._native.NAME``, loaded on first use. Raises ImportError, saying how to build it."""
    with _lock:  # sys.modules has a module before its names are in it
        return sys.modules.get(f"weft._native.{name}") or _load(name)


def _load(name: str) -> ModuleType:
    full = f"weft._native.{name}"
    folder = pathlib.Path(os.environ.get("WEFT_NATIVE_DIR") or pathlib.Path(__file__).parent / "_native")
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / (name + suffix)
        if path.exists():
            spec = importlib.util.spec_from_file_location(full, path)
            assert spec is not None and spec.loader is not None  # an extension suffix always has its loader
            module = importlib.util.module_from_spec(spec)
            sys.modules[full] = module
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[full]
                raise
            return module
    raise ImportError(f"no extension module '{name}' in '{folder}': {_remedy(folder)}", name=full)


def _remedy(folder: pathlib.Path) -> str:
    """What to do where a module is missing: of a wheel, which has its headers beside, it is one that runs libraries."""
    if (folder.parent / "cmake").is_dir():
        return "this is weft-attention-runtime, which runs libraries and no more; install weft-attention instead"
    return "build it with 'make'"
