# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels of a source tree whose imports are not there: each file is run statement by statement, and what cannot be
imported is a stand-in that accepts everything. Types of arguments are found by trying.
"""

from __future__ import annotations

import ast
import importlib
import pathlib
import random
import re
import types
from typing import Any

_INDICES = re.compile(
    r"idx|ind(ex|ices)|map|ids|table|slot|loc|pos|len|start|count|num|token|offset|expert|cu_|page|mask"
)
_BYTES = re.compile(r"packed|fp4|int4|qweight|codes|byte|e8m0|mx")
_TYPES = re.compile(r"(dtype|_type)$")
_POINTERS = ("*bf16", "*i32", "*i64", "*fp32", "*u8", "*fp8e4nv", "*u32")
_SCALARS = ("i32", "fp32", "i64")
_ROOM = 5000  # bytes of a file without kernels that is run for its constants


class _StandIn:
    """What could not be imported: called, it decorates; in a comparison it is nothing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and not kwargs and callable(args[0]) else _StandIn()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _StandIn()

    def __getitem__(self, key: Any) -> Any:
        return _StandIn()

    def __mro_entries__(self, bases: Any) -> tuple[type]:
        return (object,)

    def __iter__(self) -> Any:
        return iter(())

    def __bool__(self) -> bool:
        return False


class Tree:
    """The modules of a package's sources that hold kernels, by file."""

    def __init__(self, root: pathlib.Path, skipped: tuple[str, ...]):
        self.root, self.modules = root, dict[pathlib.Path, types.ModuleType]()
        for path in sorted(root.rglob("*.py")):
            if not any(word in str(path.relative_to(root)) for word in skipped) and _has_kernels(path):
                self.module(path)

    def module(self, path: pathlib.Path) -> types.ModuleType:
        """A file's module, as far as its statements run."""
        if path not in self.modules:
            name = ".".join(path.relative_to(self.root.parent).with_suffix("").parts).removesuffix(".__init__")
            module = self.modules[path] = types.ModuleType(name)
            module.__file__ = str(path)
            self._run(ast.parse(path.read_text()).body, module, path)
        return self.modules[path]

    def _run(self, body: list[ast.stmt], module: types.ModuleType, path: pathlib.Path) -> None:
        names = vars(module)
        for statement in body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self._import(statement, names, path)
            elif isinstance(statement, ast.If):
                try:
                    holds = eval(compile(ast.Expression(statement.test), str(path), "eval"), names)
                except Exception:
                    holds = True
                taken = statement.body if holds or isinstance(holds, _StandIn) else statement.orelse
                self._run(taken, module, path)
            elif isinstance(statement, ast.Try):
                self._run(statement.body, module, path)
            elif isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)):
                _execute(statement, names, path)

    def _import(self, statement: ast.Import | ast.ImportFrom, names: dict[str, Any], path: pathlib.Path) -> None:
        if isinstance(statement, ast.Import):
            for each in statement.names:
                found = _imported(each.name)
                first = each.name.partition(".")[0]
                names[each.asname or first] = (found if each.asname else _imported(first)) or _StandIn()
            return
        parts = path.relative_to(self.root.parent).with_suffix("").parts
        above = ".".join(parts[: len(parts) - statement.level]) if statement.level else ""
        source = ".".join(filter(None, (above, statement.module)))
        for each in statement.names:
            name = each.asname or each.name
            if each.name in ("triton", "tl") and "triton" in source:  # as packages of kernels pass it on
                names[name] = importlib.import_module("triton.language" if each.name == "tl" else "triton")
            elif source.partition(".")[0] == self.root.name:
                names[name] = self._own(source, each.name, path)
            else:
                found = getattr(_imported(source), each.name, None)
                names[name] = _imported(f"{source}.{each.name}") or _StandIn() if found is None else found

    def _own(self, source: str, name: str, path: pathlib.Path) -> Any:
        """A name of another file of the package."""
        beside = self.root.parent / source.replace(".", "/")
        for file in (beside.with_suffix(".py"), beside / "__init__.py"):
            if file.exists() and file != path and (_has_kernels(file) or file.stat().st_size < _ROOM):
                found = getattr(self.module(file), name, None)
                if found is not None:
                    return found
        inside = (beside / name).with_suffix(".py")
        return self.module(inside) if inside.exists() and _has_kernels(inside) else _StandIn()


def _has_kernels(path: pathlib.Path) -> bool:
    return "triton.jit" in path.read_text(errors="replace")


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except BaseException:
        return None


def _execute(statement: ast.stmt, names: dict[str, Any], path: pathlib.Path) -> None:
    """Run a statement, with stand-ins for the names that it misses."""
    for _ in range(20):
        try:
            exec(compile(ast.Module([statement], []), str(path), "exec"), names)
            return
        except NameError as error:
            if error.name is None:
                return
            names[error.name] = _StandIn()
        except Exception:
            return


def first_guess(kernel: Any, pointers: set[str], constants: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Types of arguments and constants by their names."""
    language = importlib.import_module("triton.language")
    arguments, fixed = dict[str, str](), dict[str, Any]()
    for parameter in kernel.params:
        name = parameter.name
        if parameter.is_constexpr:
            fixed[name] = language.bfloat16 if _TYPES.search(name.lower()) else constants.get(name)
        elif name in pointers or name.lower().endswith("ptr"):
            lower = name.lower()
            arguments[name] = "*i32" if _INDICES.search(lower) else "*u8" if _BYTES.search(lower) else "*bf16"
        else:
            arguments[name] = "i32"
    return arguments, fixed


def found_by_trying(kernel: Any, pointers: set[str], constants: dict[str, Any], attempt: Any, tries: int) -> str:
    """ "" where some types and constants compile, else why those do not that come furthest in the kernel's source. Each
    try changes some of the best so far, more often what the line that failed names."""
    language = importlib.import_module("triton.language")
    kinds = (language.bfloat16, language.float32, language.float8e4nv)
    values = (16, 32, 64, 128, 1, 2, 4, 1.0, True, False, None, "silu", *kinds)
    draw = random.Random(0)
    arguments, fixed = best = first_guess(kernel, pointers, constants)
    furthest, reason = -1, ""
    for number in range(tries):
        if number:
            arguments, fixed = dict(best[0]), dict(best[1])
            named = [p for p in kernel.params if re.search(rf"\b{p.name}\b", reason)]
            for _ in range(draw.choice((1, 1, 2, 3))):
                parameter = draw.choice(named if named and draw.random() < 0.5 else kernel.params)
                name, is_pointer = parameter.name, parameter.name in pointers
                if parameter.is_constexpr or (is_pointer and draw.random() < 0.1):
                    arguments.pop(name, None)
                    fixed[name] = draw.choice(values) if parameter.is_constexpr else None
                else:
                    fixed.pop(name, None)
                    arguments[name] = draw.choice(_POINTERS if is_pointer or draw.random() < 0.3 else _SCALARS)
        order = {p.name: arguments[p.name] for p in kernel.params if p.name in arguments}
        try:
            attempt(kernel, order, fixed)
            return ""
        except Exception as error:
            text = str(error).strip() or repr(error)
            places = re.findall(r"called from \S*?:(\d+):", text) or re.findall(r"^\S+?:(\d+):\d+:", text)
            if (place := int(places[-1]) if places else 0) >= furthest:
                best, furthest, reason = (arguments, fixed), place, text
    return reason
