# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A user's files: a Python file as a module, without running its ``__main__`` part; and the programs of a folder."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any


def parted(text: str) -> tuple[pathlib.Path, str]:
    """A file, and the name behind its ':', "" where there is none."""
    path, sign, name = text.rpartition(":")
    return (pathlib.Path(path), name) if sign and not pathlib.Path(text).exists() else (pathlib.Path(text), "")


def _module_name(path: pathlib.Path) -> str:
    """What a file's module is called: as the file is, unless that is the name of another module, whose place it would
    take for all that imports it."""
    try:
        known = getattr(sys.modules.get(path.stem), "__spec__", None) or importlib.util.find_spec(path.stem)
    except (ValueError, ImportError):
        known = None
    own = path.stem not in sys.modules if known is None else known.origin == str(path.resolve())
    return path.stem if own else f"weft_file_{path.stem}"


def load_file(path: pathlib.Path) -> ModuleType:
    """The module that a file defines. Raises ValueError when the file is missing or is not Python."""
    if not path.is_file():
        raise ValueError(f"expected a Python file, but there is no '{path}'")
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"expected a file whose name ends in .py, but got '{path}'")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except (Exception, SystemExit) as error:
        lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if pathlib.Path(at.filename) == path]
        place = f"{path}:{lines[-1]}" if lines else str(path)
        raise ValueError(f"{place}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    return module


def programs_of(folder: pathlib.Path) -> list[Any]:
    """The programs that the Python files of a folder define, file by file in the order of their names. What a file
    imports is not its own; files whose name starts with _ are left out. Raises ValueError where there is none."""
    found = []
    for path in sorted(folder.glob("*.py")):
        if path.name.startswith("_"):
            continue
        for value in vars(load_file(path)).values():
            own = getattr(value, "__weft_program__", False) is True and value.position is not None
            if own and pathlib.Path(value.position.file).resolve() == path.resolve():
                found.append(value)
    if not found:
        raise ValueError(f"expected Python files with programs (@weft.program) in '{folder}', but it has none")
    return found


def select(module: ModuleType, path: str, name: str, kinds: Sequence[str], what: str) -> tuple[Any, str]:
    """The value of a module that is marked with one of ``kinds``, and which; earlier kinds win where none is named.

    ``what`` says in messages what is wanted. Raises ValueError where there is none, or more than one.
    """
    found = {
        key: (value, kind)
        for key, value in vars(module).items()
        for kind in kinds
        if getattr(value, kind, False) is True
    }
    listing = ", ".join(f"'{key}'" for key in found) or "none"
    if name:
        if name not in found:
            raise ValueError(f"expected a {what} of {path}, but got '{name}'; it has {listing}")
        return found[name]
    for kind in kinds:
        several = [each for each in found.values() if each[1] == kind]
        if len(several) == 1:
            return several[0]
        if several:
            break
    raise ValueError(f"expected one {what} in {path}, but it has {listing}; name one as {path}:NAME")
