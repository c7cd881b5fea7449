# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The source text of a function, parsed, with what is needed to name positions in the user's file."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import itertools
import linecache
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass

from .diagnostics import CompilationError, Position

_TRIES = 8  # lines that may be a function's end


@dataclass(frozen=True)
class Source:
    """A function's source. ``text`` is dedented by ``indent`` columns; its line 1 is ``first_line`` of ``file``."""

    file: str
    first_line: int
    indent: int
    text: str
    tree: ast.FunctionDef

    def position(self, node: ast.AST) -> Position:
        """Where a node of ``tree`` stands in the file. Of a node of several lines, its first."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line, end = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column + 1)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        # ast counts columns in UTF-8 bytes, people in characters.
        first = len(text.encode()[:column].decode(errors="replace"))
        last = len(text.encode()[:end].decode(errors="replace")) if end_line == line else len(text)
        return Position(self.file, line + self.first_line - 1, first + self.indent + 1, last + self.indent + 1)

    @functools.cached_property
    def lines(self) -> list[str]:
        """The source's lines without their ends; the first is the file's ``first_line``."""
        return self.text.splitlines()

    def line(self, position: Position) -> str:
        """The file's line at a position, as the function was when it was read."""
        index = position.line - self.first_line
        return " " * self.indent + self.lines[index] if 0 <= index < len(self.lines) else ""


def file_lines(function: types.FunctionType) -> list[str]:
    """The lines of the file, notebook cell or other text known to ``linecache`` that defines a function; [] without."""
    linecache.checkcache(function.__code__.co_filename)
    return linecache.getlines(function.__code__.co_filename, function.__globals__)


def listed(text: str) -> str:
    """The name under which a text's lines are known to ``linecache``, as those of a file are."""
    name = f"<text {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return name


def read_block(lines: list[str]) -> tuple[str, str, ast.FunctionDef | None]:
    """The first line, the text and the tree of the function that lines begin with. The text ends where
    ``inspect.getblock`` has its end, which reads it token by token; None where there is no ``def``."""
    found = _parsed_block(lines)
    if found is not None:
        return lines[0], *found
    block = inspect.getblock(lines)
    text = textwrap.dedent("".join(block))
    try:
        tree = ast.parse(text).body[0]
    except SyntaxError:
        tree = None  # a lambda, or a def that shares its line
    return block[0] if block else "", text, tree if isinstance(tree, ast.FunctionDef) else None


def _parsed_block(lines: list[str]) -> tuple[str, ast.FunctionDef] | None:
    """The text and the tree of the function: up to the first line that is no deeper than the first and before which all
    is a whole statement, as nothing is where that line is inside of brackets or a string. None where that is no
    ``def``, or not among the first such lines.
    """
    for end in itertools.islice(itertools.chain(_shallow(lines), [len(lines)]), _TRIES):
        text = textwrap.dedent("".join(lines[:end]))
        try:
            tree = ast.parse(text).body[0]
        except SyntaxError:
            continue
        if not isinstance(tree, ast.FunctionDef) or tree.end_lineno is None:
            return None
        kept = text.split("\n")
        last, column = tree.end_lineno, tree.body[0].col_offset
        for number, line in enumerate(kept[last:], last + 1):  # comments as deep as the body
            bare = line.lstrip()
            if bare.startswith("#") and len(line) - len(bare) >= column:
                last = number
        return "\n".join(kept[:last]) + "\n" * (last < len(kept)), tree
    return None


def _shallow(lines: list[str]) -> Iterator[int]:
    """The lines after the first that are no deeper than it, but for empty ones and comments, by their indices."""
    depth = len(lines[0]) - len(lines[0].lstrip())
    for index, line in enumerate(lines[1:], 1):
        bare = line.lstrip()
        if len(line) - len(bare) <= depth and bare and not bare.startswith("#"):
            yield index


def read(function: types.FunctionType, lines: list[str]) -> Source:
    """The source of a function, given the lines of its file. They are taken when the function is defined: the file may
    be edited afterwards."""
    code = function.__code__
    lines = lines or file_lines(function)
    if not lines or code.co_firstlineno > len(lines):
        raise CompilationError(
            f"expected the source of '{function.__name__}' in '{code.co_filename}', but found none",
            remedy="define the kernel in a file or a notebook cell; text given to exec() must be known to linecache",
        )
    first, text, tree = read_block(lines[code.co_firstlineno - 1 :])
    indent = len(first) - len(first.lstrip())
    if tree is None:
        raise CompilationError(
            f"expected a function made with 'def', but got '{function.__name__}'",
            Position(code.co_filename, code.co_firstlineno, 1),
            "write it with 'def'",
        )
    return Source(code.co_filename, code.co_firstlineno, indent, text, tree)
