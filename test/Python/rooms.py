# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The tables of rooms in docs/Architecture.md, and what files of C++ include and modules of the Python package import,
for tests that hold one to the other.
"""

import ast
import functools
import pathlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "Architecture.md"
PACKAGE = ROOT / "python" / "weft"
NATIVE = ("targets", "dialects", "compiler", "runtime", "python/bindings")


# ---- Rooms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Room:
    """A folder or a file by its path in the repository, and the folders and files whose rooms it may use."""

    path: str
    uses: tuple[str, ...]


def read_rooms(page: pathlib.Path = PAGE, under: str = "") -> list[Room]:
    """The rooms under a folder, in the order of the page's tables whose first column is "room" and last "may use".

    Paths stand between backquotes; other words of a cell are for readers. A row of several paths is several rooms.
    """
    rooms, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == "room" and cells[-1] == "may use":
            inside = True
        elif inside and not set(line) <= set("|-: "):
            uses = tuple(re.findall(r"`([^`]+)`", cells[-1]))
            rooms += [Room(path, uses) for path in re.findall(r"`([^`]+)`", cells[0]) if path.startswith(under)]
    return rooms


def within(path: str, folder: str) -> bool:
    """Whether a path is a folder or file, or lies in it."""
    return path == folder or path.startswith(folder + "/")


def room_of(path: str, rooms: Iterable[Room]) -> Room | None:
    """The innermost room that a file is in."""
    return max((room for room in rooms if within(path, room.path)), key=lambda room: len(room.path), default=None)


def forbidden(edges: Iterable[tuple[str, str]], rooms: list[Room]) -> list[str]:
    """Of pairs of files, of which the first uses the second, those that the rooms do not allow, in words."""
    found = []
    for user, used in edges:
        mine, theirs = room_of(user, rooms), room_of(used, rooms)
        if mine is None or theirs is None:
            found.append(f"{user if mine is None else used} is in no room")
        elif mine != theirs and not any(within(theirs.path, path) for path in mine.uses):
            found.append(f"{user} uses {used}, but '{mine.path}' may not use '{theirs.path}'")
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of nodes that reach each other: Tarjan's strongly connected components of more than one."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in graph:
        if node not in index:
            visit(node)
    return found


# ---- Includes of C++ and of TableGen ---------------------------------------------------------------------------------


@functools.cache
def includes() -> dict[str, set[str]]:
    """Of each file of the tree in C++ or TableGen, those of the tree that it includes. What TableGen writes counts as
    the file that it is written from."""
    files = {
        path.relative_to(ROOT).as_posix()
        for folder in NATIVE
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".hpp", ".cpp", ".td")
    }
    found = {}
    for file in files:
        named = re.findall(r'^\s*#?include "([^"]+)"', (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
        sources = [re.sub(r"\.(h|cpp)\.inc$", ".td", name) for name in named]
        beside = [f"{file.rpartition('/')[0]}/{name}" for name in sources]
        found[file] = files & {*sources, *beside}
    return found


# ---- Imports of the package -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One imported module of the package, and the name that is taken from it where one is. ``when`` is "first" (at the
    top of the file), "called" (in a function) or "typed" (under TYPE_CHECKING)."""

    user: str
    module: str
    name: str | None
    when: str
    line: int


@functools.cache
def modules() -> dict[str, pathlib.Path]:
    """The files of the package by their modules' names."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if "_native" not in parts:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def tree(module: str) -> ast.Module:
    """A module's source."""
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def file_of(module: str) -> str:
    """A module's path in the repository, as rooms have it."""
    return modules()[module].relative_to(ROOT).as_posix()


@functools.cache
def imports() -> tuple[Import, ...]:
    """What the modules of the package import of each other; what a package's stub names, it does as if typed."""
    found = [each for module in modules() for each in _imports(module, tree(module), "first")]
    for module, path in modules().items():
        if path.with_suffix(".pyi").exists():
            stub = ast.parse(path.with_suffix(".pyi").read_text(encoding="utf-8"))
            found += [each for each in _imports(module, stub, "typed") if not each.module.startswith(f"{module}.")]
    return tuple(found)


def outside(module: str) -> set[str]:
    """The top-level packages other than this one that a module imports when it is imported."""
    found = set()
    for statement in tree(module).body:
        if isinstance(statement, ast.Import):
            found |= {each.name.partition(".")[0] for each in statement.names}
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0:
            found.add((statement.module or "").partition(".")[0])
    return found - {"weft"}


def _imports(module: str, node: ast.AST, when: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        inner = when
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and when == "first":
            inner = "called"
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            inner = "typed"
        if isinstance(child, ast.Import):
            for each in child.names:
                if each.name.partition(".")[0] == "weft":
                    yield Import(module, each.name, None, when, child.lineno)
        elif isinstance(child, ast.ImportFrom):
            base = _base(module, child)
            for each in child.names if base.partition(".")[0] == "weft" else ():
                whole = f"{base}.{each.name}"
                if whole in modules():
                    yield Import(module, whole, None, when, child.lineno)
                else:
                    yield Import(module, base, each.name, when, child.lineno)
        else:
            yield from _imports(module, child, inner)


def _base(module: str, statement: ast.ImportFrom) -> str:
    """The module that "from ... import" names, in full."""
    if statement.level == 0:
        return statement.module or ""
    package = module.split(".") if modules()[module].name == "__init__.py" else module.split(".")[:-1]
    package = package[: len(package) - (statement.level - 1)]
    return ".".join([*package, *([statement.module] if statement.module else [])])
