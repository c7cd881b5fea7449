# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Loading a user's Python file as a module, without running its ``__main__`` part."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType


def load_file(path: pathlib.Path) -> ModuleType:
    """The module that a file defines. Raises ValueError when the file is missing or is not Python."""
    if not path.is_file():
        raise ValueError(f"expected a Python file, but there is no '{path}'")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"expected a file whose name ends in .py, but got '{path}'")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    finally:
        sys.path.pop(0)
    return module
